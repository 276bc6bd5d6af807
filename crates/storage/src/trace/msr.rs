//! The traces of Microsoft Research Cambridge (Narayanan et al., FAST 2008), as SNIA's IOTTA repository keeps them:
//! CSV.
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: times in units of 100 ns (Windows file time), offset
//! and size in bytes, type Read or Write. A line of names may come first.

use super::fields::{bytes, whole};
use super::lines::LineFormat;
use super::request::{Kind, Request, SECTOR_BYTES};

const SHAPE: &str =
    "seven fields parted by commas: time in 100 ns, host, disk, Read or Write, offset and size in bytes, \
                     response time in 100 ns";

/// Unit of Windows file time, ns.
const TICK_NS: u64 = 100;

#[derive(Default)]
pub struct Msr {
    begun: bool,
}

impl LineFormat for Msr {
    fn line(&mut self, text: &str) -> Result<Option<Request>, String> {
        let mut fields = [""; 7];
        let mut count = 0;
        for field in text.split(',') {
            if count < fields.len() {
                fields[count] = field.trim();
            }
            count += 1;
        }
        let names = !self.begun && fields[0].eq_ignore_ascii_case("timestamp");
        self.begun = true;
        if names {
            return Ok(None);
        }
        if count != fields.len() {
            return Err(format!("{SHAPE}; there are {count}"));
        }
        let [time, _, disk, kind, offset, size, response] = fields;
        let arrival_ns = whole(time, "a time in units of 100 ns", u64::MAX / TICK_NS)? * TICK_NS;
        let device = whole(disk, "a disk number", u64::from(u32::MAX))? as u32;
        let kind = if kind.eq_ignore_ascii_case("read") {
            Kind::Read
        } else if kind.eq_ignore_ascii_case("write") {
            Kind::Write
        } else {
            return Err(format!("Read or Write as field 4, not {kind:?}"));
        };
        let lba = whole(offset, "an offset in bytes", u64::MAX)? / u64::from(SECTOR_BYTES);
        let bytes = bytes(size)?;
        let response_ns = Some(whole(response, "a response time in units of 100 ns", u64::MAX / TICK_NS)? * TICK_NS);
        Ok(Some(Request { arrival_ns, device, lba, bytes, kind, response_ns }))
    }
}
