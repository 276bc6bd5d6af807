//! DiskSim's two text formats (Bucy et al., CMU-PDL-08-101).
//!
//! ascii: `arrival-ms device block blocks flags`, flags in hexadecimal, whose lowest bit is set for a read. Validation
//! traces are read by [`super::validation`].

use super::fields::{columns, decimal_ns, sectors, whole, MAX_LBA};
use super::lines::LineFormat;
use super::request::{Kind, Request};
use super::validation::measured;

const SHAPE: &str =
    "five fields: arrival in ms, device, block, blocks of 512 B, flags in hexadecimal (lowest bit: read)";

const NS_PER_MS: u64 = 1_000_000;

#[derive(Default)]
pub struct Disksim {
    last_arrival: u64,
}

impl LineFormat for Disksim {
    fn line(&mut self, text: &str) -> Result<Option<Request>, String> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let [arrival, device, block, blocks, flags] =
            columns(text).map_err(|count| format!("{SHAPE}; there are {count}"))?;
        let arrival_ns = decimal_ns(arrival, "an arrival time in ms", NS_PER_MS)?;
        if arrival_ns < self.last_arrival {
            return Err("an arrival not before that of the line before: sort the trace by arrival".to_owned());
        }
        let device = whole(device, "a device number", u64::from(u32::MAX))? as u32;
        let lba = whole(block, "a block number", MAX_LBA)?;
        let bytes = sectors(blocks)?;
        let digits = flags.strip_prefix("0x").unwrap_or(flags);
        let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let flags = if plain { u32::from_str_radix(digits, 16).ok() } else { None };
        let flags = flags.ok_or("flags in hexadecimal as field 5")?;
        let kind = if flags & 1 == 1 { Kind::Read } else { Kind::Write };
        self.last_arrival = arrival_ns;
        Ok(Some(Request { arrival_ns, device, lba, bytes, kind, response_ns: None }))
    }
}

/// A validation trace as a trace: each request arrives when the one before was done and the time between had passed.
#[derive(Default)]
pub struct Validation {
    next_ns: u64,
}

impl LineFormat for Validation {
    fn line(&mut self, text: &str) -> Result<Option<Request>, String> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let measured = measured(text)?;
        let arrival_ns = self.next_ns;
        let next = arrival_ns.checked_add(measured.service_ns).and_then(|t| t.checked_add(measured.pause_ns));
        self.next_ns = next.ok_or("times below 584 years in all")?;
        let (lba, bytes, kind) = (measured.lba, measured.bytes, measured.kind);
        Ok(Some(Request { arrival_ns, device: 0, lba, bytes, kind, response_ns: Some(measured.service_ns) }))
    }
}
