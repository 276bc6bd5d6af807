//! What can be wrong with a trace.

use crate::FORMATS;
use std::fmt;

/// Why a trace was not read.
#[derive(Debug)]
pub enum TraceError {
    /// The format has no reader.
    Format {
        /// As asked for.
        format: String,
    },
    /// The file could not be opened or read.
    Read {
        /// The trace.
        name: String,
        /// Line that was being read, counted from 1.
        line: Option<u64>,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is not a request.
    Line {
        /// The trace.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// Its text, cut at 100 characters.
        text: String,
        /// What would be right.
        expected: String,
    },
    /// There is no request at all.
    Empty {
        /// The trace.
        name: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Format { format } => {
                write!(f, "trace format {format:?} is unknown: use one of {}", FORMATS.join(", "))
            }
            TraceError::Read { name, line: None, source } => write!(f, "{name}: cannot be opened: {source}"),
            TraceError::Read { name, line: Some(line), source } => write!(f, "{name}, line {line}: {source}"),
            TraceError::Line { name, line, text, expected } => {
                write!(f, "{name}, line {line}: {text:?}: expected {expected}")
            }
            TraceError::Empty { name } => write!(f, "{name}: no request in it; a trace has one request per line"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TraceError::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}
