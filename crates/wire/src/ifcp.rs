//! iFCP (RFC 4172) as bytes: frames of device traffic and the messages that control a session.
//!
//! A gateway sends device traffic and session messages over one TCP connection for each pair of N_Ports. Both are FC
//! frames in the common encapsulation ([`crate::encapsulation`]).

use crate::encapsulation::{self, Discarded, EncapsulationHeader, EncapsulationProtocol, TimeStamp};
use crate::error::{require, WireError};
use crate::fc::els::Command;
use crate::fc::{routing, Eof, FcId, Frame, FrameHeader, FrameType, Sof, Wwn};
use crate::iscsi::Payload;
use bytes::{BufMut, Bytes, BytesMut};

/// TCP port that IANA gave to iFCP.
pub const PORT: u16 = 3420;
/// Version of the protocol.
pub const VERSION: u8 = 1;

/// Flag: the frame controls the session.
const SESSION: u8 = 4;
/// Flag: addresses are transparent.
const TRANSPARENT: u8 = 2;
/// Flag: the frame is part of a link service that the receiving gateway changes.
const SPECIAL: u8 = 1;

/// Treatment of the addresses of ports (RFC 4172, 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressMode {
    /// Each gateway gives remote ports addresses of its own.
    Translation,
    /// Addresses are the same at all gateways.
    Transparent,
    /// A mode that RFC 4172 does not define: a CBIND with it is answered with [`BindStatus::IncompatibleMode`].
    Other(u8),
}

impl AddressMode {
    fn from_code(code: u8) -> AddressMode {
        match code {
            0 => AddressMode::Translation,
            1 => AddressMode::Transparent,
            other => AddressMode::Other(other),
        }
    }

    fn code(self) -> u8 {
        match self {
            AddressMode::Translation => 0,
            AddressMode::Transparent => 1,
            AddressMode::Other(code) => code,
        }
    }
}

/// A frame of device traffic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceFrame {
    /// The frame.
    pub frame: Frame,
    /// Treatment of its addresses.
    pub mode: AddressMode,
    /// It is part of a link service that the receiving gateway changes (RFC 4172, 7.1).
    pub special: bool,
    /// The command that an accept answers, where the receiving gateway changes the accept.
    pub accepted: Option<Command>,
    /// Time at which it left.
    pub time: TimeStamp,
}

/// A message on a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Device traffic.
    Device(DeviceFrame),
    /// Session control.
    Session(SessionMessage, TimeStamp),
}

/// A message that controls a session (RFC 4172, section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionMessage {
    /// CBIND: binds the connection to a pair of N_Ports.
    Bind(Bind),
    /// Its response.
    BindResponse {
        /// The request, and what the responder asks for.
        bind: Bind,
        /// Result.
        status: BindStatus,
        /// The responder's name for the connection.
        handle: u16,
    },
    /// UNBIND: ends the session.
    Unbind {
        /// Comes back in the response.
        user: u32,
        /// Name of the connection, from the response to CBIND.
        handle: u16,
    },
    /// Its response.
    UnbindResponse {
        /// As in the request.
        user: u32,
        /// As in the request.
        handle: u16,
        /// 0 = done, 16 = unspecified, 18 = no such connection.
        status: u16,
    },
    /// LTEST: shows that the session lives.
    LivenessTest {
        /// Time between two, s; as asked for in CBIND.
        interval_s: u16,
        /// Number of the message, from 0.
        count: u32,
        /// Name of the port behind the gateway that sent CBIND.
        source: Wwn,
        /// Name of the port behind the other.
        destination: Wwn,
    },
}

/// Content that CBIND and its response share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bind {
    /// The receiver is to send LTEST every so often, s; 0 = never.
    pub liveness_s: u16,
    /// The sender's treatment of addresses.
    pub mode: AddressMode,
    /// Version of the protocol that the sender speaks.
    pub version: u8,
    /// Comes back in the response.
    pub user: u32,
    /// Name of the port behind the gateway that sends the request.
    pub source: Wwn,
    /// Name of the port behind the other.
    pub destination: Wwn,
}

/// Result of CBIND (RFC 4172, 6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[repr(u16)]
pub enum BindStatus {
    /// Bound.
    #[error("bound")]
    Success = 0,
    /// No reason is given.
    #[error("the peer refused without a reason")]
    Unspecified = 16,
    /// The other gateway has no such port.
    #[error("the peer has no such port")]
    NoSuchDevice = 17,
    /// Both gateways bind the same pair at once, and this request yields.
    #[error("the peer has a session for this pair")]
    SessionExists = 18,
    /// No resources.
    #[error("the peer has no room for a session")]
    LackOfResources = 19,
    /// The gateways treat addresses in different ways.
    #[error("the peer treats addresses in the other mode")]
    IncompatibleMode = 20,
    /// The gateways speak different versions.
    #[error("the peer speaks another version of iFCP")]
    IncorrectVersion = 21,
    /// The other gateway's clock is not synchronised.
    #[error("the peer's clock is not synchronised")]
    NotSynchronized = 22,
}

impl BindStatus {
    fn from_code(code: u16) -> Result<BindStatus, WireError> {
        Ok(match code {
            0 => BindStatus::Success,
            16 => BindStatus::Unspecified,
            17 => BindStatus::NoSuchDevice,
            18 => BindStatus::SessionExists,
            19 => BindStatus::LackOfResources,
            20 => BindStatus::IncompatibleMode,
            21 => BindStatus::IncorrectVersion,
            22 => BindStatus::NotSynchronized,
            _ => return Err(WireError::Malformed { field: "CBIND status", value: u64::from(code) }),
        })
    }
}

const BIND: u8 = 0xe0;
const UNBIND: u8 = 0xe4;
const LIVENESS_TEST: u8 = 0xe5;

impl SessionMessage {
    fn is_response(&self) -> bool {
        matches!(self, SessionMessage::BindResponse { .. } | SessionMessage::UnbindResponse { .. })
    }

    fn payload(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(36);
        let command = |bytes: &mut BytesMut, code: u8| bytes.put_u32(u32::from(code) << 24);
        let bind = |bytes: &mut BytesMut, bind: &Bind| {
            command(bytes, BIND);
            bytes.put_u16(bind.liveness_s);
            bytes.put_slice(&[bind.mode.code(), bind.version]);
            bytes.put_u32(bind.user);
            bytes.put_u64(bind.source.0);
            bytes.put_u64(bind.destination.0);
        };
        match self {
            SessionMessage::Bind(request) => bind(&mut bytes, request),
            SessionMessage::BindResponse { bind: request, status, handle } => {
                bind(&mut bytes, request);
                bytes.put_u32(u32::from(*status as u16));
                bytes.put_u32(u32::from(*handle));
            }
            SessionMessage::Unbind { user, handle } => {
                command(&mut bytes, UNBIND);
                bytes.put_u32(*user);
                bytes.put_u32(u32::from(*handle));
                bytes.put_u64(0);
            }
            SessionMessage::UnbindResponse { user, handle, status } => {
                command(&mut bytes, UNBIND);
                bytes.put_u32(*user);
                bytes.put_u32(u32::from(*handle));
                bytes.put_u64(0);
                bytes.put_u32(u32::from(*status));
            }
            SessionMessage::LivenessTest { interval_s, count, source, destination } => {
                command(&mut bytes, LIVENESS_TEST);
                bytes.put_u32(u32::from(*interval_s) << 16);
                bytes.put_u32(*count);
                bytes.put_u64(source.0);
                bytes.put_u64(destination.0);
            }
        }
        bytes.freeze()
    }

    fn parse(bytes: &[u8], response: bool) -> Result<SessionMessage, WireError> {
        require(bytes, 4, "iFCP session message")?;
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let name = |at: usize| Wwn(u64::from(word(at)) << 32 | u64::from(word(at + 4)));
        let need = |count: usize| require(bytes, count, "iFCP session message");
        match bytes[0] {
            BIND => {
                need(if response { 36 } else { 28 })?;
                let bind = Bind {
                    liveness_s: half(4),
                    mode: AddressMode::from_code(bytes[6]),
                    version: bytes[7],
                    user: word(8),
                    source: name(12),
                    destination: name(20),
                };
                if !response {
                    return Ok(SessionMessage::Bind(bind));
                }
                let status = BindStatus::from_code(half(30))?;
                Ok(SessionMessage::BindResponse { bind, status, handle: half(34) })
            }
            UNBIND if response => {
                need(24)?;
                Ok(SessionMessage::UnbindResponse { user: word(4), handle: half(10), status: half(22) })
            }
            UNBIND => {
                need(20)?;
                Ok(SessionMessage::Unbind { user: word(4), handle: half(10) })
            }
            LIVENESS_TEST => {
                need(28)?;
                Ok(SessionMessage::LivenessTest {
                    interval_s: half(4),
                    count: word(8),
                    source: name(12),
                    destination: name(20),
                })
            }
            value => Err(WireError::Malformed { field: "iFCP session command", value: u64::from(value) }),
        }
    }
}

impl Message {
    /// Appends the message's bytes.
    pub fn encode(&self, into: &mut BytesMut) {
        match self {
            Message::Device(device) => {
                let transparent = if device.mode == AddressMode::Transparent { TRANSPARENT } else { 0 };
                let special = if device.special { SPECIAL } else { 0 };
                let command = device.accepted.map_or(0, |command| command.0);
                encode(&device.frame, [command, transparent | special], device.time, into);
            }
            Message::Session(message, time) => {
                let r_ctl = if message.is_response() { routing::ELS_REPLY } else { routing::ELS_REQUEST };
                let header = FrameHeader {
                    r_ctl,
                    kind: FrameType::ELS,
                    ox_id: 0,
                    rx_id: 0,
                    d_id: FcId::NONE,
                    ..FrameHeader::default()
                };
                let payload = Payload::Bytes(message.payload());
                let frame = Frame { sof: Sof::Initiate3, header, payload, eof: Eof::Terminate };
                encode(&frame, [0, SESSION], *time, into);
            }
        }
    }

    /// Takes one message off the front of a stream; None when it is not complete, and then `stream` is left alone.
    ///
    /// # Errors
    /// The stream cannot be read further, or the peer broke the protocol: the session ends (RFC 4172, table 5).
    pub fn decode(stream: &mut BytesMut) -> Result<Option<Result<Message, Discarded>>, WireError> {
        let Some((header, rest)) = encapsulation::take(stream)? else { return Ok(None) };
        if header.protocol != EncapsulationProtocol::Ifcp || !header.has_crc {
            let value = u64::from(header.protocol as u8);
            return Err(WireError::Malformed { field: "protocol of an iFCP frame", value });
        }
        let [_, _, _, _, accepted, flags, sof, eof] = header.specific;
        if flags & SESSION != 0 && flags & (TRANSPARENT | SPECIAL) != 0 {
            return Err(WireError::Malformed { field: "iFCP flags", value: u64::from(flags) });
        }
        let frame = match encapsulation::decode_frame(&rest).and_then(|frame| carried(frame, sof, eof)) {
            Ok(frame) => frame,
            Err(reason) => return Ok(Some(Err(Discarded { reason }))),
        };
        if flags & SESSION != 0 {
            return match session(&frame) {
                Ok(message) => Ok(Some(Ok(Message::Session(message, header.time)))),
                Err(reason) => Ok(Some(Err(Discarded { reason }))),
            };
        }
        Ok(Some(Ok(Message::Device(DeviceFrame {
            frame,
            mode: if flags & TRANSPARENT != 0 { AddressMode::Transparent } else { AddressMode::Translation },
            special: flags & SPECIAL != 0,
            accepted: (accepted != 0).then_some(Command(accepted)),
            time: header.time,
        }))))
    }
}

/// The message in a session frame (RFC 4172, figure 17).
fn session(frame: &Frame) -> Result<SessionMessage, WireError> {
    let header = frame.header;
    let wrong = |field, value: u8| Err(WireError::Malformed { field, value: u64::from(value) });
    if frame.sof != Sof::Initiate3 || frame.eof != Eof::Terminate {
        return wrong("SOF of an iFCP session frame", frame.sof.code());
    }
    if header.kind != FrameType::ELS {
        return wrong("type of an iFCP session frame", header.kind.0);
    }
    let response = match header.r_ctl {
        routing::ELS_REQUEST => false,
        routing::ELS_REPLY => true,
        other => return wrong("R_CTL of an iFCP session frame", other),
    };
    SessionMessage::parse(&frame.payload.to_bytes(), response)
}

/// The frame, where its delimiters are those of the header and of classes 2 and 3 (RFC 4172, tables 3 and 4).
fn carried(frame: Frame, sof: u8, eof: u8) -> Result<Frame, WireError> {
    let classes = matches!(frame.sof, Sof::Initiate2 | Sof::Normal2 | Sof::Initiate3 | Sof::Normal3);
    if !classes || frame.sof.code() != sof {
        return Err(WireError::Malformed { field: "SOF of an iFCP frame", value: u64::from(sof) });
    }
    if !matches!(frame.eof, Eof::Normal | Eof::Terminate) || frame.eof.code() != eof {
        return Err(WireError::Malformed { field: "EOF of an iFCP frame", value: u64::from(eof) });
    }
    Ok(frame)
}

fn encode(frame: &Frame, [command, flags]: [u8; 2], time: TimeStamp, into: &mut BytesMut) {
    let header = EncapsulationHeader {
        protocol: EncapsulationProtocol::Ifcp,
        specific: [0, 0, 0, 0, command, flags, frame.sof.code(), frame.eof.code()],
        bytes: encapsulation::encapsulated_bytes(frame),
        time,
        has_crc: true,
    };
    into.put_slice(&header.to_bytes());
    encapsulation::encode_frame(frame, into);
}
