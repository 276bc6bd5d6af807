//! Number and time of a frame of the load, and the frame that carries them.

use bytes::{BufMut, BytesMut};
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType, UNASSIGNED};
use wire::iscsi::Payload;

/// Bytes of a stamp at the begin of a payload: a mark, the load's number, the frame's number, its time.
pub const STAMP_BYTES: usize = 24;
/// Kind of the load's frames: the first of those that are the vendor's own (FC-FS-2, table 15).
pub const LOAD_TYPE: FrameType = FrameType(0xe0);
const MARK: [u8; 4] = *b"eFCL";

/// Number and time of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Number of the load, which tells the frames of one sender or run from another's.
    pub load: u32,
    /// Number of the frame, from 0.
    pub sequence: u64,
    /// Time of sending, ns, in the clock that sender and receiver share.
    pub sent_ns: u64,
}

/// A frame of the load, of class 3, one sequence and one exchange each. A payload of fewer than [`STAMP_BYTES`] is made
/// so long.
pub fn load_frame(from: FcId, to: FcId, stamp: &Stamp, payload_bytes: u16) -> Frame {
    let bytes = usize::from(payload_bytes).max(STAMP_BYTES);
    let mut payload = BytesMut::with_capacity(bytes);
    payload.put_slice(&MARK);
    payload.put_u32(stamp.load);
    payload.put_u64(stamp.sequence);
    payload.put_u64(stamp.sent_ns);
    payload.put_bytes(0, bytes - STAMP_BYTES);
    Frame::class3(load_header(from, to, stamp.sequence), payload.freeze())
}

/// The header of frame `sequence` of the load.
pub fn load_header(from: FcId, to: FcId, sequence: u64) -> FrameHeader {
    FrameHeader {
        r_ctl: routing::UNSOLICITED_DATA,
        d_id: to,
        s_id: from,
        kind: LOAD_TYPE,
        f_ctl: frame_control::FIRST_SEQUENCE | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE,
        seq_id: sequence as u8,
        // All numbers but the one that means none.
        ox_id: (sequence % u64::from(UNASSIGNED)) as u16,
        ..FrameHeader::default()
    }
}

/// The stamp of a frame; None when it is none of a load.
pub fn stamp_of(frame: &Frame) -> Option<Stamp> {
    let Payload::Bytes(payload) = &frame.payload else { return None };
    if frame.header.kind != LOAD_TYPE || payload.len() < STAMP_BYTES || payload[..4] != MARK {
        return None;
    }
    let long = |at: usize| (at..at + 8).fold(0, |value, at| value << 8 | u64::from(payload[at]));
    let load = (4..8).fold(0, |value, at| value << 8 | u32::from(payload[at]));
    Some(Stamp { load, sequence: long(8), sent_ns: long(16) })
}
