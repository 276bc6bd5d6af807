//! Settings of a target.

/// Settings of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Data that one XFER_RDY asks for, bytes at most.
    pub burst_bytes: u32,
    /// Commands that one initiator may have under way; more get TASK SET FULL.
    pub commands_max: usize,
    /// Data of all commands under way, bytes; those beyond wait for their turn. One command may have more alone.
    pub data_bytes_max: u64,
    /// Aborted exchanges of one initiator whose numbers are remembered until RRQ.
    pub qualifiers_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { burst_bytes: 256 << 10, commands_max: 256, data_bytes_max: 64 << 20, qualifiers_max: 1024 }
    }
}
