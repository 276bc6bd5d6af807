//! Packets as the two ends exchange them (draft-gg-udt-03, 4).

use crate::config::HEADER_BYTES;

/// Ranges of a loss report at most. A library's has as many as a packet takes; here those beyond wait for the next
/// periodic report.
pub const MAX_RANGES: usize = 32;

/// A packet of either kind: data, or control with its type.
#[allow(clippy::large_enum_variant, reason = "it is a plain value that is used again for every packet")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segment {
    /// Type 0.
    Handshake(Handshake),
    /// Data.
    Data(Data),
    /// Type 2, with its number and what the sender controls its rate by.
    Ack(Ack),
    /// Type 2 without more than the number: the next packet expected.
    LightAck {
        /// The next packet expected.
        expected: u64,
    },
    /// Type 6: acknowledgment of an acknowledgment.
    Ack2 {
        /// Number of that acknowledgment.
        ack_number: u64,
    },
    /// Type 3.
    Nak(Nak),
    /// Type 1.
    #[default]
    KeepAlive,
    /// Type 5.
    Shutdown,
}

/// Opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Its place in the exchange.
    pub step: HandshakeStep,
    /// Packets that its sender can take.
    pub window_packets: u32,
}

/// Place of a handshake packet in the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeStep {
    /// The client asks for a cookie.
    AskCookie,
    /// The server gives one.
    GiveCookie,
    /// The client asks for the connection.
    Request,
    /// The server accepts it.
    Accept,
}

/// A data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Sequence number of the packet, from 1. A library's has 31 bits and wraps; this one does not.
    pub number: u64,
    /// Payload.
    pub bytes: u32,
}

/// An acknowledgment with feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Its own number.
    pub ack_number: u64,
    /// The next packet expected: all before have arrived.
    pub expected: u64,
    /// Smoothed round-trip time as the receiver has it, us.
    pub rtt_us: u64,
    /// Packets that the receiver has room for.
    pub window_packets: u32,
    /// Arrival speed and estimated capacity of the path, packets/s; at most once in a SYN.
    pub rates: Option<(u32, u32)>,
    /// The receiver's latest single sample of the round-trip time, us: for measuring, no part of the protocol.
    pub sample_us: Option<u64>,
}

/// A loss report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nak {
    /// First and last number of each range of lost packets; the first `count` count.
    pub ranges: [(u64, u64); MAX_RANGES],
    /// Ranges used; at least 1.
    pub count: u8,
}

impl Nak {
    /// A report of the packets from `first` to `last`.
    pub fn of(first: u64, last: u64) -> Nak {
        let mut ranges = [(0, 0); MAX_RANGES];
        ranges[0] = (first, last);
        Nak { ranges, count: 1 }
    }

    /// The ranges.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges[..usize::from(self.count)]
    }
}

impl Segment {
    /// Bytes of its IP packet: headers and what follows them (4-byte words as draft-gg-udt-03, 4 lists them).
    pub fn packet_bytes(&self) -> u32 {
        let body = match self {
            Segment::Data(data) => data.bytes,
            Segment::Handshake(_) => 48,
            Segment::Ack(ack) => {
                if ack.rates.is_some() {
                    24
                } else {
                    16
                }
            }
            // A single packet is one word, a range two.
            Segment::Nak(nak) => nak.ranges().iter().map(|(first, last)| if first == last { 4 } else { 8 }).sum(),
            // Types without a body carry one word, for writev wants something to write.
            Segment::LightAck { .. } | Segment::Ack2 { .. } | Segment::KeepAlive | Segment::Shutdown => 4,
        };
        HEADER_BYTES + body
    }
}
