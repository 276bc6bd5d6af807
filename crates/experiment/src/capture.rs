//! A capture of what one node sends and receives, as pcapng that Wireshark reads.
//!
//! Segments between Fibre Channel gateways are whole: the gateways hand over the bytes of their messages, and segments
//! are cut from these, those that are sent again too. Other segments are headers alone. The frames on the links of the
//! ports behind a gateway have an interface of their own.
//!
//! A file appears under its name only when it is whole: it is written beside, then renamed. What is no file (a pipe
//! that Wireshark reads, /dev/stdout) is written to directly.

use crate::capture_notes::{Medium, Notes};
use crate::captured_stream::CapturedStream;
use crate::error::RunError;
use bytes::BytesMut;
use spec::{FcProtocolSpec, FlowSpec, WorkloadSpec};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::ops::Range;
use tcp::segment::{flags, Segment, WindowScale};
use units::Time;
use wire::fc::Frame;
use wire::pcapng::Interface;
use wire::{Conversation, Ecn, SegmentFields};

/// An open capture file.
pub struct Capture {
    path: String,
    beside: Beside,
    node: usize,
    left: u64,
    writer: wire::pcapng::Writer<BufWriter<File>>,
    /// Fibre Channel, once there was a frame.
    fibre_channel: Option<Interface>,
    /// Addresses and agreed window scales, by connection.
    conversations: Vec<Conversation>,
    /// By connection that hands over bytes: those of its sender and of its receiver.
    streams: BTreeMap<usize, [CapturedStream; 2]>,
    /// Reused for every message and frame.
    message: BytesMut,
    /// Reused for every segment.
    payload: Vec<u8>,
    /// Reused for every packet with a payload.
    packet: Vec<u8>,
    /// Order of the event that happens among those of its time, where events do not happen in their order.
    cause: Option<u64>,
    /// Packets of such events.
    notes: Notes,
    error: Option<io::Error>,
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
    /// Writes to `path` what node `node` sends and receives over `flows`, at most `limit` packets.
    ///
    /// # Errors
    /// [`RunError::Capture`]: the file cannot be made.
    pub fn create(path: &str, node: usize, limit: Option<u64>, flows: &[&FlowSpec]) -> Result<Capture, RunError> {
        let beside = Beside::of(path);
        let open = || {
            let file = File::create(beside.0.as_deref().unwrap_or(path))?;
            let out = BufWriter::with_capacity(1 << 20, file);
            // One link type for all: tcpdump reads no file with two.
            if flows.iter().any(|flow| flow.transport.ipv6) {
                wire::pcapng::Writer::of_both_ip(out)
            } else {
                wire::pcapng::Writer::new(out)
            }
        };
        let writer = open().map_err(|source| RunError::Capture { path: path.to_owned(), source })?;
        let left = limit.unwrap_or(u64::MAX);
        Ok(Capture {
            path: path.to_owned(),
            beside,
            node,
            left,
            writer,
            fibre_channel: None,
            conversations: flows.iter().zip(0..).map(|(flow, number)| conversation(flow, number)).collect(),
            streams: BTreeMap::new(),
            message: BytesMut::new(),
            payload: Vec::new(),
            packet: Vec::new(),
            cause: None,
            notes: Notes::default(),
            error: None,
            skipped: 0,
        })
    }

    /// Returns true if packets of a host at `node` are captured here.
    #[inline]
    pub fn sees(&self, node: usize) -> bool {
        node == self.node
    }

    /// A message is handed to TCP by an end of connection `flow`. `encode` appends its bytes and returns the place of
    /// zeros among them. A connection hands over all its messages or none.
    pub fn add_message(&mut self, flow: usize, from_sender: bool, encode: impl FnOnce(&mut BytesMut) -> Range<usize>) {
        if self.left == 0 || self.error.is_some() {
            return;
        }
        self.message.clear();
        let zeros = encode(&mut self.message);
        self.streams.entry(flow).or_default()[usize::from(!from_sender)].push(&self.message, zeros);
    }

    /// An event happens. With `cause`, its order among those of its time, events of other hosts at earlier times may
    /// come later: what it captures is noted until [`Capture::write_noted`].
    #[inline]
    pub fn begin_event(&mut self, cause: Option<u64>) {
        self.cause = cause;
    }

    /// Writes what was noted. No event that comes later is at an earlier time.
    pub fn write_noted(&mut self) {
        for (note, bytes) in self.notes.take().iter() {
            if self.has_room() {
                self.left -= 1;
                self.write(note.at, note.medium, bytes, note.length);
            }
        }
    }

    /// Returns true if a further packet is to be written; counts it else.
    fn has_room(&mut self) -> bool {
        if self.error.is_some() {
            return false;
        }
        if self.left == 0 {
            self.skipped += 1;
            return false;
        }
        true
    }

    /// Writes the bytes of a packet at `at`, of `length` bytes in all.
    fn write(&mut self, at: u64, medium: Medium, bytes: &[u8], length: u32) {
        let written = match (medium, self.fibre_channel) {
            (Medium::Ip, _) => self.writer.write_packet(at, bytes, length),
            (Medium::FibreChannel, Some(interface)) => self.writer.write_packet_at(interface, at, bytes, length),
            (Medium::FibreChannel, None) => self.writer.add_fibre_channel("fc").and_then(|interface| {
                self.fibre_channel = Some(interface);
                self.writer.write_packet_at(interface, at, bytes, length)
            }),
        };
        self.error = written.err();
        if self.left == 0 {
            self.streams.clear();
        }
    }

    /// Writes or notes a packet for which there is room.
    fn put(&mut self, now: Time, medium: Medium, parts: [&[u8]; 2], length: u32) {
        if let Some(cause) = self.cause {
            return self.notes.push((now.0, cause), medium, parts, length);
        }
        self.left -= 1;
        match parts {
            [bytes, []] => self.write(now.0, medium, bytes, length),
            [head, rest] => {
                let mut packet = std::mem::take(&mut self.packet);
                packet.clear();
                packet.extend_from_slice(head);
                packet.extend_from_slice(rest);
                self.write(now.0, medium, &packet, length);
                self.packet = packet;
            }
        }
    }

    /// Notes a frame that came to one end of the link between an N_Port and its gateway.
    pub fn record_frame(&mut self, now: Time, frame: &Frame) {
        if !self.has_room() {
            return;
        }
        self.message.clear();
        frame.encode_delimited(&mut self.message);
        let message = std::mem::take(&mut self.message);
        self.put(now, Medium::FibreChannel, [&message, &[]], message.len() as u32);
        self.message = message;
    }

    /// Notes a segment of connection `flow`; `from_sender` tells the direction.
    pub fn record(&mut self, now: Time, flow: usize, from_sender: bool, segment: &Segment) {
        if !self.has_room() {
            return;
        }
        self.cut_payload(now, flow, from_sender, segment);
        let headers = self.conversations[flow].headers(from_sender, &fields(segment), &self.payload);
        let payload = std::mem::take(&mut self.payload);
        self.put(now, Medium::Ip, [&headers, &payload], segment.packet_bytes());
        self.payload = payload;
    }

    /// Makes `self.payload` the bytes of `segment`, or empty where its connection hands over none.
    fn cut_payload(&mut self, now: Time, flow: usize, from_sender: bool, segment: &Segment) {
        self.payload.clear();
        let Some([client, server]) = self.streams.get_mut(&flow) else { return };
        let (own, theirs) = if from_sender { (client, server) } else { (server, client) };
        // A SYN has number 0, the first byte number 1.
        if segment.has(flags::ACK) {
            theirs.handle_ack(now, segment.ack.saturating_sub(1));
        }
        if segment.len > 0 {
            let start = segment.seq - 1;
            own.copy(start..start + u64::from(segment.len), &mut self.payload);
        }
    }

    /// Returns true after a write failed: the run need not go on.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Writes the buffered packets.
    ///
    /// # Errors
    /// [`RunError::Capture`]: the file cannot be written.
    pub fn finish(mut self) -> Result<Captured, RunError> {
        self.write_noted();
        let Capture { path, mut beside, writer, error, skipped, fibre_channel, .. } = self;
        let written = match error {
            Some(error) => Err(error),
            None => writer.finish().and_then(|_| beside.name(&path)),
        };
        let counts = Captured { skipped, has_fibre_channel: fibre_channel.is_some() };
        written.map(|()| counts).map_err(|source| RunError::Capture { path, source })
    }
}

/// Contents of a finished capture.
pub struct Captured {
    /// Packets beyond the limit.
    pub skipped: u64,
    /// The file has a second interface, of Fibre Channel frames.
    pub has_fibre_channel: bool,
}

/// The addresses of connection `number`, at the port of its protocol where its bytes are captured.
fn conversation(flow: &FlowSpec, number: u32) -> Conversation {
    let conversation = Conversation::new(number);
    let conversation = if flow.transport.ipv6 { conversation.over_ipv6() } else { conversation };
    let protocol = match &flow.workload {
        WorkloadSpec::Fc(fc) => fc.protocol,
        WorkloadSpec::Fcp(fcp) => fcp.protocol,
        _ => return conversation,
    };
    conversation.to_port(match protocol {
        FcProtocolSpec::Ifcp => wire::ifcp::PORT,
        FcProtocolSpec::Fcip => wire::fcip::PORT,
    })
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
        flags: (segment.flags & !flags::IPV6 & 0xFF) as u8,
        ecn,
        mss: segment.has(flags::SYN).then_some(segment.mss),
        window_scale: segment.wscale.filter(|_| segment.has(flags::SYN)).map(WindowScale::shift),
        sack_permitted: segment.has(flags::SACK_PERMITTED),
        timestamps: segment.has(flags::TIMESTAMPS).then_some((segment.ts_val, segment.ts_ecr)),
        sack_count: segment.sack_count,
        sacks: segment.sacks.map(|block| (block.start, block.end)),
    }
}
