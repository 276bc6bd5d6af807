//! Faults of bytes.

use std::fmt;

/// Reason for which bytes do not parse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// There are fewer bytes than the part needs.
    Truncated {
        /// The part.
        part: &'static str,
        /// Bytes it needs.
        needed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// A field has a value that the format does not allow.
    Malformed {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Truncated { part, needed, available } => {
                write!(f, "{part} needs {needed} bytes, there are {available}")
            }
            WireError::Malformed { field, value } => write!(f, "{field} = {value} is not allowed"),
        }
    }
}

impl std::error::Error for WireError {}

/// The first `needed` bytes of a part.
pub(crate) fn require(bytes: &[u8], needed: usize, part: &'static str) -> Result<(), WireError> {
    if bytes.len() < needed {
        return Err(WireError::Truncated { part, needed, available: bytes.len() });
    }
    Ok(())
}
