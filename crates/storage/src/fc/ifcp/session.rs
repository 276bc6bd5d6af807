//! State of a session.

use super::output::{ConnectionKey, Pair, PeerKey};
use std::collections::VecDeque;
use wire::fc::els::Command;
use wire::fc::{FcId, Frame};

/// A session: the gateway's number for it, never given again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct SessionKey(pub u64);

/// Requests of one side whose answers the gateway has to know, at once. A port has one or two.
const REQUESTS_MAX: usize = 64;
/// Logins of one port to one other that wait for their session. A port repeats its login once in some seconds.
const LOGINS_MAX: usize = 4;
/// Payload that every port takes, bytes (FC-LS): until its login tells more.
const LEAST_RECEIVE_BYTES: u16 = 256;

/// Link services under way whose answers matter, by the originator's number of the exchange.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests(VecDeque<(u16, Command)>);

impl Requests {
    /// Notes a request; an older one of the same number gives way.
    pub fn note(&mut self, ox_id: u16, command: Command) {
        self.0.retain(|(other, _)| *other != ox_id);
        if self.0.len() >= REQUESTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((ox_id, command));
    }

    /// Takes the request that an answer is for.
    pub fn take(&mut self, ox_id: u16) -> Option<Command> {
        let place = self.0.iter().position(|(other, _)| *other == ox_id)?;
        self.0.remove(place).map(|(_, command)| command)
    }

    /// Says whether a request of this kind waits for its answer.
    pub fn has(&self, command: Command) -> bool {
        self.0.iter().any(|(_, other)| *other == command)
    }

    /// The request that an answer is for.
    pub fn get(&self, ox_id: u16) -> Option<Command> {
        self.0.iter().find(|(other, _)| *other == ox_id).map(|(_, command)| *command)
    }
}

/// Tests of liveness of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    /// Time between two, s.
    pub interval_s: u16,
    /// Number of the next.
    pub count: u32,
}

/// A login that waits for its session.
#[derive(Clone, Debug)]
pub(super) struct WaitingLogin {
    pub frame: Frame,
    /// Time at which it came, ns.
    pub came_ns: u64,
}

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub pair: Pair,
    pub peer: PeerKey,
    /// Address of the local port.
    pub local_id: FcId,
    /// Address of the remote port in this region.
    pub remote_id: FcId,
    /// Its connection; none while the peer's CBIND is awaited.
    pub connection: Option<ConnectionKey>,
    /// This gateway sent the CBIND.
    pub bound_here: bool,
    /// Comes back in the response to CBIND.
    pub user: u32,
    /// Logins of the local port that wait for the session.
    pub waiting: VecDeque<WaitingLogin>,
    /// Link services that the local port asked for.
    pub asked: Requests,
    /// Link services that the remote port asked for.
    pub asked_of: Requests,
    /// A PLOGI was accepted and no LOGO since.
    pub logged_in: bool,
    /// Tests that go out.
    pub tests: Option<Liveness>,
    /// Tests that come in.
    pub expected: Option<Liveness>,
    /// Time of the last message that came, ns.
    pub heard_ns: u64,
    /// Longest payload that the local port takes, bytes.
    pub local_receive_bytes: u16,
    /// Longest payload that the remote port takes, bytes.
    pub remote_receive_bytes: u16,
    /// The local port was told to send no more.
    pub full: bool,
    pub counters: SessionCounters,
}

impl Session {
    /// Says whether the ports are logged in, or a PLOGI of either is under way.
    pub fn has_login(&self) -> bool {
        let under_way = self.asked.has(Command::PLOGI) || self.asked_of.has(Command::PLOGI);
        self.logged_in || under_way || !self.waiting.is_empty()
    }

    pub fn new(pair: Pair, peer: PeerKey, local_id: FcId, remote_id: FcId, user: u32) -> Session {
        Session {
            pair,
            peer,
            local_id,
            remote_id,
            connection: None,
            bound_here: false,
            user,
            waiting: VecDeque::new(),
            asked: Requests::default(),
            asked_of: Requests::default(),
            logged_in: false,
            tests: None,
            expected: None,
            heard_ns: 0,
            local_receive_bytes: LEAST_RECEIVE_BYTES,
            remote_receive_bytes: LEAST_RECEIVE_BYTES,
            full: false,
            counters: SessionCounters::default(),
        }
    }

    /// Lets a login wait. One that is repeated takes the place of the first; the oldest of too many goes.
    pub fn wait(&mut self, frame: Frame, came_ns: u64) {
        self.waiting.retain(|other| other.frame.header.ox_id != frame.header.ox_id);
        if self.waiting.len() >= LOGINS_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(WaitingLogin { frame, came_ns });
    }
}

/// Frames of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionCounters {
    /// Frames handed to the connection.
    pub sent_frames: u64,
    /// Their bytes, encapsulated.
    pub sent_bytes: u64,
    /// Frames delivered to the local port.
    pub received_frames: u64,
    /// Their bytes, encapsulated.
    pub received_bytes: u64,
}

/// A session, as its gateway shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionView {
    /// Its ports.
    pub pair: Pair,
    /// The other gateway.
    pub peer: PeerKey,
    /// Address of the local port.
    pub local_id: FcId,
    /// Address of the remote port in this region: its alias, in translation mode.
    pub remote_id: FcId,
    /// Its connection.
    pub connection: Option<ConnectionKey>,
    /// Frames may be sent.
    pub open: bool,
    /// Bytes that wait for the connection.
    pub queued_bytes: usize,
    /// Frames.
    pub counters: SessionCounters,
}
