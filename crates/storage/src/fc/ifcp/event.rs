//! Events of a gateway, each of which says in one line what happened and why.

use super::output::{Pair, PeerKey};
use std::fmt;
use wire::fc::els::Command;
use wire::fc::{FcId, Wwn};
use wire::ifcp::BindStatus;
use wire::WireError;

/// Reason for which a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// A port logged out of the other.
    LoggedOut,
    /// A port refused the login.
    LoginRejected,
    /// The local port left its fabric.
    LocalPortGone,
    /// The remote port was taken off the list, or its address changed.
    RemotePortGone,
    /// The peer sent UNBIND.
    Unbound,
    /// The peer bound the pair anew.
    Replaced,
    /// The connection was lost.
    ConnectionLost,
    /// The connection could not be made.
    ConnectFailed,
    /// The peer sent nothing for twice the interval of liveness tests.
    Silent,
    /// A test of liveness was wrong.
    WrongTest,
    /// The peer did not answer CBIND.
    NoAnswer,
    /// The peer refused CBIND.
    Refused(BindStatus),
    /// The peer treats addresses in the other mode.
    WrongMode,
    /// The bytes of the connection are no iFCP.
    BrokenStream(WireError),
    /// The peer broke the protocol of session messages.
    ProtocolError,
    /// The gateway's clock lost its time server.
    Unsynchronized,
    /// The peer was removed.
    PeerRemoved,
    /// The gateway stops.
    Stopped,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EndReason::LoggedOut => "a port logged out",
            EndReason::LoginRejected => "a port rejected the login",
            EndReason::LocalPortGone => "the local port left its fabric",
            EndReason::RemotePortGone => "the remote port is not in the list any more, or has another address",
            EndReason::Unbound => "the peer ended it",
            EndReason::Replaced => "the peer bound the pair anew",
            EndReason::ConnectionLost => "the connection was lost",
            EndReason::ConnectFailed => "the peer could not be connected to",
            EndReason::Silent => "the peer was silent for twice the interval of liveness tests",
            EndReason::WrongTest => "a liveness test had wrong content",
            EndReason::NoAnswer => "the peer did not answer CBIND",
            EndReason::Refused(status) => return status.fmt(f),
            EndReason::WrongMode => "the peer treats addresses in the other mode",
            EndReason::BrokenStream(error) => return write!(f, "the stream is broken: {error}"),
            EndReason::ProtocolError => "the peer broke the protocol of session messages",
            EndReason::Unsynchronized => "this gateway's clock is not synchronised",
            EndReason::PeerRemoved => "the peer was removed",
            EndReason::Stopped => "this gateway stops",
        })
    }
}

/// Reason for which a message or frame was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The frame came with the flag of the other mode.
    WrongMode,
    /// The frame is older, or newer, than IP_TOV.
    Stale {
        /// Difference between the time stamp and this gateway's time, ms.
        difference_ms: u64,
    },
    /// The frame has no time stamp.
    NoTimeStamp,
    /// The frame is damaged or not as iFCP has it.
    Malformed(WireError),
    /// No message begins where one has to: the connection ends.
    NoMessage(WireError),
    /// The connection is bound to no session.
    NotBound,
    /// The frame is not of class 3, or is a switch's.
    NotDeviceTraffic,
    /// An address is not that of the session's port.
    WrongAddress {
        /// Address in the frame.
        found: FcId,
        /// Address of the session's port.
        expected: FcId,
    },
    /// A name is not that of the session's port.
    WrongName {
        /// Name in the message.
        found: Wwn,
        /// Name of the session's port.
        expected: Wwn,
    },
    /// A link service that this gateway must change came without the flag that says so.
    WrongFlag(Command),
    /// An accept answers another command than was asked.
    WrongAccept(Command),
    /// A link service names a port that this gateway does not know.
    UnknownPort(Wwn),
    /// A CBIND comes from a port that is not one of the peer's.
    ForeignPort(Wwn),
    /// A CBIND goes to a port that is not attached.
    NoSuchPort(Wwn),
    /// A CBIND was answered with this status.
    Bind(BindStatus),
    /// A message that has no place at this point of the session.
    Unexpected,
    /// A frame that finds the queue full.
    QueueFull,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::WrongMode => f.write_str("the frame is of the other address mode"),
            Refusal::Stale { difference_ms } => {
                write!(f, "the frame's time stamp differs by {difference_ms} ms, more than IP_TOV")
            }
            Refusal::NoTimeStamp => f.write_str("the frame has no time stamp"),
            Refusal::Malformed(error) => error.fmt(f),
            Refusal::NoMessage(error) => write!(f, "what it sent is no iFCP: {error}"),
            Refusal::NotBound => f.write_str("the connection has no session"),
            Refusal::NotDeviceTraffic => f.write_str("the frame is not device traffic of class 3"),
            Refusal::WrongAddress { found, expected } => {
                write!(f, "the frame has the address {found}, its session {expected}")
            }
            Refusal::WrongName { found, expected } => {
                write!(f, "the message has the port name {found}, its session {expected}")
            }
            Refusal::WrongFlag(command) => write!(f, "{} lacks the SPC flag", named(*command)),
            Refusal::WrongAccept(command) => write!(f, "an accept of {} answers no such request", named(*command)),
            Refusal::UnknownPort(name) => write!(f, "a link service names the unknown port {name}"),
            Refusal::ForeignPort(name) => write!(f, "CBIND comes from {name}, which is no port of this peer"),
            Refusal::NoSuchPort(name) => write!(f, "CBIND goes to {name}, which is not attached"),
            Refusal::Bind(status) => write!(f, "CBIND was refused: {}", refused(*status)),
            Refusal::Unexpected => f.write_str("the message has no place at this point of the session"),
            Refusal::QueueFull => f.write_str("the port sent more than its credits: its session's queue is full"),
        }
    }
}

/// The reason in a status that this gateway gives: in [`BindStatus`] it is the peer that speaks.
fn refused(status: BindStatus) -> &'static str {
    match status {
        BindStatus::Success => "bound",
        BindStatus::Unspecified => "the connection is in use",
        BindStatus::NoSuchDevice => "there is no such port",
        BindStatus::SessionExists => "this gateway binds the pair at the same time, and its port has the greater name",
        BindStatus::LackOfResources => "there is no room for a session",
        BindStatus::IncompatibleMode => "the address modes differ",
        BindStatus::IncorrectVersion => "the versions of iFCP differ",
        BindStatus::NotSynchronized => "this gateway's clock is not synchronised",
    }
}

fn named(command: Command) -> &'static str {
    command.name().unwrap_or("a link service")
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A peer can be reached.
    PeerUp(PeerKey),
    /// A peer cannot be reached: its ports are withdrawn.
    PeerDown(PeerKey),
    /// A peer closes connections as soon as they are made.
    PeerRefuses(PeerKey),
    /// The fabric has no place for a port, or has its name.
    NotPresented(PeerKey, Wwn),
    /// Frames may be sent.
    SessionOpened(PeerKey, Pair),
    /// A session, or the attempt at one, ended.
    SessionEnded(PeerKey, Pair, EndReason),
    /// A peer's message was refused.
    Refused(PeerKey, Refusal),
    /// A local port's frame was refused.
    LocalRefused(FcId, Refusal),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::PeerUp(PeerKey(peer)) => write!(f, "peer {peer}: up"),
            Event::PeerDown(PeerKey(peer)) => write!(f, "peer {peer}: down, its ports are withdrawn"),
            Event::PeerRefuses(PeerKey(peer)) => {
                write!(f, "peer {peer}: closes connections at once: is this gateway one of its peers?")
            }
            Event::NotPresented(PeerKey(peer), name) => {
                write!(f, "peer {peer}: the fabric cannot present port {name}: it has no address left, or has the name")
            }
            Event::SessionOpened(PeerKey(peer), pair) => write!(f, "peer {peer}: session of {pair}: open"),
            Event::SessionEnded(PeerKey(peer), pair, reason) => {
                write!(f, "peer {peer}: session of {pair}: ended: {reason}")
            }
            Event::Refused(PeerKey(peer), refusal) => write!(f, "peer {peer}: refused: {refusal}"),
            Event::LocalRefused(id, refusal) => write!(f, "local port {id}: refused: {refusal}"),
        }
    }
}
