//! The Storage Performance Council's trace format (revision 1.0.1, 2002), in which the UMass repository keeps its
//! traces.
//!
//! `ASU,LBA,Size,Opcode,Timestamp[,...]`: application storage unit, LBA in blocks of 512 bytes, size in bytes, R or W
//! in either case, seconds since the start with a decimal point. Further fields are the writer's own. White space may
//! surround fields; arrivals do not go back.

use super::fields::{bytes, decimal_ns, whole, MAX_LBA};
use super::lines::LineFormat;
use super::request::{Kind, Request};
use units::NS_PER_S;

const SHAPE: &str =
    "at least five fields parted by commas: unit, LBA in 512 B blocks, size in bytes, R or W, time in s";

#[derive(Default)]
pub struct Spc {
    last_arrival: u64,
}

impl LineFormat for Spc {
    fn line(&mut self, text: &str) -> Result<Option<Request>, String> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let mut parts = text.split(',').map(str::trim);
        let (Some(unit), Some(lba), Some(size), Some(kind), Some(time)) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(format!("{SHAPE}; there are {}", text.split(',').count()));
        };
        let device = whole(unit, "a unit (ASU)", u64::from(u32::MAX))? as u32;
        let lba = whole(lba, "a block number", MAX_LBA)?;
        let bytes = bytes(size)?;
        let kind = match kind {
            "R" | "r" => Kind::Read,
            "W" | "w" => Kind::Write,
            _ => return Err(format!("R or W as field 4, not {kind:?}")),
        };
        let arrival_ns = decimal_ns(time, "a time in s", NS_PER_S)?;
        if arrival_ns < self.last_arrival {
            return Err("a time not before that of the line before: sort the trace by its fifth field".to_owned());
        }
        self.last_arrival = arrival_ns;
        Ok(Some(Request { arrival_ns, device, lba, bytes, kind, response_ns: None }))
    }
}
