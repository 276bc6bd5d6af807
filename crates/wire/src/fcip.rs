//! FCIP (RFC 3821) as bytes: frames through a tunnel, and the special frame that opens each of its connections.

use crate::encapsulation::{
    self, Discarded, EncapsulationHeader, EncapsulationProtocol, TimeStamp, ENCAPSULATION_HEADER_BYTES,
};
use crate::error::{require, WireError};
use crate::fc::{Frame, Wwn};
use bytes::{BufMut, Bytes, BytesMut};

/// TCP port that IANA gave to FCIP.
pub const PORT: u16 = 3225;
/// Bytes of the special frame.
pub const SPECIAL_FRAME_BYTES: usize = 76;

/// Flag: the frame is a special frame.
const SPECIAL: u8 = 0x01;
/// Flag: an echoed special frame was changed.
const CHANGED: u8 = 0x80;

/// A message on a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// A frame of the tunnel.
    Frame(Frame, TimeStamp),
    /// First message in each direction.
    Special(SpecialFrame, TimeStamp),
}

/// The special frame (FSF): who opens a connection of which tunnel (RFC 3821, section 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpecialFrame {
    /// The frame comes back, and whoever sends it back changed it.
    pub changed: bool,
    /// Name of the fabric, or switch, that opens the connection.
    pub source: Wwn,
    /// Name of its end of the tunnel.
    pub entity: u64,
    /// Random number of this request for a connection.
    pub nonce: u64,
    /// Classes to be carried: bit 7 class F, 6 class 2, 5 class 3, 4 class 4; 0 = any.
    pub usage_flags: u8,
    /// Purpose of the connection (FC-BB-2).
    pub usage_code: u16,
    /// Name of the fabric at the other end; 0 = whoever answers.
    pub destination: Wwn,
    /// Time between keep-alives, ms (K_A_TOV).
    pub keep_alive_ms: u32,
}

impl SpecialFrame {
    /// Usage: class F, what switches tell each other.
    pub const CLASS_F: u8 = 0x80;
    /// Usage: class 2.
    pub const CLASS_2: u8 = 0x40;
    /// Usage: class 3.
    pub const CLASS_3: u8 = 0x20;
    /// Usage: class 4.
    pub const CLASS_4: u8 = 0x10;

    fn encode(&self, time: TimeStamp, into: &mut BytesMut) {
        let flags = SPECIAL | if self.changed { CHANGED } else { 0 };
        into.put_slice(&header(flags, SPECIAL_FRAME_BYTES, time).to_bytes());
        into.put_slice(&[0, 0, 0xff, 0xff]);
        into.put_u64(self.source.0);
        into.put_u64(self.entity);
        into.put_u64(self.nonce);
        into.put_slice(&[self.usage_flags, 0]);
        into.put_u16(self.usage_code);
        into.put_u64(self.destination.0);
        into.put_u32(self.keep_alive_ms);
        into.put_slice(&[0, 0, 0xff, 0xff]);
    }

    fn parse(bytes: &Bytes, changed: bool) -> Result<SpecialFrame, WireError> {
        require(bytes, SPECIAL_FRAME_BYTES - ENCAPSULATION_HEADER_BYTES, "FCIP special frame")?;
        let long = |at: usize| {
            let mut value = [0; 8];
            value.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(value)
        };
        Ok(SpecialFrame {
            changed,
            source: Wwn(long(4)),
            entity: long(12),
            nonce: long(20),
            usage_flags: bytes[28],
            usage_code: u16::from_be_bytes([bytes[30], bytes[31]]),
            destination: Wwn(long(32)),
            keep_alive_ms: u32::from_be_bytes([bytes[40], bytes[41], bytes[42], bytes[43]]),
        })
    }
}

impl Message {
    /// Bytes that the message takes on its connection.
    pub fn bytes(&self) -> usize {
        match self {
            Message::Frame(frame, _) => encapsulation::encapsulated_bytes(frame),
            Message::Special(..) => SPECIAL_FRAME_BYTES,
        }
    }

    /// Appends the message's bytes.
    pub fn encode(&self, into: &mut BytesMut) {
        match self {
            Message::Frame(frame, time) => {
                into.put_slice(&header(0, encapsulation::encapsulated_bytes(frame), *time).to_bytes());
                encapsulation::encode_frame(frame, into);
            }
            Message::Special(special, time) => special.encode(*time, into),
        }
    }

    /// Takes one message off the front of a stream; None when it is not complete, and then `stream` is left alone.
    ///
    /// # Errors
    /// The stream is out of step, or the peer broke the protocol: the connection is closed (RFC 3821, 5.6.2.3, a). A
    /// frame that is damaged inside is discarded, and the connection goes on: the sender does not check frames (5.6).
    pub fn decode(stream: &mut BytesMut) -> Result<Option<Result<Message, Discarded>>, WireError> {
        let Some((header, rest)) = encapsulation::take(stream)? else { return Ok(None) };
        let [_, _, _, _, flags, zero, not_flags, not_zero] = header.specific;
        if header.protocol != EncapsulationProtocol::Fcip || header.specific[..4] != WORD_0 {
            let value = u64::from(header.protocol as u8);
            return Err(WireError::Malformed { field: "repeated first word of an FCIP frame", value });
        }
        let illegal = flags & !(SPECIAL | CHANGED) != 0 || flags == CHANGED;
        if illegal || not_flags != !flags || zero != 0 || not_zero != 0xff {
            return Err(WireError::Malformed { field: "FCIP flags", value: u64::from(flags) });
        }
        if flags & SPECIAL != 0 {
            if header.bytes != SPECIAL_FRAME_BYTES {
                return Err(WireError::Malformed {
                    field: "bytes of an FCIP special frame",
                    value: header.bytes as u64,
                });
            }
            let special = SpecialFrame::parse(&rest, flags & CHANGED != 0)?;
            return Ok(Some(Ok(Message::Special(special, header.time))));
        }
        encapsulation::check_end(&rest)?;
        let frame = encapsulation::decode_frame(&rest).map_err(|reason| Discarded { reason });
        Ok(Some(frame.map(|frame| Message::Frame(frame, header.time))))
    }
}

/// First word of each header; the second repeats it.
const WORD_0: [u8; 4] = [1, 1, 0xfe, 0xfe];

fn header(flags: u8, bytes: usize, time: TimeStamp) -> EncapsulationHeader {
    let [a, b, c, d] = WORD_0;
    EncapsulationHeader {
        protocol: EncapsulationProtocol::Fcip,
        specific: [a, b, c, d, flags, 0, !flags, 0xff],
        bytes,
        time,
        has_crc: false,
    }
}
