//! A request of a trace.

/// Bytes of a sector in traces.
pub const SECTOR_BYTES: u32 = 512;

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
}

/// One request to a block device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Time at which it arrived, ns since an origin of the trace's own.
    pub arrival_ns: u64,
    /// Number of the device.
    pub device: u32,
    /// First sector, counted from 0 in sectors of 512 bytes. A format that counts bytes is rounded down.
    pub lba: u64,
    /// Amount of data, bytes; above zero. Range: u32, 4 GiB.
    pub bytes: u32,
    /// Read or write.
    pub kind: Kind,
    /// Time of the traced system from arrival to completion, ns, if the format has it. Range: u64.
    pub response_ns: Option<u64>,
}

impl Request {
    /// Sectors that the request touches when it begins at the start of its first sector.
    pub fn sectors(&self) -> u64 {
        u64::from(self.bytes.div_ceil(SECTOR_BYTES))
    }
}
