//! A TCP connection between two gateways, and what they send each other over it.

use super::carried::Carried;
use super::encoder::Encoder;
use super::unit::Unit;
use crate::fc_counters::FcCounters;
use crate::framed_stream::FramedStream;
use crate::node::Ends;
use crate::side::Side;
use crate::transport::Transport;
use bytes::BytesMut;
use spec::FcProtocolSpec;
use std::collections::VecDeque;
use units::Time;
use wire::encapsulation::encapsulated_bytes;

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
    /// Its flow.
    flow: usize,
    unit_bytes: UnitBytes,
    /// For a capture.
    encoder: Encoder,
    /// By side that sends.
    pub streams: [FramedStream<Unit>; 2],
    /// By side.
    pub phase: [Phase; 2],
    /// By side: frames in their ports' buffers, with their pairs, in the order of their arrival.
    pub staged: [VecDeque<(usize, Carried)>; 2],
    /// By side: true if the next frame that came whole waits for room at its port.
    pub blocked: [bool; 2],
    /// Frames of its pairs.
    pub counters: FcCounters,
}

impl Connection {
    /// Connection `number` of its group, of `flow`, before it is opened; frames are measured from `from` on.
    pub fn new(protocol: FcProtocolSpec, number: usize, flow: usize, from: Time) -> Connection {
        let mut encoder = Encoder::new(protocol, number);
        Connection {
            flow,
            unit_bytes: UnitBytes::of(&mut encoder),
            encoder,
            streams: Default::default(),
            phase: Default::default(),
            staged: Default::default(),
            blocked: Default::default(),
            counters: FcCounters::new(from),
        }
    }

    /// Bytes of `unit`.
    pub fn length(&self, unit: &Unit) -> u64 {
        self.unit_bytes.length(unit)
    }

    /// Puts `unit` behind what `side` sends.
    pub fn push<T: Transport>(&mut self, now: Time, side: Side, unit: Unit, ends: &mut Ends<'_, T>) {
        ends.capture(self.flow, side, |into| self.encoder.encode(now, side, &unit, into));
        self.streams[side as usize].push(self.unit_bytes.length(&unit), unit);
    }
}

/// Bytes of units on the wire.
#[derive(Clone, Copy)]
struct UnitBytes {
    open: u64,
    opened: u64,
}

impl UnitBytes {
    /// Those that `encoder` makes.
    fn of(encoder: &mut Encoder) -> UnitBytes {
        let [open, opened] = [Unit::Open, Unit::Opened].map(|unit| {
            let mut bytes = BytesMut::new();
            encoder.encode(Time::ZERO, Side::Sender, &unit, &mut bytes);
            bytes.len() as u64
        });
        UnitBytes { open, opened }
    }

    /// Bytes of `unit`.
    fn length(self, unit: &Unit) -> u64 {
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
    use wire::iscsi::Payload;

    /// Frames of a command: command, transfer ready, data, odd rests of it, response.
    fn frames() -> impl Iterator<Item = Frame> {
        let header = FrameHeader { r_ctl: routing::SOLICITED_DATA, kind: FrameType::FCP, ..FrameHeader::default() };
        let zeros = [32, 12, 2048, 2112, 33, 34, 35].map(Payload::Zeros);
        let bytes = Payload::Bytes(Bytes::from(vec![7; 24]));
        zeros.into_iter().chain([bytes]).map(move |payload| Frame::class3(header, payload))
    }

    #[test]
    fn a_unit_is_as_long_as_its_bytes_and_has_zeros_where_its_payload_is() {
        for protocol in [FcProtocolSpec::Ifcp, FcProtocolSpec::Fcip] {
            let mut encoder = Encoder::new(protocol, 0);
            let lengths = UnitBytes::of(&mut encoder);
            let frames =
                frames().map(|frame| Unit::Frame(0, Carried { issued: Time::ZERO, entered: Time::ZERO, frame }));
            for unit in [Unit::Open, Unit::Opened].into_iter().chain(frames) {
                let mut bytes = BytesMut::from(&[9][..]);
                let zeros = encoder.encode(Time::ZERO, Side::Sender, &unit, &mut bytes);
                let message = &bytes[1..];
                assert_eq!(message.len() as u64, lengths.length(&unit), "{protocol:?}");
                let payload = match &unit {
                    Unit::Frame(_, Carried { frame: Frame { payload: Payload::Zeros(length), .. }, .. }) => *length,
                    _ => 0,
                };
                assert_eq!(zeros.len(), payload as usize, "{protocol:?}");
                assert!(message[zeros.clone()].iter().all(|&byte| byte == 0));
                if payload > 0 {
                    let before = wire::encapsulation::ENCAPSULATION_HEADER_BYTES + 4 + wire::fc::FRAME_HEADER_BYTES;
                    assert_eq!(zeros.start, before, "{protocol:?}");
                }
            }
        }
    }
}
