//! A capture of what one node sends and receives, as pcapng that Wireshark reads.

use crate::error::LabError;
use std::fs::File;
use std::io::BufWriter;
use tcp::segment::Segment;
use units::Time;

/// An open capture file.
pub struct Capture {
    path: String,
    node: usize,
    left: u64,
    writer: wire::pcapng::Writer<BufWriter<File>>,
    error: Option<std::io::Error>,
    captured: u64,
    skipped: u64,
}

impl Capture {
    pub fn create(path: &str, node: usize, limit: Option<u64>) -> Result<Capture, LabError> {
        let open = || {
            let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
            wire::pcapng::Writer::new(file)
        };
        let writer = open().map_err(|source| LabError::Capture { path: path.to_owned(), source })?;
        let left = limit.unwrap_or(u64::MAX);
        Ok(Capture { path: path.to_owned(), node, left, writer, error: None, captured: 0, skipped: 0 })
    }

    /// Whether packets of a host at `node` are seen here.
    #[inline]
    pub fn sees(&self, node: usize) -> bool {
        node == self.node
    }

    /// Notes a segment of connection `flow`; `from_sender` tells the direction.
    pub fn record(&mut self, now: Time, flow: usize, from_sender: bool, segment: &Segment) {
        if self.error.is_some() {
            return;
        }
        if self.left == 0 {
            self.skipped += 1;
            return;
        }
        self.left -= 1;
        self.captured += 1;
        let header = wire_header(flow, from_sender, segment);
        if let Err(error) = self.writer.write_packet(now.0, &header.to_bytes(), segment.packet_bytes()) {
            self.error = Some(error);
        }
    }

    /// Writes what is buffered. Returns (packets captured, packets beyond the limit).
    pub fn finish(mut self) -> Result<(u64, u64), LabError> {
        let failed = match self.error.take() {
            Some(error) => Err(error),
            None => self.writer.finish().map(|_| ()),
        };
        failed.map(|()| (self.captured, self.skipped)).map_err(|source| LabError::Capture { path: self.path, source })
    }
}

fn wire_header(flow: usize, from_sender: bool, segment: &Segment) -> wire::TcpPacket {
    let mut packet = wire::TcpPacket::from_segment_fields(flow as u32, from_sender);
    packet.seq = segment.seq;
    packet.ack = segment.ack;
    packet
}
