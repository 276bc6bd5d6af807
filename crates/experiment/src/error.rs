//! Everything that can be wrong with a spec or the files it names.

/// Reason that a run could not be built or finished.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The spec does not hold together; the text names the field and what would be right.
    #[error("{0}")]
    Spec(String),
    /// A trace could not be read.
    #[error("{0}")]
    Trace(String),
    /// A disk could not be made of what describes it, or requests do not fit it; the text names the flow.
    #[error("{0}")]
    File(String),
    /// A congestion control could not be found, compiled or set up.
    #[error("{0}")]
    Congestion(String),
    /// The capture file could not be written.
    #[error("cannot write the capture {path}: {source}")]
    Capture {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The caller asked to stop.
    #[error("the run was stopped before its end")]
    Stopped,
}
