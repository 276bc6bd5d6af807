//! A running gateway: its thread, and what others may ask of it.

use super::acceptor::raise_descriptor_limit;
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
use units::{Span, Time};

/// Time between attempts to send the last frames when a gateway stops.
const RETRY: Span = Span::from_micros(200);
/// Time for peers to answer UNBIND, and for the last frames to leave, when a gateway stops.
const LAST_FRAMES: Span = Span::from_secs(1);

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
        raise_descriptor_limit();
        let drain = config.drain;
        let shared = Arc::new(Shared {
            engine: Mutex::new(Engine::open(config, clock::now().0)?),
            log: Mutex::default(),
            waker: Waker::new()?,
            stop: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("gateway".to_owned()).spawn(move || run(&own, drain))?;
        Ok(Gateway { shared, thread: Some(thread) })
    }

    /// Log lines since the last call.
    pub fn drain_log(&self) -> Vec<String> {
        locked(&self.shared.log).drain(clock::now(), self.shared.stop.load(Ordering::Relaxed))
    }

    /// Returns the state now.
    pub fn status(&self) -> Status {
        locked(&self.shared.engine).status(clock::now().0)
    }

    /// False when the thread has ended: it was told to stop, or there is a fault.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Begins to stop: the gateway lets no exchange begin, lets those under way end within [`GatewayConfig::drain`],
    /// unbinds its sessions, ends all logins, and closes everything. [`Gateway::is_running`] is false then.
    pub fn begin_stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.waker.wake();
    }

    /// Stops, and waits until that is done.
    pub fn stop(&mut self) {
        self.begin_stop();
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

fn run(shared: &Shared, drain: Span) {
    serve(shared, None, |_| shared.stop.load(Ordering::Relaxed));
    locked(&shared.engine).begin_drain();
    serve(shared, Some(clock::now() + drain), Engine::is_drained);
    locked(&shared.engine).unbind(clock::now().0);
    serve(shared, Some(clock::now() + LAST_FRAMES), Engine::is_unbound);
    let mut engine = locked(&shared.engine);
    engine.clear_all(clock::now().0);
    let end = clock::now() + LAST_FRAMES;
    while engine.segment.is_blocked() && clock::now() < end {
        shared.waker.wait_all(&mut Vec::new(), RETRY);
        engine.segment.flush(clock::now().0);
    }
    engine.segment.shut();
    keep_log(shared, &mut engine);
}

/// Serves until something is done, or a time.
fn serve(shared: &Shared, end: Option<Time>, is_done: impl Fn(&Engine) -> bool) {
    loop {
        let mut engine = locked(&shared.engine);
        let now = clock::now();
        let is_busy = engine.round(now.0);
        keep_log(shared, &mut engine);
        if is_done(&engine) || end.is_some_and(|end| now >= end) {
            return;
        }
        if !is_busy {
            wait(shared, engine, end);
        }
    }
}

fn keep_log(shared: &Shared, engine: &mut Engine) {
    for line in engine.take_log() {
        locked(&shared.log).unlimited(line);
    }
}

/// Waits for something to do; others may ask meanwhile.
fn wait(shared: &Shared, engine: MutexGuard<'_, Engine>, end: Option<Time>) {
    let waited = engine.waits_for();
    let next_ns = engine.poll_timeout().min(end.map_or(u64::MAX, |end| end.0));
    let timeout = Span(next_ns.saturating_sub(clock::now().0));
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
