//! One direction of a connection as bytes, for a capture: the simulator moves lengths alone.

use std::collections::VecDeque;
use std::ops::Range;
use units::{Span, Time};

/// Least time for which bytes are kept after they were acknowledged, for segments that come late: the maximum segment
/// lifetime (RFC 9293, section 3.4.2), as Linux has it.
const KEPT: Span = Span::from_millis(30_000);

/// Messages in the order in which they were handed to TCP.
#[derive(Default)]
pub struct CapturedStream {
    messages: VecDeque<Message>,
    /// Bytes of all messages so far.
    end: u64,
    /// Bytes that were acknowledged.
    acknowledged: u64,
    /// Time at which messages were dropped last, and the bytes acknowledged then.
    dropped: (Time, u64),
}

/// A message without the zeros of a payload that the simulator does not move.
struct Message {
    /// Bytes of the stream before it.
    start: u64,
    /// Bytes of it before the zeros.
    head: u32,
    zeros: u32,
    /// All of it but the zeros.
    bytes: Box<[u8]>,
}

impl Message {
    fn append_to(&self, into: &mut Vec<u8>) {
        let (head, tail) = self.bytes.split_at(self.head as usize);
        into.extend_from_slice(head);
        into.resize(into.len() + self.zeros as usize, 0);
        into.extend_from_slice(tail);
    }
}

impl CapturedStream {
    /// Adds a message, of which the bytes at `zeros` are zeros.
    pub fn push(&mut self, message: &[u8], zeros: Range<usize>) {
        let bytes = [&message[..zeros.start], &message[zeros.end..]].concat().into();
        let (head, zeros) = (zeros.start as u32, zeros.len() as u32);
        self.messages.push_back(Message { start: self.end, head, zeros, bytes });
        self.end += message.len() as u64;
    }

    /// Puts the bytes at `range` in place of what is in `into`; leaves it empty where not all of them are kept.
    pub fn copy(&self, range: Range<u64>, into: &mut Vec<u8>) {
        into.clear();
        let first = self.messages.partition_point(|message| message.start <= range.start);
        if range.end > self.end || first == 0 {
            return;
        }
        let messages = self.messages.range(first - 1..);
        messages.take_while(|message| message.start < range.end).for_each(|message| message.append_to(into));
        let before = (range.start - self.messages[first - 1].start) as usize;
        into.truncate(before + (range.end - range.start) as usize);
        into.drain(..before);
    }

    /// The first `bytes` were acknowledged.
    pub fn handle_ack(&mut self, now: Time, bytes: u64) {
        self.acknowledged = self.acknowledged.max(bytes);
        let (at, below) = self.dropped;
        if now.since(at) < KEPT {
            return;
        }
        while self.messages.get(1).is_some_and(|second| second.start <= below) {
            self.messages.pop_front();
        }
        self.dropped = (now, self.acknowledged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two messages: five bytes with three zeros, four bytes without.
    fn stream() -> CapturedStream {
        let mut stream = CapturedStream::default();
        stream.push(&[1, 0, 0, 0, 2], 1..4);
        stream.push(&[3, 4, 5, 6], 4..4);
        stream
    }

    fn copied(stream: &CapturedStream, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![9];
        stream.copy(range, &mut bytes);
        bytes
    }

    #[test]
    fn any_part_of_the_stream_is_copied() {
        let (stream, all) = (stream(), [1, 0, 0, 0, 2, 3, 4, 5, 6]);
        for start in 0..all.len() {
            for end in start..=all.len() {
                assert_eq!(copied(&stream, start as u64..end as u64), all[start..end], "{start}..{end}");
            }
        }
        assert!(copied(&stream, 5..10).is_empty(), "more than there is");
        assert!(copied(&CapturedStream::default(), 0..1).is_empty());
    }

    #[test]
    fn acknowledged_bytes_are_dropped_after_a_segments_lifetime() {
        let mut stream = stream();
        stream.handle_ack(Time::ZERO, 5);
        stream.handle_ack(Time(KEPT.0), 9);
        assert_eq!(copied(&stream, 0..5).len(), 5, "acknowledged just now, as far as the last look knows");
        stream.handle_ack(Time(2 * KEPT.0 - 1), 9);
        assert_eq!(copied(&stream, 0..5).len(), 5);
        stream.handle_ack(Time(2 * KEPT.0), 9);
        assert!(copied(&stream, 0..5).is_empty());
        assert_eq!(copied(&stream, 5..9), [3, 4, 5, 6], "the last one stays");
    }
}
