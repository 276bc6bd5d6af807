//! Settings of a unit: those that never change, and those that initiators may change.

/// Size of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Logical blocks.
    pub blocks: u64,
    /// Bytes of one: 512 or 4096.
    pub block_bytes: u32,
    /// Bytes of a physical block, a power of two times that of a logical one; 1 GiB at most.
    pub physical_bytes: u32,
}

/// Names of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// At most 8 characters.
    pub vendor: String,
    /// At most 16.
    pub product: String,
    /// At most 4.
    pub revision: String,
    /// Serial number, at most 36.
    pub serial: String,
    /// Of the target port, for VPD page 83.
    pub target: String,
}

/// Everything that does not change in a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LunConfig {
    /// Size.
    pub geometry: Geometry,
    /// Names.
    pub identity: Identity,
    /// Writes are refused.
    pub read_only: bool,
    /// Blocks can be unmapped.
    pub thin: bool,
    /// The write cache is on at the start: writes without FUA are durable after SYNCHRONIZE CACHE only.
    pub write_cache: bool,
}

/// Changeable fields of mode pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Modes {
    /// WCE: a write is durable after FUA or SYNCHRONIZE CACHE only.
    pub write_cache: bool,
    /// D_SENSE.
    pub descriptor_sense: bool,
    /// SWP.
    pub software_protected: bool,
}
