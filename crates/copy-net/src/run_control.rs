//! The handle by which another thread stops and steers a copy that runs.

use copy::Steering;
use std::sync::atomic::AtomicBool;
use std::sync::Mutex;

/// Handle of a copy that runs, for another thread.
#[derive(Debug, Default)]
pub struct Control {
    /// Set: it ends soon, with `ErrorKind::Stopped`; what is durable stays.
    pub stop: AtomicBool,
    /// Changes that it has not taken yet.
    pub steering: Mutex<Steering>,
}
