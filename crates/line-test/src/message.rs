//! Messages between both ends, over the line that is tested: JSON behind a stamp, in one frame each.

use crate::ethernet::{Mac, ETHERTYPE, FCS_BYTES, HEADER_BYTES};
use crate::mix;
use crate::report::{Report, Window};
use crate::stamp::{Kind, Stamp, STAMP_BYTES};
use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use wire::ethernet::EthernetHeader;

/// Shortest frame without its check sequence, bytes.
const FRAME_BYTES_MIN: usize = mix::FRAME_BYTES_MIN as usize - FCS_BYTES;
/// Longest message, bytes: a frame of it passes an MTU of 1500.
const MESSAGE_BYTES_MAX: usize = 1500 - STAMP_BYTES - CHECK_BYTES;
const CHECK_BYTES: usize = 4;

/// A receiver, as it describes itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Description {
    /// Its interface's name.
    pub interface: String,
    /// Method by which it takes frames from the interface.
    pub method: String,
    /// Largest frame without header and check sequence, bytes.
    pub mtu_bytes: u32,
    /// A stream from another sender is under way.
    pub is_busy: bool,
    /// Number of its machine's start: ends with the same one read the same clock.
    pub boot: u64,
}

/// A receiver's counts, at a sender's question.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Number of the question.
    pub number: u64,
    /// Time at which the sender asked, by its clock, ns.
    pub asked_ns: u64,
    /// Time at which the question came, by the receiver's clock, ns.
    pub came_ns: u64,
    /// Counts of the whole stream.
    pub report: Report,
    /// Counts since the question before.
    pub window: Window,
}

/// A message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "lowercase")]
pub enum Message {
    /// Question for receivers.
    Hello,
    /// A receiver.
    Here(Description),
    /// A stream begins, whose frames have at most so many bytes with their check sequences.
    Begin {
        /// Bytes.
        largest_bytes: u32,
    },
    /// The receiver counts another stream, and one at a time.
    Busy,
    /// The receiver counts the stream from now on.
    Begun {
        /// Time at which the sender said so, by its clock, ns.
        asked_ns: u64,
        /// Time at which that came, by the receiver's clock, ns.
        came_ns: u64,
        /// Number of the receiver's machine's start.
        boot: u64,
    },
    /// Question for the counts of a stream.
    Ask {
        /// Number of the question, from 1.
        number: u64,
        /// Frames that were sent, when no more will be.
        sent: Option<u64>,
    },
    /// The counts.
    Tell(Box<Answer>),
}

impl Message {
    /// The message as a frame without check sequence.
    ///
    /// # Panics
    /// When it is longer than a frame: names of interfaces and methods are short, and numbers have 20 digits at most.
    pub fn frame(&self, from: Mac, to: Mac, vlan: Option<u16>, stream: u32, now_ns: u64) -> Bytes {
        let text = serde_json::to_vec(self).expect("numbers and texts make JSON");
        assert!(text.len() <= MESSAGE_BYTES_MAX, "a message of {} bytes", text.len());
        let sequence = text.len() as u64;
        let content_bytes = (STAMP_BYTES + text.len() + CHECK_BYTES) as u16;
        let stamp = Stamp { kind: Kind::Message, pattern: 0, content_bytes, stream, sequence, sent_ns: now_ns };
        let mut frame = BytesMut::with_capacity(FRAME_BYTES_MIN.max(HEADER_BYTES + 4 + STAMP_BYTES + text.len() + 4));
        EthernetHeader { destination: to, source: from, vlan }.encode(ETHERTYPE, &mut frame);
        frame.put_slice(&stamp.encode());
        frame.put_slice(&text);
        frame.put_u32(crc32fast::hash(&text));
        if frame.len() < FRAME_BYTES_MIN {
            frame.resize(FRAME_BYTES_MIN, 0);
        }
        frame.freeze()
    }

    /// The message behind a stamp; None where the bytes are none.
    pub fn decode(stamp: &Stamp, content: &[u8]) -> Option<Message> {
        let length = usize::try_from(stamp.sequence).ok().filter(|length| *length <= MESSAGE_BYTES_MAX)?;
        let (text, rest) = content.get(STAMP_BYTES..)?.split_at_checked(length)?;
        let check = u32::from_be_bytes(rest.get(..CHECK_BYTES)?.try_into().ok()?);
        if crc32fast::hash(text) != check {
            return None;
        }
        serde_json::from_slice(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Latency;

    fn longest() -> Message {
        let (n, i) = (u64::MAX, i64::MIN);
        let latency = Latency { min: i, mean: i, p50: i, p90: i, p99: i, p999: i, max: i };
        let report = Report {
            frames: n,
            bytes: n,
            span_ns: n,
            lost: n,
            duplicates: n,
            reordered: n,
            reorder_extent_max: n,
            too_late: n,
            loss_events: n,
            longest_loss: n,
            loss_lengths: (0..12).map(|power| (1 << power, n)).collect(),
            bit_errors: n,
            errored_frames: n,
            bits_checked: n,
            wrong_lengths: n,
            bad_headers: n,
            ring_drops: n,
            interface_drops: n,
            latency_ns: Some(latency),
            ipdv_mean_ns: Some(n),
        };
        let window = Window { frames: n, latency_sum_ns: i, latency_min_ns: i, latency_max_ns: i };
        Message::Tell(Box::new(Answer { number: n, asked_ns: n, came_ns: n, report, window }))
    }

    #[test]
    fn the_longest_message_passes_an_mtu_of_1500() {
        let message = longest();
        let frame = message.frame([1; 6], [2; 6], None, 7, 9);
        assert!(frame.len() <= HEADER_BYTES + 1500, "{}", frame.len());
        let content = &frame[HEADER_BYTES..];
        let stamp = Stamp::decode(content).unwrap();
        assert_eq!((stamp.kind, stamp.stream, stamp.sent_ns), (Kind::Message, 7, 9));
        assert_eq!(Message::decode(&stamp, content), Some(message));
    }

    #[test]
    fn a_message_with_a_wrong_bit_or_cut_off_is_none() {
        let frame = Message::Hello.frame([1; 6], [2; 6], Some(5), 0, 1);
        assert_eq!(frame[12..18], [0x81, 0, 0, 5, 0x88, 0xb5]);
        let content = frame[18..].to_vec();
        let stamp = Stamp::decode(&content).unwrap();
        assert_eq!(Message::decode(&stamp, &content), Some(Message::Hello));
        let length = STAMP_BYTES + stamp.sequence as usize + CHECK_BYTES;
        for at in STAMP_BYTES..length {
            let mut wrong = content.clone();
            wrong[at] ^= 4;
            assert_eq!(Message::decode(&stamp, &wrong), None, "byte {at}");
            assert_eq!(Message::decode(&stamp, &content[..at]), None, "{at} bytes");
        }
        let long = Stamp { sequence: u64::MAX, ..stamp };
        assert_eq!(Message::decode(&long, &content), None);
    }
}
