//! One end of a copy, from its specification to its report.

use crate::error::{CopyError, ErrorKind};
use copy::{EndReport, EndSpec, Event, Steering};
use std::sync::atomic::AtomicBool;
use std::sync::Mutex;

/// What another thread may do with a copy that runs.
#[derive(Debug, Default)]
pub struct Control {
    /// Set: it ends soon, with `ErrorKind::Stopped`; what is durable stays.
    pub stop: AtomicBool,
    /// Changes that it has not taken yet.
    pub steering: Mutex<Steering>,
}

/// Runs one end until the copy is done, has failed or was stopped. Returns when all of its threads have ended and its
/// journal is synced; `told` is called on the calling thread.
///
/// # Errors
/// See [`ErrorKind`]. A file that cannot be copied is no error: it is a fault of the report.
pub fn run_end(spec: &EndSpec, control: &Control, told: &mut dyn FnMut(Event)) -> Result<EndReport, CopyError> {
    let _ = (spec, control, told);
    Err(CopyError { kind: ErrorKind::Io, text: "not written yet".into() })
}
