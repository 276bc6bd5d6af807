//! Faults of a frame or a text.

use std::fmt;

/// Reason for which bytes are no PDU, or a data segment no text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IscsiError {
    /// The data segment is longer than what the receiver declared.
    TooLong {
        /// Name of the PDU.
        pdu: &'static str,
        /// Bytes that it announces.
        bytes: u32,
        /// Most that was declared (MaxRecvDataSegmentLength).
        most: u32,
    },
    /// The header digest does not match.
    HeaderDigest {
        /// As received.
        received: u32,
        /// As computed.
        computed: u32,
    },
    /// An additional header segment does not fit into the length of all of them.
    Ahs {
        /// Bytes that the segment needs.
        needed: usize,
        /// Bytes that are left.
        available: usize,
    },
    /// A data segment is not a list of key=value pairs.
    Text(String),
}

impl fmt::Display for IscsiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IscsiError::TooLong { pdu, bytes, most } => {
                write!(f, "{pdu}: data segment of {bytes} bytes, at most {most} were declared")
            }
            IscsiError::HeaderDigest { received, computed } => {
                write!(f, "header digest {received:#010x}, {computed:#010x} would be right")
            }
            IscsiError::Ahs { needed, available } => {
                write!(f, "an additional header segment needs {needed} bytes, {available} are left of TotalAHSLength")
            }
            IscsiError::Text(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for IscsiError {}
