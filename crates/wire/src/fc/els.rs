//! Extended link services (FC-LS): logins, discovery, registered state changes, and what error recovery asks.

use super::address::{FcId, Wwn};
use super::login::{Login, LOGIN_BYTES};
use crate::error::{require, WireError};
use bytes::{BufMut, Bytes, BytesMut};

pub use super::command::Command;

/// A request of which elephan reads the content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// PLOGI, FLOGI, FDISC or PDISC: [`Login::command`] says which.
    Login(Login),
    /// LOGO.
    Logout(Logout),
    /// PRLI.
    ProcessLogin(ProcessLogin),
    /// PRLO: as PRLI, of the pairs that end.
    ProcessLogout(ProcessLogin),
    /// ADISC.
    DiscoverAddress(DiscoverAddress),
    /// RRQ.
    ReinstateRecoveryQualifier(ExchangeName),
    /// REC.
    ReadExchangeConcise(ExchangeName),
    /// RTV.
    ReadTimeouts,
    /// ECHO, with the bytes that come back.
    Echo(Bytes),
    /// SCR.
    Register(ChangeRegistration),
    /// RSCN.
    StateChange(Vec<AffectedPorts>),
    /// Any other, or one of those above whose content is not as FC-LS has it.
    Other(Bytes),
}

impl Request {
    /// Reads a request's payload.
    ///
    /// # Errors
    /// There are not four bytes, or content of a known command is missing.
    pub fn parse(payload: &Bytes) -> Result<Request, WireError> {
        Ok(match Command::of(payload)? {
            Command::PLOGI | Command::FLOGI | Command::FDISC | Command::PDISC => Request::Login(Login::parse(payload)?),
            Command::LOGO => Request::Logout(Logout::parse(payload)?),
            Command::PRLI => Request::ProcessLogin(ProcessLogin::parse(payload)?),
            Command::PRLO => Request::ProcessLogout(ProcessLogin::parse(payload)?),
            Command::ADISC => Request::DiscoverAddress(DiscoverAddress::parse(payload)?),
            Command::RRQ => Request::ReinstateRecoveryQualifier(ExchangeName::parse(payload)?),
            Command::REC => Request::ReadExchangeConcise(ExchangeName::parse(payload)?),
            Command::RTV => Request::ReadTimeouts,
            Command::ECHO => Request::Echo(payload.slice(4..)),
            Command::SCR => Request::Register(ChangeRegistration::parse(payload)?),
            Command::RSCN => Request::StateChange(AffectedPorts::parse_all(payload)?),
            _ => Request::Other(payload.clone()),
        })
    }

    /// The payload's bytes.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Request::Login(login) => Bytes::copy_from_slice(&login.to_bytes()),
            Request::Logout(logout) => logout.to_bytes(),
            Request::ProcessLogin(login) => login.to_bytes(Command::PRLI),
            Request::ProcessLogout(login) => login.to_bytes(Command::PRLO),
            Request::DiscoverAddress(discover) => discover.to_bytes(Command::ADISC),
            Request::ReinstateRecoveryQualifier(exchange) => exchange.to_bytes(Command::RRQ),
            Request::ReadExchangeConcise(exchange) => exchange.to_bytes(Command::REC),
            Request::ReadTimeouts => Bytes::from_static(&[0x0e, 0, 0, 0]),
            Request::Echo(bytes) => {
                let mut payload = BytesMut::from(&[Command::ECHO.0, 0, 0, 0][..]);
                payload.extend_from_slice(bytes);
                payload.freeze()
            }
            Request::Register(registration) => Bytes::from(vec![Command::SCR.0, 0, 0, 0, 0, 0, 0, *registration as u8]),
            Request::StateChange(pages) => AffectedPorts::to_bytes(pages),
            Request::Other(bytes) => bytes.clone(),
        }
    }
}

/// A reject (LS_RJT), 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reject {
    /// Reason: [`Reject::LOGICAL_ERROR`] and the like.
    pub reason: u8,
    /// Explanation: [`Reject::NO_EXPLANATION`] and the like.
    pub explanation: u8,
}

impl Reject {
    /// Reason: a field contradicts what the receiver knows.
    pub const LOGICAL_ERROR: u8 = 0x03;
    /// Reason: the receiver is busy.
    pub const LOGICAL_BUSY: u8 = 0x05;
    /// Reason: the request breaks the protocol.
    pub const PROTOCOL_ERROR: u8 = 0x07;
    /// Reason: the receiver cannot do it now.
    pub const UNABLE: u8 = 0x09;
    /// Reason: the receiver does not know the command.
    pub const NOT_SUPPORTED: u8 = 0x0b;
    /// Explanation: none.
    pub const NO_EXPLANATION: u8 = 0x00;
    /// Explanation: no port has that name.
    pub const INVALID_PORT_NAME: u8 = 0x0d;
    /// Explanation: no exchange has these identifiers.
    pub const INVALID_OX_RX_ID: u8 = 0x17;
    /// Explanation: the sender is not logged in.
    pub const LOGIN_REQUIRED: u8 = 0x1e;
    /// Explanation: no port has that address.
    pub const INVALID_PORT_ID: u8 = 0x1f;
    /// Explanation: no room for a further login.
    pub const INSUFFICIENT_RESOURCES: u8 = 0x29;
    /// Explanation: the request is not supported.
    pub const REQUEST_NOT_SUPPORTED: u8 = 0x2c;

    /// The payload's bytes.
    pub fn to_bytes(&self) -> Bytes {
        Bytes::from(vec![Command::LS_RJT.0, 0, 0, 0, 0, self.reason, self.explanation, 0])
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn parse(payload: &[u8]) -> Result<Reject, WireError> {
        require(payload, 8, "LS_RJT")?;
        Ok(Reject { reason: payload[5], explanation: payload[6] })
    }
}

/// An accept without content (LS_ACC).
pub fn accept() -> Bytes {
    Bytes::from_static(&[0x02, 0, 0, 0])
}

/// An accept of RTV (FC-LS, table 63). Times in ms.
pub fn accept_timeouts(r_a_tov_ms: u32, e_d_tov_ms: u32) -> Bytes {
    let mut payload = BytesMut::with_capacity(16);
    payload.put_u32(u32::from(Command::LS_ACC.0) << 24);
    payload.put_u32(r_a_tov_ms);
    payload.put_u32(e_d_tov_ms);
    payload.put_u32(0);
    payload.freeze()
}

/// An accept of ECHO: the bytes that came.
pub fn accept_echo(bytes: &[u8]) -> Bytes {
    let mut payload = BytesMut::from(&[Command::LS_ACC.0, 0, 0, 0][..]);
    payload.extend_from_slice(bytes);
    payload.freeze()
}

/// A port that logs out (LOGO), 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Logout {
    /// Address of the port that logs out.
    pub id: FcId,
    /// Its name.
    pub port: Wwn,
}

impl Logout {
    fn parse(payload: &[u8]) -> Result<Logout, WireError> {
        require(payload, 16, "LOGO")?;
        Ok(Logout { id: id(payload, 5), port: name(payload, 8) })
    }

    fn to_bytes(self) -> Bytes {
        let mut payload = BytesMut::with_capacity(16);
        payload.put_u32(u32::from(Command::LOGO.0) << 24);
        payload.put_u32(self.id.value());
        payload.put_u64(self.port.0);
        payload.freeze()
    }
}

/// Addresses and names of a port (ADISC and its accept), 28 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiscoverAddress {
    /// Address that the port's switches are set to; 0 = none.
    pub hard: FcId,
    /// Name of the port.
    pub port: Wwn,
    /// Name of the node.
    pub node: Wwn,
    /// Address.
    pub id: FcId,
}

impl DiscoverAddress {
    /// Reads the payload of a request or of its accept.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn parse(payload: &[u8]) -> Result<DiscoverAddress, WireError> {
        require(payload, 28, "ADISC")?;
        Ok(DiscoverAddress {
            hard: id(payload, 5),
            port: name(payload, 8),
            node: name(payload, 16),
            id: id(payload, 25),
        })
    }

    /// The payload of a request, [`Command::ADISC`], or of its accept, [`Command::LS_ACC`].
    pub fn to_bytes(self, command: Command) -> Bytes {
        let mut payload = BytesMut::with_capacity(28);
        payload.put_u32(u32::from(command.0) << 24);
        payload.put_u32(self.hard.value());
        payload.put_u64(self.port.0);
        payload.put_u64(self.node.0);
        payload.put_u32(self.id.value());
        payload.freeze()
    }
}

/// An exchange, as RRQ and REC name it, 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExchangeName {
    /// Address of its originator.
    pub originator: FcId,
    /// The originator's number.
    pub ox_id: u16,
    /// The responder's number.
    pub rx_id: u16,
}

impl ExchangeName {
    fn parse(payload: &[u8]) -> Result<ExchangeName, WireError> {
        require(payload, 12, "RRQ or REC")?;
        let half = |at: usize| u16::from_be_bytes([payload[at], payload[at + 1]]);
        Ok(ExchangeName { originator: id(payload, 5), ox_id: half(8), rx_id: half(10) })
    }

    fn to_bytes(self, command: Command) -> Bytes {
        let mut payload = BytesMut::with_capacity(12);
        payload.put_u32(u32::from(command.0) << 24);
        payload.put_u32(self.originator.value());
        payload.put_u16(self.ox_id);
        payload.put_u16(self.rx_id);
        payload.freeze()
    }
}

/// State of an exchange: the accept of REC, 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExchangeStatus {
    /// The originator's number.
    pub ox_id: u16,
    /// The responder's number.
    pub rx_id: u16,
    /// Address of the originator.
    pub originator: FcId,
    /// Address of the responder.
    pub responder: FcId,
    /// Bytes of data that were transferred, for SCSI.
    pub transferred: u32,
    /// Bits of the exchange status block: who has the initiative, whether it ended.
    pub status: u32,
}

impl ExchangeStatus {
    /// Bit of `status`: this side is the exchange's responder.
    pub const RESPONDER: u32 = 1 << 31;
    /// Bit of `status`: this side has the sequence initiative.
    pub const INITIATIVE: u32 = 1 << 30;
    /// Bit of `status`: the exchange has ended.
    pub const COMPLETE: u32 = 1 << 29;

    /// Reads a payload.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn parse(payload: &[u8]) -> Result<ExchangeStatus, WireError> {
        require(payload, 24, "accept of REC")?;
        let half = |at: usize| u16::from_be_bytes([payload[at], payload[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        Ok(ExchangeStatus {
            ox_id: half(4),
            rx_id: half(6),
            originator: id(payload, 9),
            responder: id(payload, 13),
            transferred: word(16),
            status: word(20),
        })
    }

    /// The payload's bytes.
    pub fn to_bytes(self) -> Bytes {
        let mut payload = BytesMut::with_capacity(24);
        payload.put_u32(u32::from(Command::LS_ACC.0) << 24);
        payload.put_u16(self.ox_id);
        payload.put_u16(self.rx_id);
        payload.put_u32(self.originator.value());
        payload.put_u32(self.responder.value());
        payload.put_u32(self.transferred);
        payload.put_u32(self.status);
        payload.freeze()
    }
}

/// A process login with one page, SCSI's (PRLI, PRLO and their accepts), 20 bytes (FC-LS; FCP-3, 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessLogin {
    /// Type of the pair, 8 for SCSI.
    pub kind: u8,
    /// A pair of images is to be established, or is.
    pub establish: bool,
    /// Response code, in an accept; 1 = done.
    pub response: u8,
    /// Bits such as [`ProcessLogin::TARGET`].
    pub parameters: u32,
}

impl ProcessLogin {
    /// Parameter: the port is an initiator.
    pub const INITIATOR: u32 = 0x20;
    /// Parameter: the port is a target.
    pub const TARGET: u32 = 0x10;
    /// Parameter: retransmission of sequences (SRR) is supported.
    pub const RETRY: u32 = 0x100;
    /// Parameter: confirmed completion is allowed.
    pub const CONFIRMED_COMPLETION: u32 = 0x80;
    /// Parameter: no XFER_RDY before read data; every port has it.
    pub const NO_READ_TRANSFER_READY: u32 = 0x02;
    /// Response: done.
    pub const EXECUTED: u8 = 1;
    /// Bytes of a page.
    const PAGE_BYTES: u8 = 16;
    /// Flag of a page: establish a pair of images.
    const ESTABLISH: u8 = 0x20;

    /// Reads a payload's first page.
    ///
    /// # Errors
    /// Bytes are missing, or pages are not of 16 bytes.
    pub fn parse(payload: &[u8]) -> Result<ProcessLogin, WireError> {
        require(payload, 20, "PRLI")?;
        if payload[1] != ProcessLogin::PAGE_BYTES {
            return Err(WireError::Malformed { field: "PRLI page length", value: u64::from(payload[1]) });
        }
        Ok(ProcessLogin {
            kind: payload[4],
            establish: payload[6] & ProcessLogin::ESTABLISH != 0,
            response: payload[6] & 0x0f,
            parameters: u32::from_be_bytes([payload[16], payload[17], payload[18], payload[19]]),
        })
    }

    /// The payload of a request or, with [`Command::LS_ACC`], of its accept.
    pub fn to_bytes(self, command: Command) -> Bytes {
        let mut payload = BytesMut::with_capacity(20);
        payload.put_slice(&[command.0, ProcessLogin::PAGE_BYTES, 0, 20, self.kind, 0]);
        payload.put_u8(if self.establish { ProcessLogin::ESTABLISH } else { 0 } | self.response & 0x0f);
        payload.put_u8(0);
        payload.put_u64(0);
        payload.put_u32(self.parameters);
        payload.freeze()
    }
}

/// Changes that a port wants to hear of (SCR).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ChangeRegistration {
    /// Those that the fabric detects.
    Fabric = 1,
    /// Those that ports report.
    Ports = 2,
    /// Both.
    Full = 3,
    /// None from now on.
    Clear = 255,
}

impl ChangeRegistration {
    fn parse(payload: &[u8]) -> Result<ChangeRegistration, WireError> {
        require(payload, 8, "SCR")?;
        Ok(match payload[7] {
            1 => ChangeRegistration::Fabric,
            2 => ChangeRegistration::Ports,
            3 => ChangeRegistration::Full,
            255 => ChangeRegistration::Clear,
            value => return Err(WireError::Malformed { field: "SCR function", value: u64::from(value) }),
        })
    }
}

/// Ports whose state changed (a page of RSCN).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AffectedPorts {
    /// Qualifier of the event, 0 to 15; 0 = none given.
    pub event: u8,
    /// The part of the address that counts.
    pub scope: Scope,
    /// The address.
    pub id: FcId,
}

/// The part of an affected address that counts (RSCN).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Scope {
    /// All of it: one port.
    Port = 0,
    /// Domain and area.
    Area = 1,
    /// The domain.
    Domain = 2,
    /// None: the whole fabric.
    Fabric = 3,
}

impl AffectedPorts {
    fn parse_all(payload: &[u8]) -> Result<Vec<AffectedPorts>, WireError> {
        let length = usize::from(u16::from_be_bytes([payload[2], payload[3]]));
        if payload[1] != 4 || length < 4 || length % 4 != 0 {
            return Err(WireError::Malformed { field: "RSCN payload length", value: length as u64 });
        }
        require(payload, length, "RSCN")?;
        let page = |page: &[u8]| AffectedPorts {
            event: page[0] >> 2 & 0x0f,
            scope: [Scope::Port, Scope::Area, Scope::Domain, Scope::Fabric][usize::from(page[0] & 3)],
            id: id(page, 1),
        };
        Ok(payload[4..length].chunks_exact(4).map(page).collect())
    }

    fn to_bytes(pages: &[AffectedPorts]) -> Bytes {
        let length = 4 + 4 * pages.len() as u16;
        let mut payload = BytesMut::with_capacity(usize::from(length));
        payload.put_slice(&[Command::RSCN.0, 4]);
        payload.put_u16(length);
        for page in pages {
            payload.put_u8((page.event & 0x0f) << 2 | page.scope as u8);
            payload.put_slice(&page.id.to_bytes());
        }
        payload.freeze()
    }
}

/// An accept of a login: the login's content with the accept's command.
pub fn accept_login(login: &Login) -> [u8; LOGIN_BYTES] {
    Login { command: Command::LS_ACC.0, ..*login }.to_bytes()
}

fn id(bytes: &[u8], at: usize) -> FcId {
    FcId::of(bytes[at], bytes[at + 1], bytes[at + 2])
}

fn name(bytes: &[u8], at: usize) -> Wwn {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    Wwn(u64::from_be_bytes(value))
}
