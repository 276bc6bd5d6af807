//! Reasons for which there is no stream.

use std::io;
use std::time::Duration;

/// A stream that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum QuicError {
    /// The certificate or its key is none.
    #[error("no usable certificate and key: {0}")]
    Certificate(String),
    /// No port of those asked for is free.
    #[error("cannot bind a UDP port of {ports}: {error}")]
    Port {
        /// As asked for.
        ports: String,
        /// Of the last port tried.
        error: io::Error,
    },
    /// The peer has another certificate, or speaks another protocol.
    #[error("the peer is not the other end of this copy: {0}")]
    Peer(String),
    /// The peer did not answer, or has gone.
    #[error("no connection: {0}")]
    Connection(String),
    /// The time is over.
    #[error("no connection within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// It was asked to.
    #[error("stopped")]
    Stopped,
    /// This host refused something else.
    #[error("{doing}: {error}")]
    Io {
        /// The attempt.
        doing: &'static str,
        /// The reason.
        error: io::Error,
    },
}
