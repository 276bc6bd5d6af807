//! Errors of path tests.

use std::io;

/// A reason for which a call ended early.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The system refused something.
    #[error("{what}: {error}")]
    Io {
        /// The act.
        what: String,
        /// The reason.
        error: io::Error,
    },
    /// A request that cannot be met.
    #[error("{0}")]
    Input(String),
    /// The caller told it to.
    #[error("told to stop")]
    Stopped,
}

impl PathError {
    pub(crate) fn io(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> PathError {
        move |error| PathError::Io { what: what.to_string(), error }
    }
}
