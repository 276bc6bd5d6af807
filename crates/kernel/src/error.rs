//! Everything that can keep a run on this machine from happening.

use experiment::RunError;
use std::io;

/// Reason that a run could not be made or finished.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The spec or the plan does not hold together, or a file that they name cannot be read.
    #[error("{0}")]
    Spec(#[from] RunError),
    /// The kernel refused something that a flow needs.
    #[error("flow {flow}: {what}: {error}")]
    Flow {
        /// Its name.
        flow: String,
        /// The option with its value, or the step.
        what: String,
        /// The kernel's word.
        error: io::Error,
    },
    /// The machine refused something that every run needs.
    #[error("{what}: {error}")]
    Machine {
        /// The action that failed.
        what: String,
        /// The kernel's word.
        error: io::Error,
    },
    /// No port of those that a run may use can be bound.
    #[error("{0}")]
    Port(String),
    /// The other host's agent does not answer, or has gone.
    #[error("{0}")]
    Peer(String),
    /// The caller asked to stop.
    #[error("the run was stopped before its end")]
    Stopped,
}

impl KernelError {
    pub(crate) fn machine(what: &str, error: io::Error) -> KernelError {
        KernelError::Machine { what: what.to_owned(), error }
    }
}
