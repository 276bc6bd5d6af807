//! A running gateway: its thread, and what others may ask of it.

use super::config::GatewayConfig;
use super::engine::Engine;
use super::status::Status;
use crate::clock;
use crate::log::Log;
use crate::waker::Waker;
use rustix::event::PollFd;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use units::Span;

/// Time between attempts to send the last frames when a gateway stops.
const RETRY: Span = Span::from_micros(200);
/// Time for the last frames to leave when a gateway stops.
const DRAIN: Span = Span::from_secs(1);

/// State that the thread shares.
struct Shared {
    engine: Mutex<Engine>,
    log: Mutex<Log>,
    waker: Waker,
    stop: AtomicBool,
}

/// A running gateway.
pub struct Gateway {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Gateway {
    /// Opens all that a configuration names, and serves in a thread of its own.
    ///
    /// # Errors
    /// An interface, socket or file that cannot be opened, with the reason.
    pub fn start(config: GatewayConfig) -> io::Result<Gateway> {
        let shared = Arc::new(Shared {
            engine: Mutex::new(Engine::open(config, clock::now().0)?),
            log: Mutex::default(),
            waker: Waker::new()?,
            stop: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("gateway".to_owned()).spawn(move || run(&own))?;
        Ok(Gateway { shared, thread: Some(thread) })
    }

    /// Log lines since the last call.
    pub fn drain_log(&self) -> Vec<String> {
        locked(&self.shared.log).drain(clock::now(), self.shared.stop.load(Ordering::Relaxed))
    }

    /// Returns the state now.
    pub fn status(&self) -> Status {
        locked(&self.shared.engine).status()
    }

    /// False when the thread ended on its own, which is a fault.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Sends what waits, ends all logins, and closes everything.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to close.
            let _ = thread.join();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(shared: &Shared) {
    while !shared.stop.load(Ordering::Relaxed) {
        let mut engine = locked(&shared.engine);
        let is_busy = engine.round(clock::now().0);
        keep_log(shared, &mut engine);
        if !is_busy {
            wait(shared, engine);
        }
    }
    let mut engine = locked(&shared.engine);
    let now = clock::now();
    engine.clear_all(now.0);
    let end = now + DRAIN;
    while engine.segment.is_blocked() && clock::now() < end {
        shared.waker.wait_all(&mut Vec::new(), RETRY);
        engine.segment.flush(clock::now().0);
    }
    engine.segment.shut();
    keep_log(shared, &mut engine);
}

fn keep_log(shared: &Shared, engine: &mut Engine) {
    for line in engine.take_log() {
        locked(&shared.log).unlimited(line);
    }
}

/// Waits for something to do; others may ask meanwhile.
fn wait(shared: &Shared, engine: MutexGuard<'_, Engine>) {
    let waited = engine.waits_for();
    let timeout = Span(engine.poll_timeout().saturating_sub(clock::now().0));
    drop(engine);
    let mut fds: Vec<PollFd<'_>> = waited
        .iter()
        .map(|(_, fd, events)| {
            // SAFETY: the engine owns the descriptor, and this thread alone changes the engine.
            PollFd::from_borrowed_fd(unsafe { BorrowedFd::borrow_raw(*fd) }, *events)
        })
        .collect();
    shared.waker.wait_all(&mut fds, timeout);
    let mut engine = locked(&shared.engine);
    for ((waiting, _, _), _) in waited.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()) {
        engine.note_ready(*waiting);
    }
}
