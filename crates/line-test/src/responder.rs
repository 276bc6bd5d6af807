//! The receiving end of a line: counts the streams of any sender, and answers.

use crate::ethernet::Mac;
use crate::message::{Answer, Description, Message};
use crate::mix::{FRAME_BYTES_MAX, FRAME_BYTES_MIN};
use crate::receiver::{Arrival, Receiver};
use crate::report::Report;
use crate::stamp::{Kind, Stamp};
use bytes::Bytes;
use std::collections::VecDeque;

/// Streams that are known; a further one takes the place of that which was silent for longest.
pub const STREAMS_MAX: usize = 16;
/// Messages that wait to be sent. More are questions that nobody waits for any more.
const OUTBOX_MAX: usize = 64;
/// Time without a frame after which a stream is over, ns.
const SILENCE_NS: u64 = 2_000_000_000;

/// A stream that is received.
#[derive(Debug)]
struct Stream {
    from: Mac,
    number: u32,
    receiver: Receiver,
    heard_ns: u64,
    /// Frames of the stream, when its sender said that it sent no more.
    sent: Option<u64>,
    answer: Option<Answer>,
    drops_before: (u64, u64),
}

/// The receiving end.
#[derive(Debug)]
pub struct Responder {
    description: Description,
    streams: Vec<Stream>,
    latest: usize,
    outbox: VecDeque<(Mac, u32, Message)>,
    drops: (u64, u64),
}

impl Responder {
    /// An end without streams. `is_busy` of the description is its own affair.
    pub fn new(description: Description) -> Responder {
        Responder { description, streams: vec![], latest: 0, outbox: VecDeque::new(), drops: (0, 0) }
    }

    /// Takes the numbers of frames that the kernel dropped for want of room and that the interface dropped, since the
    /// end was opened.
    pub fn set_drops(&mut self, ring: u64, interface: u64) {
        self.drops = (ring, interface);
    }

    /// Takes a frame: its sender, what stands behind addresses, tag and type, the tag's bytes, and the time of arrival
    /// in ns since 1970.
    #[inline]
    pub fn handle_frame(&mut self, from: Mac, content: &[u8], tag_bytes: usize, at_ns: u64) {
        let Some(stamp) = Stamp::decode(content) else {
            let of_sender = self.streams.iter_mut().filter(|stream| stream.from == from && stream.sent.is_none());
            if let Some(stream) = of_sender.max_by_key(|stream| stream.heard_ns) {
                stream.receiver.handle_bad_header();
            }
            return;
        };
        match stamp.kind {
            Kind::Test => {
                if let Some(stream) = self.find(from, stamp.stream) {
                    stream.heard_ns = at_ns;
                    stream.receiver.handle_frame(&Arrival { stamp, content, tag_bytes, at_ns });
                }
            }
            Kind::Ramp => {}
            Kind::Message => {
                if let Some(message) = Message::decode(&stamp, content) {
                    self.handle_message(from, &stamp, message, at_ns);
                }
            }
        }
    }

    #[inline]
    fn find(&mut self, from: Mac, number: u32) -> Option<&mut Stream> {
        let is = |stream: &Stream| stream.number == number && stream.from == from;
        if !self.streams.get(self.latest).is_some_and(is) {
            self.latest = self.streams.iter().position(is)?;
        }
        self.streams.get_mut(self.latest)
    }

    fn handle_message(&mut self, from: Mac, stamp: &Stamp, message: Message, at_ns: u64) {
        let reply = match message {
            Message::Hello => {
                let is_busy = self.is_busy(from, stamp.stream, at_ns);
                Message::Here(Description { is_busy, ..self.description.clone() })
            }
            // A stream is alone on its line: two would lose each other's frames. A known one began anew, whose first
            // answer was lost, or is a copy that the line made: what it counted stays.
            Message::Begin { .. } if self.is_busy(from, stamp.stream, at_ns) => Message::Busy,
            Message::Begin { largest_bytes } if (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&largest_bytes) => {
                self.begin(from, stamp.stream, largest_bytes, at_ns);
                Message::Begun { asked_ns: stamp.sent_ns, came_ns: at_ns, boot: self.description.boot }
            }
            Message::Ask { number, sent } => {
                let drops = self.drops;
                let Some(stream) = self.find(from, stamp.stream) else { return };
                Message::Tell(Box::new(stream.answer(number, sent, stamp.sent_ns, at_ns, drops)))
            }
            Message::Begin { .. } | Message::Here(_) | Message::Busy | Message::Begun { .. } | Message::Tell(_) => {
                return
            }
        };
        if self.outbox.len() < OUTBOX_MAX {
            self.outbox.push_back((from, stamp.stream, reply));
        }
    }

    fn is_busy(&self, from: Mac, number: u32, at_ns: u64) -> bool {
        self.streams.iter().any(|stream| (stream.from, stream.number) != (from, number) && !stream.is_over(at_ns))
    }

    /// Begins to count a stream.
    fn begin(&mut self, from: Mac, number: u32, largest_bytes: u32, at_ns: u64) {
        if self.streams.iter().any(|stream| stream.number == number && stream.from == from) {
            return;
        }
        if self.streams.len() == STREAMS_MAX {
            let longest_over = (0..STREAMS_MAX).min_by_key(|at| self.streams[*at].heard_ns);
            self.streams.remove(longest_over.expect("the list is full"));
        }
        let drops_before = self.drops;
        let receiver = Receiver::new(largest_bytes);
        self.streams.push(Stream { from, number, receiver, heard_ns: at_ns, sent: None, answer: None, drops_before });
    }

    /// The next answer as a frame without check sequence.
    pub fn poll_frame(&mut self, own: Mac, vlan: Option<u16>, now_ns: u64) -> Option<Bytes> {
        let (to, stream, message) = self.outbox.pop_front()?;
        Some(message.frame(own, to, vlan, stream, now_ns))
    }

    /// The last streams in the order in which they began: sender, number, counts, whether it is over.
    pub fn streams(&self, now_ns: u64) -> Vec<(Mac, u32, Report, bool)> {
        let row = |stream: &Stream| {
            (stream.from, stream.number, stream.report(stream.sent, self.drops), stream.is_over(now_ns))
        };
        self.streams.iter().map(row).collect()
    }
}

impl Stream {
    fn is_over(&self, now_ns: u64) -> bool {
        self.sent.is_some() || now_ns > self.heard_ns.saturating_add(SILENCE_NS)
    }

    fn report(&self, sent: Option<u64>, drops: (u64, u64)) -> Report {
        Report {
            ring_drops: drops.0.saturating_sub(self.drops_before.0),
            interface_drops: drops.1.saturating_sub(self.drops_before.1),
            ..self.receiver.report(sent)
        }
    }

    /// Answers a question. The same one again, whose answer was lost, has the same counts, but for the last one.
    fn answer(&mut self, number: u64, sent: Option<u64>, asked_ns: u64, at_ns: u64, drops: (u64, u64)) -> Answer {
        self.sent = sent.or(self.sent);
        match &mut self.answer {
            Some(before) if before.number == number && sent.is_none() => {
                (before.asked_ns, before.came_ns) = (asked_ns, at_ns);
                before.clone()
            }
            before => {
                let window = match before {
                    Some(before) if before.number == number => before.window,
                    _ => self.receiver.take_window(),
                };
                let receiver_report = self.receiver.report(sent);
                let report = Report {
                    ring_drops: drops.0.saturating_sub(self.drops_before.0),
                    interface_drops: drops.1.saturating_sub(self.drops_before.1),
                    ..receiver_report
                };
                let answer = Answer { number, asked_ns, came_ns: at_ns, report, window };
                *before = Some(answer.clone());
                answer
            }
        }
    }
}
