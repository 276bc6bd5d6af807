//! The number of a connection.

/// A connection, as the caller numbers it; never used twice.
pub type ConnectionId = u64;
