//! FCoE Initialization Protocol (FC-BB-5, clause 7.8; constants as Linux's `include/scsi/fc/fc_fip.h`): discovery of
//! VLANs and forwarders, logins and logouts of virtual ports, keep-alives.
//!
//! A message is a header and a list of descriptors. Descriptors of types 128 and above may be left out by who does not
//! know them; of the others each is known, or the message is refused.

use crate::error::{require, WireError};
use crate::fc::{FcId, FrameHeader, Wwn, FRAME_HEADER_BYTES};
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of the header before descriptors.
pub const FIP_HEADER_BYTES: usize = 10;
/// Ethernet address of all forwarders.
pub const ALL_FCF_MACS: [u8; 6] = [0x01, 0x10, 0x18, 0x01, 0x00, 0x02];
/// Ethernet address of all nodes.
pub const ALL_ENODE_MACS: [u8; 6] = [0x01, 0x10, 0x18, 0x01, 0x00, 0x01];
/// Time between a forwarder's advertisements, and between a node's keep-alives, unless it is set otherwise, ms.
pub const DEFAULT_KEEP_ALIVE_MS: u32 = 8_000;
/// Time between keep-alives of a virtual port, ms.
pub const PORT_KEEP_ALIVE_MS: u32 = 90_000;

const VERSION: u8 = 1;

/// Operation of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A node looks for forwarders.
    Solicitation,
    /// A forwarder says that it is there.
    Advertisement,
    /// FLOGI, FDISC or LOGO of a node.
    LinkServiceRequest,
    /// The forwarder's answer.
    LinkServiceReply,
    /// A node or one of its ports is alive.
    KeepAlive,
    /// A forwarder ends logins.
    ClearVirtualLinks,
    /// A node asks for the VLANs with forwarders.
    VlanRequest,
    /// A forwarder names them.
    VlanNotification,
}

impl Operation {
    const CODES: [(Operation, u16, u8); 8] = [
        (Operation::Solicitation, 1, 1),
        (Operation::Advertisement, 1, 2),
        (Operation::LinkServiceRequest, 2, 1),
        (Operation::LinkServiceReply, 2, 2),
        (Operation::KeepAlive, 3, 1),
        (Operation::ClearVirtualLinks, 3, 2),
        (Operation::VlanRequest, 4, 1),
        (Operation::VlanNotification, 4, 2),
    ];

    fn from_codes(code: u16, subcode: u8) -> Result<Operation, WireError> {
        let found = Operation::CODES.iter().find(|(_, a, b)| (*a, *b) == (code, subcode));
        let value = u64::from(code) << 8 | u64::from(subcode);
        found.map(|(operation, _, _)| *operation).ok_or(WireError::Malformed { field: "FIP operation", value })
    }

    fn codes(self) -> (u16, u8) {
        let found = Operation::CODES.iter().find(|(operation, _, _)| *operation == self);
        found.map_or((0, 0), |(_, code, subcode)| (*code, *subcode))
    }
}

/// Flags of the header.
pub mod flags {
    /// The fabric provides Ethernet addresses.
    pub const FABRIC_PROVIDED_MACS: u16 = 0x8000;
    /// The node provides its own Ethernet address.
    pub const SERVER_PROVIDED_MACS: u16 = 0x4000;
    /// The forwarder takes logins.
    pub const AVAILABLE: u16 = 0x0004;
    /// The message answers a solicitation.
    pub const SOLICITED: u16 = 0x0002;
    /// The sender has fabric ports.
    pub const FABRIC_PORT: u16 = 0x0001;
}

/// Link service in a message: an FC frame's header and payload, without delimiters and CRC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkService {
    /// The frame's header.
    pub header: FrameHeader,
    /// The frame's payload.
    pub payload: Bytes,
}

/// A descriptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Descriptor {
    /// Rank of a forwarder; the lowest number is preferred.
    Priority(u8),
    /// Ethernet address.
    Mac([u8; 6]),
    /// Upper half of the Ethernet addresses that the fabric gives, 24 bits.
    FcMap(u32),
    /// Name of the node or switch.
    Name(Wwn),
    /// Fabric.
    Fabric {
        /// Virtual fabric.
        id: u16,
        /// As [`Descriptor::FcMap`].
        fc_map: u32,
        /// Name.
        name: Wwn,
    },
    /// Largest FC frame with FCoE's header and trailer that the sender takes, bytes.
    MaxFcoeBytes(u16),
    /// FLOGI.
    Flogi(LinkService),
    /// FDISC.
    Fdisc(LinkService),
    /// LOGO.
    Logo(LinkService),
    /// ELP, among switches.
    Elp(LinkService),
    /// A virtual port.
    Port {
        /// Its Ethernet address.
        mac: [u8; 6],
        /// Its FC address.
        id: FcId,
        /// Its name.
        name: Wwn,
    },
    /// Time between advertisements and keep-alives.
    KeepAlivePeriod {
        /// Nodes send no keep-alives.
        off: bool,
        /// The time, ms.
        ms: u32,
    },
    /// Vendor.
    Vendor([u8; 8]),
    /// Virtual LAN.
    Vlan(u16),
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Operation.
    pub operation: Operation,
    /// Bits of [`flags`].
    pub flags: u16,
    /// Descriptors, in order.
    pub descriptors: Vec<Descriptor>,
}

impl Message {
    /// Appends what follows the Ethernet header.
    pub fn encode(&self, into: &mut BytesMut) {
        let (code, subcode) = self.operation.codes();
        let start = into.len();
        into.put_slice(&[VERSION << 4, 0]);
        into.put_u16(code);
        into.put_slice(&[0, subcode]);
        into.put_u16(0);
        into.put_u16(self.flags);
        for descriptor in &self.descriptors {
            descriptor.encode(into);
        }
        let words = (into.len() - start - FIP_HEADER_BYTES) / 4;
        into[start + 6..start + 8].copy_from_slice(&(words as u16).to_be_bytes());
    }

    /// Reads what follows the Ethernet header; padding behind the descriptors is left out.
    ///
    /// # Errors
    /// Bytes are missing, version or operation are unknown, or a descriptor that must be known is not, or has a wrong
    /// length.
    pub fn decode(bytes: &Bytes) -> Result<Message, WireError> {
        require(bytes, FIP_HEADER_BYTES, "FIP header")?;
        if bytes[0] >> 4 != VERSION {
            return Err(WireError::Malformed { field: "FIP version", value: u64::from(bytes[0] >> 4) });
        }
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let operation = Operation::from_codes(half(2), bytes[5] & 0x0f)?;
        let end = FIP_HEADER_BYTES + usize::from(half(6)) * 4;
        require(bytes, end, "FIP descriptors")?;
        let mut descriptors = Vec::new();
        let mut at = FIP_HEADER_BYTES;
        while at < end {
            require(&bytes[at..end], 4, "FIP descriptor")?;
            let length = usize::from(bytes[at + 1]) * 4;
            if length == 0 {
                return Err(WireError::Malformed { field: "FIP descriptor length", value: 0 });
            }
            require(&bytes[at..end], length, "FIP descriptor")?;
            descriptors.extend(Descriptor::decode(&bytes.slice(at..at + length))?);
            at += length;
        }
        Ok(Message { operation, flags: half(8), descriptors })
    }
}

impl Descriptor {
    fn encode(&self, into: &mut BytesMut) {
        let start = into.len();
        let begin = |into: &mut BytesMut, kind: u8| into.put_slice(&[kind, 0]);
        match self {
            Descriptor::Priority(priority) => {
                begin(into, 1);
                into.put_slice(&[0, *priority]);
            }
            Descriptor::Mac(mac) => {
                begin(into, 2);
                into.put_slice(mac);
            }
            Descriptor::FcMap(map) => {
                begin(into, 3);
                into.put_slice(&[0, 0]);
                into.put_u32(*map);
            }
            Descriptor::Name(name) => {
                begin(into, 4);
                into.put_u16(0);
                into.put_u64(name.0);
            }
            Descriptor::Fabric { id, fc_map, name } => {
                begin(into, 5);
                into.put_u16(*id);
                into.put_u32(*fc_map);
                into.put_u64(name.0);
            }
            Descriptor::MaxFcoeBytes(bytes) => {
                begin(into, 6);
                into.put_u16(*bytes);
            }
            Descriptor::Flogi(service) => service.encode(7, into),
            Descriptor::Fdisc(service) => service.encode(8, into),
            Descriptor::Logo(service) => service.encode(9, into),
            Descriptor::Elp(service) => service.encode(10, into),
            Descriptor::Port { mac, id, name } => {
                begin(into, 11);
                into.put_slice(mac);
                into.put_u32(id.value());
                into.put_u64(name.0);
            }
            Descriptor::KeepAlivePeriod { off, ms } => {
                begin(into, 12);
                into.put_slice(&[0, u8::from(*off)]);
                into.put_u32(*ms);
            }
            Descriptor::Vendor(id) => {
                begin(into, 13);
                into.put_u16(0);
                into.put_slice(id);
            }
            Descriptor::Vlan(id) => {
                begin(into, 14);
                into.put_u16(*id);
            }
        }
        into[start + 1] = ((into.len() - start) / 4) as u8;
    }

    /// Reads a descriptor; None for one that may be left out. `bytes` is all of it.
    fn decode(bytes: &Bytes) -> Result<Option<Descriptor>, WireError> {
        let kind = bytes[0];
        if kind >= 128 {
            return Ok(None);
        }
        let length = |expected: usize| match bytes.len() {
            found if found == expected => Ok(()),
            found => Err(WireError::Malformed { field: "FIP descriptor length", value: found as u64 / 4 }),
        };
        let mac = || [bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]];
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let name = |at: usize| Wwn(u64::from(word(at)) << 32 | u64::from(word(at + 4)));
        Ok(Some(match kind {
            1 => {
                length(4)?;
                Descriptor::Priority(bytes[3])
            }
            2 => {
                length(8)?;
                Descriptor::Mac(mac())
            }
            3 => {
                length(8)?;
                Descriptor::FcMap(word(4) & 0xff_ffff)
            }
            4 => {
                length(12)?;
                Descriptor::Name(name(4))
            }
            5 => {
                length(16)?;
                Descriptor::Fabric { id: half(2), fc_map: word(4) & 0xff_ffff, name: name(8) }
            }
            6 => {
                length(4)?;
                Descriptor::MaxFcoeBytes(half(2))
            }
            7 => Descriptor::Flogi(LinkService::decode(bytes)?),
            8 => Descriptor::Fdisc(LinkService::decode(bytes)?),
            9 => Descriptor::Logo(LinkService::decode(bytes)?),
            10 => Descriptor::Elp(LinkService::decode(bytes)?),
            11 => {
                length(20)?;
                Descriptor::Port { mac: mac(), id: FcId::new(word(8)), name: name(12) }
            }
            12 => {
                length(8)?;
                Descriptor::KeepAlivePeriod { off: bytes[3] & 1 != 0, ms: word(4) }
            }
            13 => {
                length(12)?;
                let mut id = [0; 8];
                id.copy_from_slice(&bytes[4..12]);
                Descriptor::Vendor(id)
            }
            14 => {
                length(4)?;
                Descriptor::Vlan(half(2) & 0x0fff)
            }
            _ => return Err(WireError::Malformed { field: "FIP descriptor type", value: u64::from(kind) }),
        }))
    }
}

impl LinkService {
    fn encode(&self, kind: u8, into: &mut BytesMut) {
        into.put_slice(&[kind, 0, 0, 0]);
        into.put_slice(&self.header.to_bytes());
        into.put_slice(&self.payload);
        into.put_bytes(0, self.payload.len().wrapping_neg() % 4);
    }

    fn decode(bytes: &Bytes) -> Result<LinkService, WireError> {
        require(bytes, 4 + FRAME_HEADER_BYTES, "link service in a FIP descriptor")?;
        Ok(LinkService { header: FrameHeader::parse(&bytes[4..])?, payload: bytes.slice(4 + FRAME_HEADER_BYTES..) })
    }
}
