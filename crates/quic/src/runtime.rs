//! The threads on which quinn works: shared by all streams, gone with the last of them.

use crate::error::QuicError;
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
/// Between two looks whether it is gone.
const GLANCE: Duration = Duration::from_millis(2);

/// Waits until the last packets of all streams that were dropped are sent, at most `within`. Without it a program that
/// ends at once takes them along, and the other end waits for the silence to be over.
pub fn settle(within: Duration) {
    let mut left = within;
    while CURRENT.lock().unwrap_or_else(PoisonError::into_inner).strong_count() > 0 && left > Duration::ZERO {
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
