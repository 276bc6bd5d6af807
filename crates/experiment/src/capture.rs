//! A capture of what one node sends and receives, as pcapng that Wireshark reads.
//!
//! A file appears under its name only when it is whole: it is written beside, then renamed. What is no file (a pipe
//! that Wireshark reads, /dev/stdout) is written to directly.

use crate::error::RunError;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use tcp::segment::{flags, Segment, WindowScale};
use units::Time;
use wire::{Conversation, Ecn, SegmentFields};

/// An open capture file.
pub struct Capture {
    path: String,
    beside: Beside,
    node: usize,
    left: u64,
    writer: wire::pcapng::Writer<BufWriter<File>>,
    /// Addresses and agreed window scales, by connection.
    conversations: Vec<Conversation>,
    error: Option<io::Error>,
    captured: u64,
    skipped: u64,
}

/// The file that is being written, until it has its name; removed when it never gets it. None: written to directly.
struct Beside(Option<String>);

impl Beside {
    fn of(path: &str) -> Beside {
        let directly = fs::metadata(path).is_ok_and(|found| !found.is_file());
        Beside((!directly).then(|| format!("{path}.{}.tmp", std::process::id())))
    }

    fn name(&mut self, path: &str) -> io::Result<()> {
        if let Some(beside) = &self.0 {
            fs::rename(beside, path)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(beside) = &self.0 {
            // There is none where it could not be made.
            let _ = fs::remove_file(beside);
        }
    }
}

impl Capture {
    /// Writes to `path` what node `node` sends and receives, at most `limit` packets.
    ///
    /// # Errors
    /// [`RunError::Capture`]: the file cannot be made.
    pub fn create(path: &str, node: usize, limit: Option<u64>) -> Result<Capture, RunError> {
        let beside = Beside::of(path);
        let open = || {
            let file = File::create(beside.0.as_deref().unwrap_or(path))?;
            wire::pcapng::Writer::new(BufWriter::with_capacity(1 << 20, file))
        };
        let writer = open().map_err(|source| RunError::Capture { path: path.to_owned(), source })?;
        let left = limit.unwrap_or(u64::MAX);
        Ok(Capture {
            path: path.to_owned(),
            beside,
            node,
            left,
            writer,
            conversations: Vec::new(),
            error: None,
            captured: 0,
            skipped: 0,
        })
    }

    /// Returns true if packets of a host at `node` are captured here.
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
        while self.conversations.len() <= flow {
            self.conversations.push(Conversation::new(self.conversations.len() as u32));
        }
        let headers = self.conversations[flow].headers(from_sender, &fields(segment));
        if let Err(error) = self.writer.write_packet(now.0, &headers, segment.packet_bytes()) {
            self.error = Some(error);
        }
    }

    /// Returns true after a write failed: the run need not go on.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Writes the buffered packets. Returns (packets captured, packets beyond the limit).
    pub fn finish(self) -> Result<(u64, u64), RunError> {
        let Capture { path, mut beside, writer, error, captured, skipped, .. } = self;
        let written = match error {
            Some(error) => Err(error),
            None => writer.finish().and_then(|_| beside.name(&path)),
        };
        written.map(|()| (captured, skipped)).map_err(|source| RunError::Capture { path, source })
    }
}

/// The segment as `wire` takes it: flags in the header's 8 bits, ECN bits in the IP header.
fn fields(segment: &Segment) -> SegmentFields {
    let ecn = match (segment.has(flags::CE), segment.has(flags::ECT)) {
        (true, _) => Ecn::Ce,
        (false, true) => Ecn::Ect0,
        (false, false) => Ecn::NotEct,
    };
    SegmentFields {
        seq: segment.seq,
        ack: segment.ack,
        payload_bytes: segment.len,
        window_bytes: segment.window,
        flags: (segment.flags & 0xFF) as u8,
        ecn,
        mss: segment.has(flags::SYN).then_some(segment.mss),
        window_scale: segment.wscale.filter(|_| segment.has(flags::SYN)).map(WindowScale::shift),
        sack_permitted: segment.has(flags::SACK_PERMITTED),
        timestamps: segment.has(flags::TIMESTAMPS).then_some((segment.ts_val, segment.ts_ecr)),
        sack_count: segment.sack_count,
        sacks: segment.sacks.map(|block| (block.start, block.end)),
    }
}
