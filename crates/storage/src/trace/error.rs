//! Errors of traces.

use super::format::Format;
use std::fmt;

/// Reason for which a trace was not read.
#[derive(Debug)]
pub enum TraceError {
    /// The format has no reader.
    Format {
        /// As asked for.
        format: String,
    },
    /// A map of columns is not right.
    Columns {
        /// The map.
        columns: String,
        /// The expected text.
        expected: String,
    },
    /// No format was asked for, and the content is of none that is known.
    Unrecognised {
        /// The trace.
        name: String,
        /// Its beginning, cut.
        text: String,
    },
    /// The file could not be opened.
    Open {
        /// The trace.
        name: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file could not be read.
    Read {
        /// The trace.
        name: String,
        /// The place: a line from 1 in a text, a byte from 0 in a binary file.
        place: TracePosition,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line or record is not a request.
    Content {
        /// The trace.
        name: String,
        /// The place.
        place: TracePosition,
        /// The text found, truncated to 100 characters; None: not printable.
        text: Option<String>,
        /// The expected text.
        expected: String,
        /// Requests that were read before it.
        read: u64,
    },
    /// There is no request at all.
    Empty {
        /// The trace.
        name: String,
    },
}

/// A place in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TracePosition {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
}

impl fmt::Display for TracePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TracePosition::Line(line) => write!(f, "line {line}"),
            TracePosition::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Format { format } => {
                write!(f, "trace format {format:?} is unknown: use one of {}", Format::names())
            }
            TraceError::Columns { columns, expected } => write!(f, "columns {columns:?}: expected {expected}"),
            TraceError::Unrecognised { name, text } => write!(
                f,
                "{name}: no known trace format begins with {text:?}; name one of {}, or give the columns",
                Format::names()
            ),
            TraceError::Open { name, source } => write!(f, "{name}: cannot be opened: {source}"),
            TraceError::Read { name, place, source } => write!(f, "{name}, {place}: {source}"),
            TraceError::Content { name, place, text, expected, read } => {
                write!(f, "{name}, {place}: ")?;
                if let Some(text) = text {
                    write!(f, "{text:?}: ")?;
                }
                write!(f, "expected {expected}")?;
                match read {
                    0 => Ok(()),
                    1 => write!(f, " (1 request read before it)"),
                    n => write!(f, " ({n} requests read before it)"),
                }
            }
            TraceError::Empty { name } => write!(f, "{name}: no request in it"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TraceError::Read { source, .. } | TraceError::Open { source, .. } => Some(source),
            _ => None,
        }
    }
}
