//! Capture files in the pcapng format (draft-ietf-opsawg-pcapng): one section, one interface of raw IPv4 packets, times
//! in ns.

use crate::error::{require, WireError};
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Tells the byte order; written in this machine's as little-endian.
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// LINKTYPE_IPV4: the packet begins with its IPv4 header.
const LINKTYPE_IPV4: u16 = 228;
/// Option if_tsresol of an interface: 9, times are in 10^-9 s.
const IF_TSRESOL: u16 = 9;
const NANOSECONDS: u8 = 9;
/// Option if_name.
const IF_NAME: u16 = 2;
/// Option shb_userappl of a section.
const SHB_USERAPPL: u16 = 4;
/// Bytes around the body of a block: type, length, length again.
const FRAME_BYTES: usize = 12;

/// Writes a capture.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// The block being made; kept to use its memory again.
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a capture on `out`, best a buffered one.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, block: Vec::with_capacity(256) };
        writer.begin(SECTION_HEADER);
        writer.put32(BYTE_ORDER_MAGIC);
        writer.put16(1); // major version
        writer.put16(0); // minor version
        writer.block.extend_from_slice(&u64::MAX.to_le_bytes()); // length of the section: not given
        writer.option(SHB_USERAPPL, b"elephan");
        writer.option(0, b"");
        writer.end()?;
        writer.begin(INTERFACE_DESCRIPTION);
        writer.put16(LINKTYPE_IPV4);
        writer.put16(0);
        writer.put32(0); // no limit on captured bytes
        writer.option(IF_NAME, b"sim");
        writer.option(IF_TSRESOL, &[NANOSECONDS]);
        writer.option(0, b"");
        writer.end()?;
        Ok(writer)
    }

    /// Adds a packet of `original_bytes`, of which `captured` is the beginning, seen at `time_ns`.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn write_packet(&mut self, time_ns: u64, captured: &[u8], original_bytes: u32) -> io::Result<()> {
        self.begin(ENHANCED_PACKET);
        self.put32(0); // interface
        self.put32((time_ns >> 32) as u32);
        self.put32(time_ns as u32);
        self.put32(captured.len() as u32);
        self.put32(original_bytes.max(captured.len() as u32));
        self.block.extend_from_slice(captured);
        self.pad();
        self.end()
    }

    /// Flushes, and gives the writer back.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put32(kind);
        self.put32(0); // length, known at the end
    }

    fn end(&mut self) -> io::Result<()> {
        let length = self.block.len() as u32 + 4;
        self.put32(length);
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.out.write_all(&self.block)
    }

    fn put16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn put32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put16(code);
        self.put16(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }

    /// Blocks and options are multiples of 4 bytes.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }
}

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured<'a> {
    /// When it was seen, ns.
    pub time_ns: u64,
    /// Bytes it had.
    pub original_bytes: u32,
    /// Its beginning.
    pub bytes: &'a [u8],
}

/// Reads packets from the bytes of a capture as [`Writer`] makes them: little-endian, one interface, times in ns.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    /// # Errors
    /// When `capture` does not begin with a little-endian section.
    pub fn new(capture: &'a [u8]) -> Result<Packets<'a>, WireError> {
        require(capture, FRAME_BYTES, "pcapng section header")?;
        let (kind, magic) = (word(capture, 0), word(capture, 8));
        if kind != SECTION_HEADER {
            return Err(WireError::Malformed { field: "pcapng first block", value: u64::from(kind) });
        }
        if magic != BYTE_ORDER_MAGIC {
            return Err(WireError::Malformed { field: "pcapng byte order", value: u64::from(magic) });
        }
        Ok(Packets { rest: capture })
    }

    fn block(&mut self) -> Result<(u32, &'a [u8]), WireError> {
        require(self.rest, FRAME_BYTES, "pcapng block")?;
        let (kind, length) = (word(self.rest, 0), word(self.rest, 4) as usize);
        let malformed = WireError::Malformed { field: "pcapng block length", value: length as u64 };
        if length < FRAME_BYTES || length % 4 != 0 {
            return Err(malformed);
        }
        require(self.rest, length, "pcapng block")?;
        if word(self.rest, length - 4) as usize != length {
            return Err(malformed);
        }
        let body = &self.rest[8..length - 4];
        self.rest = &self.rest[length..];
        Ok((kind, body))
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Captured<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (kind, body) = match self.block() {
                Ok(block) => block,
                Err(error) => {
                    self.rest = &[];
                    return Some(Err(error));
                }
            };
            if kind != ENHANCED_PACKET {
                continue;
            }
            return Some(require(body, 20, "pcapng packet").and_then(|()| {
                let captured = word(body, 12) as usize;
                require(&body[20..], captured, "pcapng packet data")?;
                Ok(Captured {
                    time_ns: u64::from(word(body, 4)) << 32 | u64::from(word(body, 8)),
                    original_bytes: word(body, 16),
                    bytes: &body[20..20 + captured],
                })
            }));
        }
        None
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let packets = [(0, vec![0x45; 40], 1500), (u64::MAX, vec![0x45; 41], 41), (1 << 40, vec![], 7)];
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (time, bytes, original) in &packets {
            writer.write_packet(*time, bytes, *original).unwrap();
        }
        let file = writer.finish().unwrap();
        let read: Vec<_> = Packets::new(&file).unwrap().map(|p| p.unwrap()).collect();
        for (written, read) in packets.iter().zip(&read) {
            assert_eq!((written.0, &written.1[..], written.2), (read.time_ns, read.bytes, read.original_bytes));
        }
        assert_eq!(read.len(), packets.len());
    }

    #[test]
    fn a_cut_file_is_an_error_and_not_a_panic() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.write_packet(5, &[0x45; 40], 1500).unwrap();
        let file = writer.finish().unwrap();
        let whole = |n: usize| Packets::new(&file[..n]).and_then(|p| p.collect::<Result<Vec<_>, _>>());
        for cut in 0..file.len() {
            assert!(whole(cut).map_or(true, |packets| packets.is_empty()), "cut at {cut}");
        }
        assert_eq!(whole(file.len()).unwrap().len(), 1);
    }
}
