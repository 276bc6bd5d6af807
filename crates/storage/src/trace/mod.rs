//! Block traces: eight formats behind one reader that holds one line at a time.

mod blkparse;
mod detect;
mod disksim;
mod error;
mod fields;
mod file;
mod fio;
mod format;
mod lines;
mod mqsim;
mod msr;
mod order;
mod player;
mod reader;
mod replay;
mod spc;
mod srt;
mod summary;
#[cfg(test)]
mod tests;
mod validation;

pub use error::TraceError;
pub use file::{open, stream};
pub use format::Format;
pub use player::Player;
pub use reader::TraceReader;
pub use replay::{Replay, Write, Writes};
pub use summary::Summary;
pub use validation::{MeasuredRequest, ValidationReader};

use std::io::BufRead;
use std::sync::Arc;

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
    /// When it arrived, ns since an origin of the trace's own.
    pub arrival_ns: u64,
    /// Number of the device.
    pub device: u32,
    /// First sector, counted from 0 in sectors of 512 bytes. A format that counts bytes is rounded down.
    pub lba: u64,
    /// Amount of data, bytes; above zero. Range: u32, 4 GiB.
    pub bytes: u32,
    /// Read or write.
    pub kind: Kind,
    /// How long the traced system took from arrival to completion, ns, where the format says it. Range: u64.
    pub response_ns: Option<u64>,
}

impl Request {
    /// Sectors that the request touches when it begins at the start of its first sector.
    pub fn sectors(&self) -> u64 {
        u64::from(self.bytes.div_ceil(SECTOR_BYTES))
    }
}

/// Requests in the order of their arrival. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// At least one.
    pub requests: Arc<[Request]>,
}

impl Trace {
    /// Reads a whole trace; `format` None: told by its content. `name` is what errors call it.
    ///
    /// # Errors
    /// [`TraceError`] when the format is not told, reading fails, or the first line that is not right.
    pub fn read(name: &str, format: Option<Format>, from: impl BufRead) -> Result<Trace, TraceError> {
        let requests: Vec<Request> = TraceReader::new(name, format, from)?.collect::<Result<_, _>>()?;
        if requests.is_empty() {
            return Err(TraceError::Empty { name: name.to_owned() });
        }
        Ok(Trace { requests: requests.into() })
    }

    /// Time from the first to the last arrival, ns.
    pub fn span_ns(&self) -> u64 {
        let first = self.requests.first().map_or(0, |r| r.arrival_ns);
        self.requests.last().map_or(0, |r| r.arrival_ns - first)
    }
}
