//! The header of a frame, 24 bytes (FC-FS-2, clause 9).

use super::address::FcId;
use crate::error::{require, WireError};

/// Bytes of a header.
pub const FRAME_HEADER_BYTES: usize = 24;
/// OX_ID or RX_ID that nobody has assigned yet.
pub const UNASSIGNED: u16 = 0xffff;

/// Values of R_CTL: category of the frame's content (FC-FS-2, tables 8 to 14).
pub mod routing {
    /// Solicited data: FCP_DATA.
    pub const SOLICITED_DATA: u8 = 0x01;
    /// Unsolicited control: a request of the common transport.
    pub const UNSOLICITED_CONTROL: u8 = 0x02;
    /// Solicited control: a response of the common transport.
    pub const SOLICITED_CONTROL: u8 = 0x03;
    /// Unsolicited data.
    pub const UNSOLICITED_DATA: u8 = 0x04;
    /// Data descriptor: FCP_XFER_RDY.
    pub const DATA_DESCRIPTOR: u8 = 0x05;
    /// Unsolicited command: FCP_CMND.
    pub const UNSOLICITED_COMMAND: u8 = 0x06;
    /// Command status: FCP_RSP.
    pub const COMMAND_STATUS: u8 = 0x07;
    /// Extended link service, request.
    pub const ELS_REQUEST: u8 = 0x22;
    /// Extended link service, reply.
    pub const ELS_REPLY: u8 = 0x23;
    /// FC-4 link service, request.
    pub const FC4_REQUEST: u8 = 0x32;
    /// FC-4 link service, reply.
    pub const FC4_REPLY: u8 = 0x33;
    /// Basic link service: abort sequence (ABTS).
    pub const ABORT_SEQUENCE: u8 = 0x81;
    /// Basic link service: accept (BA_ACC).
    pub const BASIC_ACCEPT: u8 = 0x84;
    /// Basic link service: reject (BA_RJT).
    pub const BASIC_REJECT: u8 = 0x85;
    /// Link control: reject by the port (P_RJT).
    pub const PORT_REJECT: u8 = 0xc2;
    /// Link control: reject by the fabric (F_RJT).
    pub const FABRIC_REJECT: u8 = 0xc3;
}

/// Bits of F_CTL (FC-FS-2, table 16).
pub mod frame_control {
    /// The exchange's responder sent it.
    pub const EXCHANGE_RESPONDER: u32 = 1 << 23;
    /// The sequence's recipient sent it.
    pub const SEQUENCE_RECIPIENT: u32 = 1 << 22;
    /// First sequence of its exchange.
    pub const FIRST_SEQUENCE: u32 = 1 << 21;
    /// Last sequence of its exchange.
    pub const LAST_SEQUENCE: u32 = 1 << 20;
    /// Last frame of its sequence.
    pub const END_SEQUENCE: u32 = 1 << 19;
    /// The other side may send the next sequence.
    pub const SEQUENCE_INITIATIVE: u32 = 1 << 16;
    /// The parameter is the payload's place in the data.
    pub const RELATIVE_OFFSET: u32 = 1 << 3;
    /// Bytes of padding behind the payload, 0 to 3.
    pub const FILL_MASK: u32 = 3;
}

/// Kind of a frame's payload (FC-FS-2, table 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameType(pub u8);

impl FrameType {
    /// Basic link service.
    pub const BASIC: FrameType = FrameType(0x00);
    /// Extended link service.
    pub const ELS: FrameType = FrameType(0x01);
    /// SCSI.
    pub const FCP: FrameType = FrameType(0x08);
    /// Common transport of the fabric's servers.
    pub const CT: FrameType = FrameType(0x20);
    /// Internal link service, among switches.
    pub const ILS: FrameType = FrameType(0x22);
}

/// A header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// Category of the content: [`routing`].
    pub r_ctl: u8,
    /// Address of the receiver.
    pub d_id: FcId,
    /// Class-specific control; 0 in class 3 without priority.
    pub cs_ctl: u8,
    /// Address of the sender.
    pub s_id: FcId,
    /// Kind of the payload.
    pub kind: FrameType,
    /// 24 bits of [`frame_control`].
    pub f_ctl: u32,
    /// Sequence.
    pub seq_id: u8,
    /// Optional headers in the payload; 0 = none.
    pub df_ctl: u8,
    /// Place of the frame in its sequence, and through streamed sequences; wraps.
    pub seq_cnt: u16,
    /// Exchange, as its originator numbers it.
    pub ox_id: u16,
    /// Exchange, as its responder numbers it; [`UNASSIGNED`] until it has.
    pub rx_id: u16,
    /// Place of the payload in the data, bytes, with [`frame_control::RELATIVE_OFFSET`].
    pub parameter: u32,
}

impl Default for FrameHeader {
    fn default() -> FrameHeader {
        FrameHeader {
            r_ctl: 0,
            d_id: FcId::NONE,
            cs_ctl: 0,
            s_id: FcId::NONE,
            kind: FrameType::BASIC,
            f_ctl: 0,
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 0,
            ox_id: UNASSIGNED,
            rx_id: UNASSIGNED,
            parameter: 0,
        }
    }
}

impl FrameHeader {
    /// Reads a header.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn parse(bytes: &[u8]) -> Result<FrameHeader, WireError> {
        require(bytes, FRAME_HEADER_BYTES, "FC frame header")?;
        let id = |at: usize| FcId::of(bytes[at], bytes[at + 1], bytes[at + 2]);
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Ok(FrameHeader {
            r_ctl: bytes[0],
            d_id: id(1),
            cs_ctl: bytes[4],
            s_id: id(5),
            kind: FrameType(bytes[8]),
            f_ctl: u32::from_be_bytes([0, bytes[9], bytes[10], bytes[11]]),
            seq_id: bytes[12],
            df_ctl: bytes[13],
            seq_cnt: half(14),
            ox_id: half(16),
            rx_id: half(18),
            parameter: u32::from_be_bytes([bytes[20], bytes[21], bytes[22], bytes[23]]),
        })
    }

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[0] = self.r_ctl;
        bytes[1..4].copy_from_slice(&self.d_id.to_bytes());
        bytes[4] = self.cs_ctl;
        bytes[5..8].copy_from_slice(&self.s_id.to_bytes());
        bytes[8] = self.kind.0;
        bytes[9..12].copy_from_slice(&self.f_ctl.to_be_bytes()[1..]);
        bytes[12] = self.seq_id;
        bytes[13] = self.df_ctl;
        bytes[14..16].copy_from_slice(&self.seq_cnt.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.ox_id.to_be_bytes());
        bytes[18..20].copy_from_slice(&self.rx_id.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.parameter.to_be_bytes());
        bytes
    }

    /// True when a bit of [`frame_control`] is set.
    pub fn has(&self, bit: u32) -> bool {
        self.f_ctl & bit != 0
    }
}
