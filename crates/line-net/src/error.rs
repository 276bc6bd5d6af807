//! Errors of a port.

/// A reason for which a call ended early.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The system refused something.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The stream cannot be.
    #[error("{0}")]
    Spec(#[from] line_test::WrongSpec),
    /// The caller told it to.
    #[error("told to stop")]
    Stopped,
}
