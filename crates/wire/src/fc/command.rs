//! Commands of the extended link services (FC-LS, table 4).

use crate::error::{require, WireError};

/// First byte of a payload: the service.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Command(pub u8);

impl Command {
    /// Reject.
    pub const LS_RJT: Command = Command(0x01);
    /// Accept.
    pub const LS_ACC: Command = Command(0x02);
    /// Login to a port.
    pub const PLOGI: Command = Command(0x03);
    /// Login to the fabric.
    pub const FLOGI: Command = Command(0x04);
    /// Logout.
    pub const LOGO: Command = Command(0x05);
    /// Abort exchange; obsolete.
    pub const ABTX: Command = Command(0x06);
    /// Read exchange status block.
    pub const RES: Command = Command(0x08);
    /// Read sequence status block.
    pub const RSS: Command = Command(0x09);
    /// Request sequence initiative.
    pub const RSI: Command = Command(0x0a);
    /// Read time-out values.
    pub const RTV: Command = Command(0x0e);
    /// Read link error status block.
    pub const RLS: Command = Command(0x0f);
    /// Echo.
    pub const ECHO: Command = Command(0x10);
    /// Reinstate recovery qualifier.
    pub const RRQ: Command = Command(0x12);
    /// Read exchange concise.
    pub const REC: Command = Command(0x13);
    /// Process login.
    pub const PRLI: Command = Command(0x20);
    /// Process logout.
    pub const PRLO: Command = Command(0x21);
    /// Third-party process logout.
    pub const TPRLO: Command = Command(0x24);
    /// Discover a port's service parameters.
    pub const PDISC: Command = Command(0x50);
    /// Discover the fabric's service parameters; with no address yet, asks for a further one.
    pub const FDISC: Command = Command(0x51);
    /// Discover address.
    pub const ADISC: Command = Command(0x52);
    /// FC address resolution, request.
    pub const FARP_REQ: Command = Command(0x54);
    /// FC address resolution, reply.
    pub const FARP_REPLY: Command = Command(0x55);
    /// Registered state change notification.
    pub const RSCN: Command = Command(0x61);
    /// State change registration.
    pub const SCR: Command = Command(0x62);
    /// Request node identification data.
    pub const RNID: Command = Command(0x78);
    /// Keeps a link alive that another network carries, between switches.
    pub const LKA: Command = Command(0x80);
    /// Scan remote loop.
    pub const SRL: Command = Command(0x7b);

    /// The command of a payload.
    ///
    /// # Errors
    /// There are not four bytes.
    pub fn of(payload: &[u8]) -> Result<Command, WireError> {
        require(payload, 4, "extended link service")?;
        Ok(Command(payload[0]))
    }

    /// Mnemonic of FC-LS, where elephan knows it.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(command, _)| *command == self).map(|(_, name)| *name)
    }
}

const NAMES: [(Command, &str); 28] = [
    (Command::LS_RJT, "LS_RJT"),
    (Command::LS_ACC, "LS_ACC"),
    (Command::PLOGI, "PLOGI"),
    (Command::FLOGI, "FLOGI"),
    (Command::LOGO, "LOGO"),
    (Command::ABTX, "ABTX"),
    (Command::RES, "RES"),
    (Command::RSS, "RSS"),
    (Command::RSI, "RSI"),
    (Command::RTV, "RTV"),
    (Command::RLS, "RLS"),
    (Command::ECHO, "ECHO"),
    (Command::RRQ, "RRQ"),
    (Command::REC, "REC"),
    (Command::PRLI, "PRLI"),
    (Command::PRLO, "PRLO"),
    (Command::TPRLO, "TPRLO"),
    (Command::PDISC, "PDISC"),
    (Command::FDISC, "FDISC"),
    (Command::ADISC, "ADISC"),
    (Command::FARP_REQ, "FARP_REQ"),
    (Command::FARP_REPLY, "FARP_REPLY"),
    (Command::RSCN, "RSCN"),
    (Command::SCR, "SCR"),
    (Command::RNID, "RNID"),
    (Command::LKA, "LKA"),
    (Command::SRL, "SRL"),
    (Command(0x14), "SRR"),
];
