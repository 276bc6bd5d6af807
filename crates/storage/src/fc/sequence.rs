//! Sequences: a payload as frames of one exchange's direction, and back (FC-FS-2, clause 18).

use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use wire::fc::{frame_control, FcId, Frame, FrameHeader};

/// Returns the frames of one sequence of class 3 that carry `payload`, at most `most` bytes each (a multiple of 4).
///
/// `header` is that of the first frame. END_SEQUENCE and what it qualifies, such as SEQUENCE_INITIATIVE, go with the
/// last frame; the counts go up from the header's.
pub fn frames_of(header: FrameHeader, payload: &Bytes, most: usize) -> Vec<Frame> {
    const WITH_THE_LAST: u32 = frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    let most = (most / 4 * 4).max(4);
    let count = payload.len().div_ceil(most).max(1);
    let mut frames = Vec::with_capacity(count);
    for number in 0..count {
        let piece = payload.slice(number * most..payload.len().min((number + 1) * most));
        let mut own = header;
        own.seq_cnt = header.seq_cnt.wrapping_add(number as u16);
        if number + 1 < count {
            own.f_ctl &= !WITH_THE_LAST;
        }
        frames.push(Frame::class3(own, piece));
    }
    frames
}

/// Name of a sequence: sender, receiver, exchange, sequence, and which side of the exchange sent it.
type SequenceName = (FcId, FcId, u16, u8, bool);

/// State of a sequence after a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Collected {
    /// More is missing.
    Incomplete,
    /// The payload, with the header of the last frame.
    Whole(FrameHeader, Bytes),
    /// A frame is missing or the sequence is too long: all of it is thrown away.
    Broken,
}

/// Puts the frames of sequences together that come in order: link services and requests to servers, which are short.
#[derive(Clone, Debug)]
pub struct Collector {
    open: BTreeMap<SequenceName, (u16, BytesMut)>,
    sequences_max: usize,
    bytes_max: usize,
}

impl Collector {
    /// A collector for at most `sequences_max` sequences at once, `bytes_max` bytes each. Beyond, the oldest by name
    /// goes.
    pub fn new(sequences_max: usize, bytes_max: usize) -> Collector {
        Collector { open: BTreeMap::new(), sequences_max, bytes_max }
    }

    /// Sequences that are not complete.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Forgets the sequences of a port.
    pub fn forget(&mut self, port: FcId) {
        self.open.retain(|name, _| name.0 != port && name.1 != port);
    }

    /// Takes a frame.
    pub fn add(&mut self, frame: &Frame) -> Collected {
        let header = frame.header;
        let last = header.has(frame_control::END_SEQUENCE);
        let name =
            (header.s_id, header.d_id, header.ox_id, header.seq_id, header.has(frame_control::EXCHANGE_RESPONDER));
        let first = matches!(
            frame.sof,
            wire::fc::Sof::Initiate2 | wire::fc::Sof::Initiate3 | wire::fc::Sof::Initiate4 | wire::fc::Sof::Connect4
        );
        if first && last {
            self.open.remove(&name);
            return Collected::Whole(header, frame.payload.to_bytes());
        }
        if first {
            self.open.remove(&name);
            if self.open.len() >= self.sequences_max {
                self.open.pop_first();
            }
            self.open.insert(name, (header.seq_cnt, BytesMut::from(&frame.payload.to_bytes()[..])));
            return Collected::Incomplete;
        }
        let Some((count, bytes)) = self.open.get_mut(&name) else { return Collected::Broken };
        let fits = bytes.len() + frame.payload.len() <= self.bytes_max;
        if header.seq_cnt != count.wrapping_add(1) || !fits {
            self.open.remove(&name);
            return Collected::Broken;
        }
        *count = header.seq_cnt;
        bytes.extend_from_slice(&frame.payload.to_bytes());
        if !last {
            return Collected::Incomplete;
        }
        let whole = self.open.remove(&name).map(|(_, bytes)| bytes.freeze()).unwrap_or_default();
        Collected::Whole(header, whole)
    }
}
