//! The threads on which quinn works: shared by all streams, gone with the last of them.

use crate::error::QuicError;
use std::sync::{Arc, Mutex, PoisonError, Weak};
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

/// The runtime that is there, or a new one.
pub(crate) fn shared() -> Result<Arc<Shared>, QuicError> {
    static CURRENT: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
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
