//! Validation traces of DiskSim: what a drive was asked, and how long it took.
//!
//! `kind action block blocks service-us pause-us`: R or W; what the host thought the drive's buffer did (Hit, Miss,
//! Doub, Trip); block and number of blocks of 512 bytes; measured service time; time from the completion to the next
//! request.

use super::error::TraceError;
use super::fields::{columns, decimal_ns, sectors, whole, MAX_LBA};
use super::lines::{LineFormat, Lines};
use super::request::{Kind, Request};
use std::io::BufRead;

const SHAPE: &str =
    "six fields: R or W, buffer action, block, blocks of 512 B, service time in us, time to the next in us";

const NS_PER_US: u64 = 1_000;

/// A request that was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredRequest {
    /// First sector.
    pub lba: u64,
    /// Amount of data, bytes.
    pub bytes: u32,
    /// Read or write.
    pub kind: Kind,
    /// Measured service time, ns.
    pub service_ns: u64,
    /// Time from its completion to the next request, ns.
    pub pause_ns: u64,
}

/// Parses a line. Err: the expected content.
pub(super) fn measured(text: &str) -> Result<MeasuredRequest, String> {
    let [kind, action, block, blocks, service, pause] =
        columns(text).map_err(|count| format!("{SHAPE}; there are {count}"))?;
    let kind = match kind {
        "R" => Kind::Read,
        "W" => Kind::Write,
        _ => return Err(format!("R or W as field 1, not {kind:?}")),
    };
    if !matches!(action, "Hit" | "Miss" | "Doub" | "Trip") {
        return Err(format!("Hit, Miss, Doub or Trip as field 2, not {action:?}"));
    }
    Ok(MeasuredRequest {
        lba: whole(block, "a block number", MAX_LBA)?,
        bytes: sectors(blocks)?,
        kind,
        service_ns: decimal_ns(service, "a service time in us", NS_PER_US)?,
        pause_ns: decimal_ns(pause, "a time to the next request in us", NS_PER_US)?,
    })
}

/// Reads a validation trace with its measurements, request by request.
pub struct ValidationReader<R> {
    name: String,
    from: R,
    lines: Lines<LastMeasurement>,
}

/// Keeps what a line said while `Lines` carries the request.
#[derive(Default)]
struct LastMeasurement(Option<MeasuredRequest>);

impl LineFormat for LastMeasurement {
    fn line(&mut self, text: &str) -> Result<Option<Request>, String> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let m = measured(text)?;
        self.0 = Some(m);
        let (lba, bytes, kind) = (m.lba, m.bytes, m.kind);
        Ok(Some(Request { arrival_ns: 0, device: 0, lba, bytes, kind, response_ns: Some(m.service_ns) }))
    }
}

impl<R: BufRead> ValidationReader<R> {
    /// A reader; `name` is what errors call the trace.
    pub fn new(name: &str, from: R) -> ValidationReader<R> {
        ValidationReader { name: name.to_owned(), from, lines: Lines::new(LastMeasurement::default()) }
    }
}

impl<R: BufRead> Iterator for ValidationReader<R> {
    type Item = Result<MeasuredRequest, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.lines.next(&self.name, &mut self.from)? {
            Ok(_) => self.lines.format_mut().0.take().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}
