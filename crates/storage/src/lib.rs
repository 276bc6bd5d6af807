//! Storage traffic: block traces as they were recorded, and as they are played.
//!
//! What it does: reads traces strictly (what does not parse is an error with its line, never a guess), and turns the writes of
//! a trace into a timetable, slowed down and repeated as asked. What it does not: it knows no network, and its readers take
//! any `BufRead`; only [`open`] touches a file.
//!
//! **Invariant: requests are in the order of their arrival, and a replay never goes back in time or drifts from its trace.**

#![forbid(unsafe_code)]

mod error;
mod mqsim;
mod replay;

pub use error::TraceError;
pub use mqsim::MqsimReader;
pub use replay::{Replay, Write};

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a sector in traces.
pub const SECTOR_BYTES: u32 = 512;

/// Formats that [`open`] and [`Trace::read`] know.
pub const FORMATS: &[&str] = &["mqsim"];

/// What a request does.
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
    /// First sector, counted from 0 in sectors of 512 bytes.
    pub lba: u64,
    /// Amount of data, bytes; above zero. Range: u32, 4 GiB.
    pub bytes: u32,
    /// Read or write.
    pub kind: Kind,
}

/// Requests in the order of their arrival. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// At least one.
    pub requests: Arc<[Request]>,
}

impl Trace {
    /// Reads a whole trace of the given format; `name` is what errors call it.
    ///
    /// # Errors
    /// [`TraceError`] when the format is unknown, reading fails, or the first line that is not right.
    pub fn read(name: &str, format: &str, from: impl BufRead) -> Result<Trace, TraceError> {
        let requests: Vec<Request> = match format {
            "mqsim" => MqsimReader::new(name, from).collect::<Result<_, _>>()?,
            _ => return Err(TraceError::Format { format: format.to_owned() }),
        };
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

/// Opens and reads the trace at `path`.
///
/// # Errors
/// As [`Trace::read`], naming the path.
pub fn open(path: impl AsRef<Path>, format: &str) -> Result<Trace, TraceError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    if !FORMATS.contains(&format) {
        return Err(TraceError::Format { format: format.to_owned() });
    }
    let file =
        std::fs::File::open(path).map_err(|source| TraceError::Read { name: name.clone(), line: None, source })?;
    Trace::read(&name, format, std::io::BufReader::new(file))
}
