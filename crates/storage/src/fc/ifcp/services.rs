//! Link services: which a gateway passes on, changes or rejects (RFC 4172, section 7 and appendix A).

use wire::fc::els::Command;
use wire::fc::{routing, Eof, Frame, FrameHeader, FrameType, Sof, FRAME_BYTES_MAX};
use wire::ifcp::AddressMode;

/// Basic link services of class 1, which iFCP does not carry (RFC 4172, A.1): RMC and PRMT.
const CLASS_1_SERVICES: [u8; 2] = [0x82, 0x86];

/// Treatment of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Policy {
    /// It goes on as it came.
    PassThrough,
    /// The gateways act on it: it goes with the SPC flag.
    Special,
    /// The sending gateway rejects it.
    Rejected,
}

/// Link services that carry addresses, or may (RFC 4172, table 11), PLOGI and LOGO left out.
const WITH_ADDRESSES: [Command; 12] = [
    Command::ABTX,
    Command::ADISC,
    Command::FARP_REPLY,
    Command::FARP_REQ,
    Command::REC,
    Command::RES,
    Command::RLS,
    Command::RSS,
    Command::RRQ,
    Command::RSI,
    Command::SRL,
    Command::TPRLO,
];

/// Link services that pass through (RFC 4172, table 10), by the codes of Linux's `fc_els.h`.
const PASS_THROUGH: [u8; 42] = [
    0x0d, // ADVC
    0x68, // CSR
    0x69, // CSU
    0x10, // ECHO
    0x0c, // ESTC
    0x0b, // ESTS
    0x31, // FACT
    0x60, // FAN
    0x32, // FDACT
    0x51, // FDISC
    0x04, // FLOGI
    0x30, // GAID
    0x25, // LCLM
    0x70, // LINIT
    0x7a, // LIRR
    0x71, // LPC
    0x72, // LSTS
    0x33, // NACT
    0x34, // NDACT
    0x50, // PDISC
    0x20, // PRLI
    0x21, // PRLO
    0x40, // QoSR
    0x07, // RCS
    0x79, // RLIR
    0x53, // RNC
    0x63, // RNFT
    0x78, // RNID
    0x57, // RPL
    0x56, // RPS
    0x7d, // RPSC
    0x61, // RSCN
    0x0e, // RTV
    0x41, // RVCS
    0x7c, // SBRP
    0x22, // SCN
    0x62, // SCR
    0x11, // TEST
    0x23, // TPLS
    0x14, // SRR
    0x01, // LS_RJT
    0x02, // LS_ACC
];

/// True for frames of extended link services and of SCSI's link services.
pub(super) fn is_link_service(header: &FrameHeader) -> bool {
    match header.kind {
        FrameType::ELS => matches!(header.r_ctl, routing::ELS_REQUEST | routing::ELS_REPLY),
        FrameType::FCP => matches!(header.r_ctl, routing::FC4_REQUEST | routing::FC4_REPLY),
        _ => false,
    }
}

/// True for requests, false for answers.
pub(super) fn is_request(header: &FrameHeader) -> bool {
    matches!(header.r_ctl, routing::ELS_REQUEST | routing::FC4_REQUEST)
}

/// The treatment of a request.
///
/// A command that RFC 4172 does not list is rejected in translation mode: it may carry an address, which would be
/// another port's behind the other gateway (RFC 6172, 3.1).
pub(super) fn policy(kind: FrameType, command: Command, mode: AddressMode) -> Policy {
    let translates = mode == AddressMode::Translation;
    if kind == FrameType::FCP {
        return if translates && command == Command::REC { Policy::Special } else { Policy::PassThrough };
    }
    match command {
        Command::PLOGI | Command::LOGO => Policy::Special,
        _ if !translates => Policy::PassThrough,
        _ if WITH_ADDRESSES.contains(&command) => Policy::Special,
        _ if PASS_THROUGH.contains(&command.0) => Policy::PassThrough,
        _ => Policy::Rejected,
    }
}

/// True when gateways act on a request: it goes with the SPC flag (RFC 4172, 7.1).
pub fn is_special(kind: FrameType, command: Command, mode: AddressMode) -> bool {
    policy(kind, command, mode) == Policy::Special
}

/// True when gateways act on the accept of a request, too.
pub fn has_special_accept(command: Command, mode: AddressMode) -> bool {
    match command {
        Command::PLOGI | Command::LOGO => true,
        Command::ADISC | Command::REC | Command::RES | Command::TPRLO => mode == AddressMode::Translation,
        _ => false,
    }
}

/// True for frames that may cross: of class 3, between devices, whole.
pub(super) fn is_device_traffic(frame: &Frame) -> bool {
    matches!(frame.sof, Sof::Initiate3 | Sof::Normal3)
        && matches!(frame.eof, Eof::Normal | Eof::Terminate)
        && frame.header.kind != FrameType::ILS
        && !(frame.header.kind == FrameType::BASIC && CLASS_1_SERVICES.contains(&frame.header.r_ctl))
        && frame.content_bytes() <= FRAME_BYTES_MAX
}
