//! Keep-alives: LKA, a link service between the two fabric controllers in class F (FC-LS; code as in Linux, `ELS_LKA`).

use bytes::Bytes;
use wire::fc::els::{self, Command};
use wire::fc::{frame_control, routing, Eof, FcId, Frame, FrameHeader, FrameType, Sof};

/// Shortest time between keep-alives, ms: a peer may ask for less, and is not served more often.
pub(super) const KEEP_ALIVE_MS_MIN: u32 = 100;
/// OX_ID of keep-alives, which end with their answer.
const EXCHANGE: u16 = 0xfffe;

/// Part of a frame in keeping connections alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeepAlive {
    /// Request.
    Request,
    /// Answer.
    Answer,
}

/// The frame of a keep-alive.
pub(super) fn frame(part: KeepAlive) -> Frame {
    let (r_ctl, f_ctl, payload) = match part {
        KeepAlive::Request => (
            routing::ELS_REQUEST,
            frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE,
            Bytes::from_static(&[Command::LKA.0, 0, 0, 0]),
        ),
        KeepAlive::Answer => (
            routing::ELS_REPLY,
            frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE,
            els::accept(),
        ),
    };
    let header = FrameHeader {
        r_ctl,
        d_id: FcId::FABRIC_CONTROLLER,
        s_id: FcId::FABRIC_CONTROLLER,
        kind: FrameType::ELS,
        f_ctl,
        ox_id: EXCHANGE,
        ..FrameHeader::default()
    };
    Frame { sof: Sof::Fabric, header, payload: payload.into(), eof: Eof::Terminate }
}

/// The part of a frame in keeping connections alive; None of all others.
pub(super) fn part_of(received: &Frame) -> Option<KeepAlive> {
    let header = &received.header;
    let between = header.s_id == FcId::FABRIC_CONTROLLER && header.d_id == FcId::FABRIC_CONTROLLER;
    if received.sof != Sof::Fabric || header.kind != FrameType::ELS || !between {
        return None;
    }
    match (header.r_ctl, Command::of(&received.payload.to_bytes()).ok()?) {
        (routing::ELS_REQUEST, Command::LKA) => Some(KeepAlive::Request),
        (routing::ELS_REPLY, Command::LS_ACC | Command::LS_RJT) if header.ox_id == EXCHANGE => Some(KeepAlive::Answer),
        _ => None,
    }
}
