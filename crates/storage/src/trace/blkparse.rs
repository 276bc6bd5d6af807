//! The default output of `blkparse`.
//!
//! `major,minor cpu sequence seconds.nanoseconds pid action RWBS sector + sectors [process]`. A request arrives with
//! its queue event (action Q); remaps, merges, dispatches and completions of the same request are passed over, as are
//! flushes, discards and messages. At the end blkparse prints a summary, which begins with a line "CPU..." or "Total
//! ..." and holds no requests.

use super::fields::{decimal_ns, sectors, whole, MAX_LBA};
use super::format::MINOR_BITS;
use super::lines::LineFormat;
use super::request::{Kind, Request};
use units::NS_PER_S;

const SHAPE: &str = "\"major,minor cpu sequence time pid action RWBS sector + sectors\", as blkparse prints by default";

#[derive(Default)]
pub struct Blkparse {
    summary: bool,
    events: u64,
    queued: u64,
}

impl LineFormat for Blkparse {
    fn line(&mut self, text: &str) -> Result<Option<Request>, String> {
        let trimmed = text.trim_start();
        if self.summary || trimmed.is_empty() {
            return Ok(None);
        }
        if ["CPU", "Total", "Throughput", "Events", "Skips", "Input file"].iter().any(|word| trimmed.starts_with(word))
        {
            self.summary = true;
            return Ok(None);
        }
        let mut words = trimmed.split_ascii_whitespace();
        let shape = || SHAPE.to_owned();
        let (Some(device), Some(cpu), Some(_), Some(time), Some(_), Some(action)) =
            (words.next(), words.next(), words.next(), words.next(), words.next(), words.next())
        else {
            return Err(shape());
        };
        let (major, minor) = device.split_once(',').ok_or_else(shape)?;
        let major = whole(major, "a major device number", 0xfff)? as u32;
        let minor = whole(minor, "a minor device number", (1 << MINOR_BITS) - 1)? as u32;
        whole(cpu, "a processor's number", u64::from(u32::MAX))?;
        let arrival_ns = decimal_ns(time, "a time in s", NS_PER_S)?;
        self.events += 1;
        if action != "Q" {
            return Ok(None);
        }
        let flags = words.next().ok_or_else(shape)?;
        // A leading F is a flush before the data, a later one forced unit access; the letter between tells what is
        // done.
        let kind = match flags.bytes().find(|b| matches!(b, b'R' | b'W' | b'D' | b'N')) {
            Some(b'R') => Kind::Read,
            Some(b'W') => Kind::Write,
            _ => return Ok(None),
        };
        let Some(sector) = words.next().filter(|word| !word.starts_with('[')) else { return Ok(None) };
        let lba = whole(sector, "a sector number", MAX_LBA)?;
        if words.next() != Some("+") {
            return Err(shape());
        }
        let size = words.next().ok_or_else(shape)?;
        if size == "0" {
            return Ok(None);
        }
        let bytes = sectors(size)?;
        self.queued += 1;
        let device = major << MINOR_BITS | minor;
        Ok(Some(Request { arrival_ns, device, lba, bytes, kind, response_ns: None }))
    }

    fn end(&mut self) -> Result<(), String> {
        if self.events > 0 && self.queued == 0 {
            return Err(format!("queue events (action Q), by which requests arrive; {} events have none", self.events));
        }
        Ok(())
    }
}
