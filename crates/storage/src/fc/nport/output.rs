//! Output of an N_Port: changes of logins, what belongs to FC-4, counters.

use bytes::Bytes;
use wire::fc::els::{ExchangeName, ExchangeStatus};
use wire::fc::{FcId, Frame, FrameHeader, Wwn};

/// A port with which this one is logged in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerInfo {
    /// Its address.
    pub id: FcId,
    /// Its name.
    pub port: Wwn,
    /// Name of its node.
    pub node: Wwn,
    /// Longest payload to send it, bytes.
    pub receive_bytes: u16,
    /// It said so at the process login.
    pub initiator: bool,
    /// It said so at the process login.
    pub target: bool,
}

/// A change of logins, or the answer to what the caller asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The port has an address, is registered, and hears of changes.
    Online {
        /// The address.
        id: FcId,
    },
    /// The port has no login with the fabric any more.
    Offline {
        /// Reason, for people.
        reason: &'static str,
    },
    /// A port is logged in, its process too where both sides have one.
    PeerUp(PeerInfo),
    /// A port is not logged in any more: its exchanges have ended.
    PeerDown {
        /// Its address.
        id: FcId,
        /// Its name.
        port: Wwn,
        /// Reason, for people.
        reason: &'static str,
    },
    /// A login with a port failed.
    PeerRefused {
        /// Its address.
        id: FcId,
        /// Reason, for people.
        reason: &'static str,
    },
    /// Addresses and names of the fabric's ports of a type: the answer to [`super::NPort::ask_ports`]. The name is 0
    /// where the fabric gives addresses only.
    Ports(Vec<(FcId, Wwn)>),
    /// The name server's answer to [`super::NPort::ask_directory`].
    DirectoryAnswer {
        /// Number of the question.
        number: u32,
        /// Content of an accept; None: a reject, or no answer.
        content: Option<Bytes>,
    },
    /// A port accepted [`super::NPort::ping`].
    Pong {
        /// Its address.
        id: FcId,
        /// Number of the ping.
        number: u32,
        /// Time between request and answer, ns.
        rtt_ns: u64,
    },
    /// A port did not answer a ping, or not by what it was asked for.
    NoPong {
        /// Its address.
        id: FcId,
        /// Number of the ping.
        number: u32,
        /// It answered by a reject.
        is_rejected: bool,
    },
}

/// Answer to a REC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusAnswer {
    /// The exchange's state.
    Status(ExchangeStatus),
    /// The port knows no such exchange.
    Rejected,
    /// None came.
    None,
}

/// Content that an N_Port leaves to its FC-4: SCSI, or a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Upward {
    /// A frame of a logged-in port that is no link service: data, commands, and basic link services (ABTS and its
    /// answers).
    Frame(Frame),
    /// A port asks for the state of an exchange (REC): answer with [`super::NPort::answer`].
    ReadExchange(FrameHeader, ExchangeName),
    /// A port gives back an aborted exchange's numbers (RRQ): answer with [`super::NPort::answer`].
    Reinstate(FrameHeader, ExchangeName),
    /// The answer to a REC that FC-4 sent, by its key.
    ExchangeStatus(u64, StatusAnswer),
    /// The end of an RRQ that FC-4 sent, by its key, whether accepted or not.
    Reinstated(u64),
}

/// Frames that an N_Port did not take, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// For another address.
    pub foreign: u64,
    /// Damaged, or not as a link service has to be.
    pub malformed: u64,
    /// Of another class than 3: rejected.
    pub other_class: u64,
    /// FC-4 frames of ports that are not logged in.
    pub no_login: u64,
    /// Answers to no request: late, or to nothing.
    pub unsolicited: u64,
    /// Requests sent again because no answer came.
    pub retries: u64,
    /// Fabric logins begun.
    pub fabric_logins: u64,
}
