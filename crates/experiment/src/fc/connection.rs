//! A TCP connection between two gateways, and what they send each other over it.

use super::carried::Carried;
use crate::fc_counters::FcCounters;
use crate::framed_stream::FramedStream;
use bytes::BytesMut;
use spec::FcProtocolSpec;
use std::collections::VecDeque;
use units::Time;
use wire::encapsulation::{encapsulated_bytes, TimeStamp};
use wire::fc::Wwn;
use wire::ifcp::{AddressMode, Bind, BindStatus, Message, SessionMessage, VERSION};

/// Content of a connection.
pub enum Unit {
    /// The gateway that connected asks for the session: CBIND, or FCIP's special frame.
    Open,
    /// The other grants it: the response to CBIND, or the special frame's echo.
    Opened,
    /// A frame of a pair.
    Frame(usize, Carried),
}

/// Phase of a connection at one of its ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// Nothing was sent.
    #[default]
    Closed,
    /// The TCP connection is on its way.
    Connecting,
    /// The session is asked for.
    Opening,
    /// Frames may pass.
    Open,
    /// TCP gave up.
    Lost,
}

/// A connection.
pub struct Connection {
    /// By side that sends.
    pub streams: [FramedStream<Unit>; 2],
    /// By side.
    pub phase: [Phase; 2],
    /// By side: frames in their ports' buffers, with their pairs, in the order of their arrival.
    pub staged: [VecDeque<(usize, Carried)>; 2],
    /// Frames of its pairs.
    pub counters: FcCounters,
}

impl Connection {
    /// Before it is opened; frames are measured from `from` on.
    pub fn new(from: Time) -> Connection {
        Connection {
            streams: Default::default(),
            phase: Default::default(),
            staged: Default::default(),
            counters: FcCounters::new(from),
        }
    }
}

/// Bytes of units on the wire.
#[derive(Clone, Copy)]
pub struct UnitBytes {
    open: u64,
    opened: u64,
}

impl UnitBytes {
    /// Those of `protocol`.
    pub fn of(protocol: FcProtocolSpec) -> UnitBytes {
        match protocol {
            // The special frame comes back as it was (RFC 3821, 8.1.2.3).
            FcProtocolSpec::Fcip => {
                let bytes = wire::fcip::SPECIAL_FRAME_BYTES as u64;
                UnitBytes { open: bytes, opened: bytes }
            }
            FcProtocolSpec::Ifcp => {
                let bind = Bind {
                    liveness_s: 0,
                    mode: AddressMode::Translation,
                    version: VERSION,
                    user: 0,
                    source: Wwn(0),
                    destination: Wwn(0),
                };
                let response = SessionMessage::BindResponse { bind, status: BindStatus::Success, handle: 0 };
                let [open, opened] = [SessionMessage::Bind(bind), response].map(|message| {
                    let mut bytes = BytesMut::new();
                    Message::Session(message, TimeStamp::NONE).encode(&mut bytes);
                    bytes.len() as u64
                });
                UnitBytes { open, opened }
            }
        }
    }

    /// Bytes of `unit`.
    pub fn length(self, unit: &Unit) -> u64 {
        match unit {
            Unit::Open => self.open,
            Unit::Opened => self.opened,
            Unit::Frame(_, carried) => encapsulated_bytes(&carried.frame) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use wire::fc::{routing, Frame, FrameHeader, FrameType};
    use wire::fcip::Message as FcipMessage;
    use wire::ifcp::DeviceFrame;
    use wire::iscsi::Payload;

    /// Frames of a command: command, transfer ready, data, an odd rest of it, response.
    fn frames() -> impl Iterator<Item = Frame> {
        let header = FrameHeader { r_ctl: routing::SOLICITED_DATA, kind: FrameType::FCP, ..FrameHeader::default() };
        let zeros = [32, 12, 2048, 2112, 33].map(Payload::Zeros);
        let bytes = Payload::Bytes(Bytes::from(vec![7; 24]));
        zeros.into_iter().chain([bytes]).map(move |payload| Frame::class3(header, payload))
    }

    #[test]
    fn a_unit_is_as_long_as_its_bytes() {
        for frame in frames() {
            let (mut ifcp, mut fcip) = (BytesMut::new(), BytesMut::new());
            let (frame_of, mode, time) = (frame.clone(), AddressMode::Transparent, TimeStamp::NONE);
            let device = DeviceFrame { frame: frame_of, mode, special: false, accepted: None, time };
            Message::Device(device).encode(&mut ifcp);
            FcipMessage::Frame(frame.clone(), TimeStamp::NONE).encode(&mut fcip);
            let carried = Carried { issued: Time::ZERO, entered: Time::ZERO, frame };
            for (protocol, bytes) in [(FcProtocolSpec::Ifcp, ifcp), (FcProtocolSpec::Fcip, fcip)] {
                let unit = Unit::Frame(0, carried.clone());
                assert_eq!(UnitBytes::of(protocol).length(&unit), bytes.len() as u64, "{protocol:?}");
            }
        }
    }
}
