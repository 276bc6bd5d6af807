//! Sequences: a payload as frames of one exchange's direction, and back (FC-FS-2, clause 18).

use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use wire::fc::{frame_control, FcId, Frame, FrameHeader, Sof};

/// Returns the frames of one sequence of class 3 that carry `payload`, at most `most` bytes each (a multiple of 4).
///
/// `header` is that of the first frame. END_SEQUENCE and what it qualifies, such as SEQUENCE_INITIATIVE, go with the
/// last frame; the counts go up from the header's.
pub fn frames_of(header: FrameHeader, payload: &Bytes, most: usize) -> Vec<Frame> {
    let most = (most / 4 * 4).max(4);
    let count = payload.len().div_ceil(most).max(1);
    let piece = |number: usize| payload.slice(number * most..payload.len().min((number + 1) * most));
    frames_in_pieces(header, (0..count).map(piece).collect())
}

/// Returns the frames of one sequence of class 3, one for each piece of its payload; as [`frames_of`] otherwise.
pub(super) fn frames_in_pieces(header: FrameHeader, pieces: Vec<Bytes>) -> Vec<Frame> {
    const WITH_THE_LAST: u32 = frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    let count = pieces.len();
    let mut frames = Vec::with_capacity(count);
    for (number, piece) in pieces.into_iter().enumerate() {
        let mut own = header;
        own.seq_cnt = header.seq_cnt.wrapping_add(number as u16);
        if number + 1 < count {
            own.f_ctl &= !WITH_THE_LAST;
        }
        let sof = if number == 0 { Sof::Initiate3 } else { Sof::Normal3 };
        frames.push(Frame { sof, ..Frame::class3(own, piece) });
    }
    frames
}

/// Name of a sequence: sender, receiver, exchange, sequence, and which side of the exchange sent it.
type SequenceName = (FcId, FcId, u16, u8, bool);

fn sequence_name(header: &FrameHeader) -> SequenceName {
    (header.s_id, header.d_id, header.ox_id, header.seq_id, header.has(frame_control::EXCHANGE_RESPONDER))
}

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

/// A sequence of which frames are missing.
#[derive(Clone, Debug)]
struct Open {
    /// Number of the sequence, in the order in which they began.
    began: u64,
    /// Count of its last frame.
    count: u16,
    bytes: BytesMut,
}

/// Bounds of what a [`Collector`] keeps.
#[derive(Clone, Copy, Debug)]
pub struct CollectorBounds {
    /// Sequences of one sender at once; beyond, its oldest goes.
    pub sequences_of_one: usize,
    /// Sequences of all senders at once; beyond, the oldest goes.
    pub sequences: usize,
    /// Bytes of a sequence; a longer one is broken.
    pub bytes: usize,
}

/// Puts the frames of sequences together that come in order: link services and requests to servers, which are short.
#[derive(Clone, Debug)]
pub struct Collector {
    open: BTreeMap<SequenceName, Open>,
    bounds: CollectorBounds,
    began: u64,
}

impl Collector {
    /// A collector with bounds.
    pub fn new(bounds: CollectorBounds) -> Collector {
        Collector { open: BTreeMap::new(), bounds, began: 0 }
    }

    /// Sequences that are not complete.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Forgets the sequences of a port.
    pub fn forget(&mut self, port: FcId) {
        self.open.retain(|name, _| name.0 != port && name.1 != port);
    }

    /// Forgets the sequences between two ports.
    pub fn forget_pair(&mut self, a: FcId, b: FcId) {
        self.open.retain(|name, _| (name.0, name.1) != (a, b) && (name.0, name.1) != (b, a));
    }

    /// True for a frame of a sequence that began and is not complete.
    pub fn expects(&self, frame: &Frame) -> bool {
        let first = matches!(frame.sof, Sof::Initiate2 | Sof::Initiate3 | Sof::Initiate4 | Sof::Connect4);
        !first && !self.open.is_empty() && self.open.contains_key(&sequence_name(&frame.header))
    }

    /// Forgets the sequences of an exchange that its originator aborts.
    pub fn abort(&mut self, originator: FcId, ox_id: u16) {
        self.open.retain(|name, _| name.0 != originator || name.2 != ox_id);
    }

    /// Takes a frame.
    pub fn add(&mut self, frame: &Frame) -> Collected {
        let header = frame.header;
        let last = header.has(frame_control::END_SEQUENCE);
        let name = sequence_name(&header);
        let first = matches!(frame.sof, Sof::Initiate2 | Sof::Initiate3 | Sof::Initiate4 | Sof::Connect4);
        if first && last {
            self.open.remove(&name);
            return Collected::Whole(header, frame.payload.to_bytes());
        }
        if first {
            self.begin(name, &header, BytesMut::from(&frame.payload.to_bytes()[..]));
            return Collected::Incomplete;
        }
        let Some(open) = self.open.get_mut(&name) else { return Collected::Broken };
        let fits = open.bytes.len() + frame.payload.len() <= self.bounds.bytes;
        if header.seq_cnt != open.count.wrapping_add(1) || !fits {
            self.open.remove(&name);
            return Collected::Broken;
        }
        open.count = header.seq_cnt;
        open.bytes.extend_from_slice(&frame.payload.to_bytes());
        if !last {
            return Collected::Incomplete;
        }
        let whole = self.open.remove(&name).map(|open| open.bytes.freeze()).unwrap_or_default();
        Collected::Whole(header, whole)
    }

    /// Begins a sequence; an older one gives way where a bound is reached.
    fn begin(&mut self, name: SequenceName, header: &FrameHeader, bytes: BytesMut) {
        self.open.remove(&name);
        let own = self.open.keys().filter(|other| other.0 == name.0).count();
        let of_sender = own >= self.bounds.sequences_of_one;
        if of_sender || self.open.len() >= self.bounds.sequences {
            let oldest = self
                .open
                .iter()
                .filter(|(other, _)| !of_sender || other.0 == name.0)
                .min_by_key(|(_, open)| open.began)
                .map(|(other, _)| *other);
            if let Some(oldest) = oldest {
                self.open.remove(&oldest);
            }
        }
        self.began += 1;
        self.open.insert(name, Open { began: self.began, count: header.seq_cnt, bytes });
    }
}
