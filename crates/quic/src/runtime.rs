//! The threads on which quinn works: shared by all streams, gone with the last of them.

use crate::error::QuicError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads: one sends while another receives.
const WORKERS: usize = 2;

/// The runtime; its threads end when the last holder drops it.
pub(crate) struct Shared(Option<Runtime>);

impl Shared {
    pub fn handle(&self) -> &Handle {
        self.0.as_ref().expect("there until it is dropped").handle()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // The last holder may be a task of it.
            runtime.shutdown_background();
        }
    }
}

static CURRENT: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
/// Streams that were dropped and whose last packets are on their way.
static LINGERING: AtomicUsize = AtomicUsize::new(0);
/// Between two looks whether there are any.
const GLANCE: Duration = Duration::from_millis(2);

/// A stream that lingers, until this is dropped.
pub(crate) struct Lingering(());

impl Lingering {
    pub fn new() -> Lingering {
        LINGERING.fetch_add(1, Ordering::Relaxed);
        Lingering(())
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        LINGERING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until what was written to streams that were dropped has arrived, at most `within`. A program that ends without
/// it takes the rest along.
pub fn settle(within: Duration) {
    let mut left = within;
    while LINGERING.load(Ordering::Relaxed) > 0 && left > Duration::ZERO {
        #[allow(clippy::disallowed_methods, reason = "the wait of a thread that has nothing else to do")]
        std::thread::sleep(GLANCE);
        left = left.saturating_sub(GLANCE);
    }
}

/// The runtime that is there, or a new one.
pub(crate) fn shared() -> Result<Arc<Shared>, QuicError> {
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(shared) = current.upgrade() {
        return Ok(shared);
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("elephan-quic")
        .enable_all()
        .build()
        .map_err(|error| QuicError::Io { doing: "starting threads", error })?;
    let shared = Arc::new(Shared(Some(runtime)));
    *current = Arc::downgrade(&shared);
    Ok(shared)
}
