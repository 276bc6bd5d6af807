//! A read or a write of an application.

use units::Time;

/// A request that its application has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Time at which the application had it.
    pub due: Time,
    /// Read or write.
    pub read: bool,
    /// First block of 512 bytes.
    pub block: u64,
    /// Blocks; above zero.
    pub blocks: u32,
    /// Number of the client's place, if the source tells its clients apart.
    pub place: u32,
}
