//! Hewlett-Packard's SRT traces, versions 1.1 to 1.4 of the record, as hplajw and cello were published (Ruemmler and
//! Wilkes, USENIX Winter 1993): a header in text that ends with a form feed, then binary records, big-endian.
//!
//! A record is words of 32 bits: its size in bytes; version (high half) and type (low half: 1 an I/O, 4 a suspect
//! one); time of enqueueing in s and us since the header's `tracedate`; start and end of the access in us after that;
//! size in bytes; sector on the disk; device (unit in bits 8 to 15); driver; cylinder; flags (lowest bit: read);
//! origin; from version 4 the queue's length; for a suspect record its flags. Sectors are of the size that the header
//! states per disk (`sectorsize`, 256 bytes on the HP 335H). Suspect records, which the tracer marked as doubtful, are
//! passed over.

use super::error::{TraceError, TracePosition};
use super::request::{Kind, Request, SECTOR_BYTES};
use std::io::{BufRead, Read};
use units::NS_PER_S;

/// Header bytes: those published have some thousand.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// The longest record: version 4, suspect, is 15 words.
const RECORD_BYTES_MAX: usize = 64;

/// Words that all versions have.
const WORDS: usize = 13;

const FORM_FEED: u8 = 0x0c;

#[derive(Default)]
pub struct Srt {
    begun: bool,
    /// Bytes per sector by unit, as the header states them.
    sector_bytes: Vec<(u32, u64)>,
    byte: u64,
    last_ns: u64,
    read: u64,
}

impl Srt {
    pub fn next(&mut self, name: &str, from: &mut impl BufRead) -> Option<Result<Request, TraceError>> {
        if !self.begun {
            if let Err(error) = self.header(name, from) {
                return Some(Err(error));
            }
            self.begun = true;
        }
        loop {
            match self.record(name, from) {
                Ok(Some(Some(request))) => {
                    self.read += 1;
                    return Some(Ok(request));
                }
                Ok(Some(None)) => {}
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn header(&mut self, name: &str, from: &mut impl BufRead) -> Result<(), TraceError> {
        let mut header = Vec::new();
        let got = from.by_ref().take(HEADER_BYTES_MAX).read_until(FORM_FEED, &mut header);
        got.map_err(|source| self.unread(name, source))?;
        self.byte = header.len() as u64;
        if header.is_empty() {
            return Err(TraceError::Empty { name: name.to_owned() });
        }
        if !header.starts_with(b"$$TR_IOREC") {
            self.byte = 0;
            return Err(self.wrong(name, "a header that begins with \"$$TR_IOREC\""));
        }
        if header.last() != Some(&FORM_FEED) {
            return Err(self.wrong(name, "a header in text that a form feed (byte 12) ends: is the file cut off?"));
        }
        self.sector_bytes = sector_sizes(&String::from_utf8_lossy(&header));
        Ok(())
    }

    /// None: the end. Some(None): a record without a request.
    fn record(&mut self, name: &str, from: &mut impl BufRead) -> Result<Option<Option<Request>>, TraceError> {
        let mut record = [0; RECORD_BYTES_MAX];
        let got = fill(from, &mut record[..4]).map_err(|source| self.unread(name, source))?;
        if got == 0 {
            return Ok(None);
        }
        let size = u32::from_be_bytes([record[0], record[1], record[2], record[3]]) as usize;
        if got == 4 && !(4 * WORDS..=RECORD_BYTES_MAX).contains(&size) {
            return Err(self.wrong(name, &format!("a record of {} to {RECORD_BYTES_MAX} bytes, not {size}", 4 * WORDS)));
        }
        let more =
            if got == 4 { fill(from, &mut record[4..size]).map_err(|source| self.unread(name, source))? } else { 0 };
        if got + more < size.max(4) {
            let text =
                format!("a record of {} bytes, of which {} are there: is the file cut off?", size.max(4), got + more);
            return Err(self.wrong(name, &text));
        }
        let word = |index: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| record[4 * index + i]));
        let (version, kind) = (word(1) >> 16, word(1) & 0xffff);
        let expected_size = 4 * (WORDS + usize::from(version == 4) + usize::from(kind == 4));
        if !(1..=4).contains(&version) || !matches!(kind, 1 | 4) || size != expected_size {
            let text = "version 1 to 4, type 1 (an I/O) or 4 (a suspect one), and the size that goes with them";
            return Err(self.wrong(name, &format!("{text}, not version {version}, type {kind}, {size} bytes")));
        }
        // u32 seconds are 136 years: the product and the sum fit.
        let arrival_ns = u64::from(word(2)) * NS_PER_S + u64::from(word(3)) * 1_000;
        if arrival_ns < self.last_ns {
            return Err(self.wrong(name, &format!("a time of {} ns or later, as in the record before", self.last_ns)));
        }
        let (bytes, device) = (word(6), word(8) >> 8 & 0xff);
        let sector_bytes =
            self.sector_bytes.iter().find(|(unit, _)| *unit == device).map_or(u64::from(SECTOR_BYTES), |s| s.1);
        if bytes == 0 {
            return Err(self.wrong(name, "a size of at least 1 byte (word 7)"));
        }
        self.last_ns = arrival_ns;
        self.byte += size as u64;
        if kind == 4 {
            return Ok(Some(None));
        }
        Ok(Some(Some(Request {
            arrival_ns,
            device,
            // At most 2^32 sectors of a size that the header's reader holds below 2^16.
            lba: u64::from(word(7)) * sector_bytes / u64::from(SECTOR_BYTES),
            bytes,
            kind: if word(11) & 1 == 1 { Kind::Read } else { Kind::Write },
            response_ns: Some(u64::from(word(5)) * 1_000),
        })))
    }

    fn unread(&self, name: &str, source: std::io::Error) -> TraceError {
        TraceError::Read { name: name.to_owned(), place: TracePosition::Byte(self.byte), source }
    }

    fn wrong(&self, name: &str, expected: &str) -> TraceError {
        let (name, place) = (name.to_owned(), TracePosition::Byte(self.byte));
        TraceError::Content { name, place, text: None, expected: expected.to_owned(), read: self.read }
    }
}

/// Reads until `into` is full or the end; returns the bytes read.
fn fill(from: &mut impl BufRead, into: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match from.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// (unit, bytes per sector) of each disk that the header describes: `0 -> { ... sectorsize = 256, ... }` within `disks
/// = {`.
fn sector_sizes(header: &str) -> Vec<(u32, u64)> {
    let mut sizes = Vec::new();
    let (mut depth, mut unit) = (0, None);
    for line in header.lines() {
        let line = line.trim();
        if let (1, Some((number, _))) = (depth, line.split_once("->")) {
            unit = number.trim().parse().ok();
        }
        if let (2, Some(unit), Some(value)) = (depth, unit, line.strip_prefix("sectorsize")) {
            let value = value.trim_start_matches([' ', '\t', '=']).trim_end_matches(',');
            if let Some(bytes) = value.parse::<u64>().ok().filter(|&bytes| bytes > 0 && bytes < 1 << 16) {
                sizes.push((unit, bytes));
            }
        }
        for byte in line.bytes() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::sector_sizes;

    #[test]
    fn the_header_states_the_sectors_of_each_disk() {
        let header =
            "disks = {\n 0 -> {\n nspt = 113,\n queue = {fcfs, 1},\n sectorsize  = 256,\n sections = {\n 8 -> {\n \
                      sectorsize = 7\n}\n}\n},\n 1 -> {\n sectorsize = 1024\n }\n};\n";
        assert_eq!(sector_sizes(header), [(0, 256), (1, 1024)]);
    }
}
