//! A sender and a receiver joined by a line that does to frames what a test tells it.

use bytes::{Bytes, BytesMut};
use line_test::{Description, Mac, Message, Now, Outcome, Responder, Row, Sender, Stamp, StreamSpec, HEADER_BYTES};
use std::collections::BTreeMap;

pub const OWN: Mac = [2, 0, 0, 0, 0, 1];
pub const FAR: Mac = [2, 0, 0, 0, 0, 2];
/// Time of day at the begin, ns since 1970.
const DAY_NS: u64 = 1_790_000_000_000_000_000;

/// Fate of a frame on the line: delays of the copies that arrive, ns, after the way's delay, and a place and mask of
/// wrong bits.
#[derive(Clone, Debug, Default)]
pub struct Fate {
    pub copies: Vec<u64>,
    pub flip: Option<(usize, u8)>,
    /// Bytes that are left of it.
    pub cut: Option<usize>,
}

impl Fate {
    pub fn arrives() -> Fate {
        Fate { copies: vec![0], ..Fate::default() }
    }
}

/// A line.
pub struct Line {
    pub delay_ns: u64,
    /// Receiver's clock less the sender's, ns.
    pub ahead_ns: i64,
    /// Time that each frame costs its generator, ns.
    pub cost_ns: u64,
    /// Of so many messages one passes.
    pub message_of: u64,
    /// Time after which a copy of the first message arrives, ns.
    pub first_again_ns: Option<u64>,
    /// Times between which the sender's interface has no carrier, ns.
    pub no_carrier_ns: std::ops::Range<u64>,
}

impl Default for Line {
    fn default() -> Line {
        Line { delay_ns: 8_600_000, ahead_ns: 0, cost_ns: 0, message_of: 1, first_again_ns: None, no_carrier_ns: 0..0 }
    }
}

pub fn spec(text: &str) -> StreamSpec {
    StreamSpec::from_json(text).unwrap()
}

impl Line {
    /// Runs a stream to its end; `fate` gets the number of each counted frame. Returns what came of it.
    pub fn run(&self, spec: StreamSpec, mut fate: impl FnMut(u64) -> Fate) -> (Outcome, Vec<Row>) {
        let now = |steady_ns: u64| Now { steady_ns, day_ns: DAY_NS + steady_ns };
        let far_day = |steady_ns: u64| (DAY_NS + steady_ns).wrapping_add_signed(self.ahead_ns);
        let description = |boot| Description {
            interface: "far".into(),
            method: "test".into(),
            mtu_bytes: 9234,
            is_busy: false,
            boot,
        };
        let mut sender = Sender::new(spec, OWN, 9234, None, 1, now(0)).unwrap();
        let mut responder = Responder::new(description(2));
        let pattern = sender.pattern_bytes(9300);
        // Frames that are under way by arrival and order: to the receiver or back.
        let mut way: BTreeMap<(u64, u64), (bool, Bytes)> = BTreeMap::new();
        let (mut order, mut messages, mut at_ns) = (0, 0, 0);
        let mut rows = vec![];
        loop {
            let mut put = |at_ns: u64, there: bool, frame: Bytes| {
                order += 1;
                way.insert((at_ns, order), (there, frame));
            };
            let mut passes = || {
                messages += 1;
                // Fibonacci hashing: without order, so that no answer is lost each time.
                (u64::wrapping_mul(messages, 0x9e37_79b9_7f4a_7c15) >> 32) % self.message_of == 0
            };
            sender.set_carrier(!self.no_carrier_ns.contains(&at_ns), now(at_ns));
            while let Some(frame) = sender.poll_message(now(at_ns)) {
                if let Some(later) = self.first_again_ns.filter(|_| at_ns == 0) {
                    put(later, true, frame.clone());
                }
                if passes() {
                    put(at_ns + self.delay_ns, true, frame);
                }
            }
            while let Some(due) = sender.poll_due(now(at_ns)) {
                let mut frame = BytesMut::from(&pattern[..due.bytes]);
                frame[..6].copy_from_slice(&FAR);
                frame[6..12].copy_from_slice(&OWN);
                frame[HEADER_BYTES..][..due.stamp.len()].copy_from_slice(&due.stamp);
                let stamp = Stamp::decode(&due.stamp).unwrap();
                let fate = if stamp.kind == line_test::Kind::Test { fate(stamp.sequence) } else { Fate::arrives() };
                if let Some((place, mask)) = fate.flip {
                    frame[place] ^= mask;
                }
                frame.truncate(fate.cut.unwrap_or(usize::MAX));
                let frame = frame.freeze();
                fate.copies.iter().for_each(|later| put(at_ns + self.delay_ns + later, true, frame.clone()));
                at_ns += self.cost_ns;
            }
            while let Some(frame) = responder.poll_frame(FAR, None, far_day(at_ns)) {
                if passes() {
                    put(at_ns + self.delay_ns, false, frame);
                }
            }
            rows.extend(sender.take_rows());
            if sender.is_done() {
                return (sender.outcome(), rows);
            }
            let arrival = way.first_key_value().map(|((at_ns, _), _)| *at_ns);
            let next = arrival.into_iter().chain(sender.poll_timeout()).min().expect("something happens");
            at_ns = next.max(at_ns);
            if arrival.is_some_and(|arrival| arrival <= at_ns) {
                let ((came_ns, _), (there, frame)) = way.pop_first().expect("a frame arrives");
                let content = &frame[HEADER_BYTES..];
                if there {
                    responder.handle_frame(OWN, content, 0, far_day(came_ns));
                } else {
                    let stamp = Stamp::decode(content).unwrap();
                    let message = Message::decode(&stamp, content).unwrap();
                    sender.handle_message(FAR, &stamp, &message, DAY_NS + came_ns, now(at_ns));
                }
            }
        }
    }
}
