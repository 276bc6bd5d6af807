//! A port as its caller sees it: each call works until it has what was asked for, or for a time.

use super::config::FcPortConfig;
use super::engine::Engine;
use super::error::FcPortError;
use super::load::{LoadConfig, Received, Sender, Sent};
use crate::clock;
use storage::fc::nport::{Event, PeerInfo};
use units::Span;
use wire::fc::name_server::{parse_list_of_ids, Query, QueryScope};
use wire::fc::{FcId, Wwn};

/// Longest time between two questions whether to stop, ns.
const LOOK_NS: u64 = 50_000_000;
/// Kind of all ports that log in to a fabric, for the name server (FC-GS-2, 5.2.3.4).
const ANY_PORT: u8 = 0x7f;
/// Bits of SCSI's features at the name server (FC-GS-2, 5.2.3.12), and the place of its four bits in the answer.
const ROLES: [(u8, &str); 2] = [(1, "target"), (2, "initiator")];
const SCSI_FEATURES: usize = 7;

/// A port that the name server shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortEntry {
    /// Its address.
    pub id: FcId,
    /// Its name; None: the name server does not tell it.
    pub port: Option<Wwn>,
    /// Name of its node.
    pub node: Option<Wwn>,
    /// Parts that it registered for SCSI: "target", "initiator".
    pub roles: Vec<&'static str>,
}

/// Link service of a ping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PingKind {
    /// ECHO, with so many bytes.
    Echo(usize),
    /// ADISC.
    Address,
}

/// A caller's answer to the question whether to stop.
pub type Stop<'a> = &'a mut dyn FnMut() -> bool;

/// A port.
pub struct FcPort(Engine);

impl FcPort {
    /// Opens the way to the fabric.
    ///
    /// # Errors
    /// An interface or socket that cannot be opened, with the reason.
    pub fn open(config: FcPortConfig) -> Result<FcPort, FcPortError> {
        Ok(FcPort(Engine::open(config)?))
    }

    /// Address; [`FcId::NONE`] before the login.
    pub fn id(&self) -> FcId {
        self.0.port.id()
    }

    /// Name.
    pub fn name(&self) -> Wwn {
        self.0.port.settings().port
    }

    /// Lines on what happened since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        self.0.take_log()
    }

    /// Logs in to the fabric.
    pub fn log_in(&mut self, within: Span, stop: Stop<'_>) -> Result<FcId, FcPortError> {
        let mut reason = "no answer";
        let id = self.until(within, stop, |event| match event {
            Event::Online { id } => Some(Ok(*id)),
            Event::Offline { reason: said } => {
                reason = said;
                None
            }
            _ => None,
        })?;
        match id {
            Some(id) => id,
            None if self.0.has_forwarder => Err(FcPortError::NotLoggedIn(reason)),
            None => Err(FcPortError::NoForwarder),
        }
    }

    /// The fabric's ports, in order of addresses, this one among them.
    pub fn ports(&mut self, within: Span, stop: Stop<'_>) -> Result<Vec<PortEntry>, FcPortError> {
        let query = Query::IdsOfPortType { port_type: ANY_PORT, scope: QueryScope::default() };
        let list = self.ask(&query, within, stop)?.ok_or(FcPortError::NoDirectory)?;
        let mut ids = parse_list_of_ids(&list).map_err(|_| FcPortError::NoDirectory)?;
        ids.sort_unstable();
        let mut ports = Vec::new();
        for id in ids {
            let port = self.ask(&Query::PortNameOf(id), within, stop)?.and_then(|content| name_of(&content));
            let node = self.ask(&Query::NodeNameOf(id), within, stop)?.and_then(|content| name_of(&content));
            let features = self.ask(&Query::FeaturesOf(id), within, stop)?;
            let features = features.and_then(|content| content.get(SCSI_FEATURES).copied()).unwrap_or(0);
            let roles = ROLES.iter().filter(|(bit, _)| features & bit != 0).map(|(_, role)| *role).collect();
            ports.push(PortEntry { id, port, node, roles });
        }
        Ok(ports)
    }

    /// Address of the port with a name; None: the name server knows none.
    pub fn find(&mut self, name: Wwn, within: Span, stop: Stop<'_>) -> Result<Option<FcId>, FcPortError> {
        let content = self.ask(&Query::IdOfPort(name), within, stop)?;
        let id = content.and_then(|content| <[u8; 3]>::try_from(content.get(1..4)?).ok());
        Ok(id.map(FcId::from_bytes))
    }

    /// Logs in to another port (PLOGI): a gateway carries nothing between two ports without that.
    pub fn log_in_to(&mut self, id: FcId, within: Span, stop: Stop<'_>) -> Result<PeerInfo, FcPortError> {
        if let Some(known) = self.0.port.peers().find(|peer| peer.id == id) {
            return Ok(*known);
        }
        self.0.port.log_in_to(id, clock::now().0);
        let mut reason = "no answer";
        let done = self.until(within, stop, |event| match event {
            Event::PeerUp(info) if info.id == id => Some(*info),
            Event::PeerRefused { id: of, reason: said } if *of == id => {
                reason = said;
                None
            }
            _ => None,
        })?;
        done.ok_or(FcPortError::Refused(id, reason))
    }

    /// Asks a port that is logged in, and returns the time to its answer in ns, with whether that was a reject; None:
    /// no answer within E_D_TOV.
    pub fn ping(&mut self, id: FcId, kind: PingKind, stop: Stop<'_>) -> Result<Option<(u64, bool)>, FcPortError> {
        let now_ns = clock::now().0;
        let asked = match kind {
            PingKind::Echo(bytes) => self.0.port.ping(id, &vec![0x5a; bytes], now_ns),
            PingKind::Address => self.0.port.ping_address(id, now_ns),
        };
        // The port itself ends the wait, after E_D_TOV.
        let within = Span(self.0.port.e_d_tov_ns() * 2);
        let answer = self.until(within, stop, |event| match event {
            Event::Pong { number, rtt_ns, .. } if *number == asked => Some(Ok(Some((*rtt_ns, false)))),
            Event::NoPong { number, is_rejected, .. } if *number == asked => {
                Some(Ok(is_rejected.then(|| (clock::now().0.saturating_sub(now_ns), true))))
            }
            Event::PeerDown { id: of, reason, .. } if *of == id => Some(Err(FcPortError::PeerDown(id, reason))),
            _ => None,
        })?;
        answer.unwrap_or(Ok(None))
    }

    /// Begins to send a load to a port that is logged in. [`FcPort::serve`] sends it.
    ///
    /// # Errors
    /// Settings that make no load.
    pub fn start_load(&mut self, to: FcId, config: LoadConfig) -> Result<(), FcPortError> {
        self.0.load.sender = Some(Sender::new(to, config, clock::now().0)?);
        Ok(())
    }

    /// Ends the load that is sent; the receiver is still asked for its result.
    pub fn end_load(&mut self) {
        if let Some(sender) = &mut self.0.load.sender {
            sender.end();
        }
    }

    /// The load that is sent, or was.
    pub fn sent(&self) -> Option<Sent> {
        self.0.load.sender.as_ref().map(Sender::sent)
    }

    /// The loads that came.
    pub fn received(&self) -> Vec<Received> {
        self.0.load.received()
    }

    /// Serves others, and sends its load, for a time or until the load is done.
    ///
    /// # Errors
    /// The end of the login with the fabric, or of that with the receiver of the load.
    pub fn serve(&mut self, span: Span, stop: Stop<'_>) -> Result<(), FcPortError> {
        let had_load = self.0.load.sender.is_some();
        self.work(span, stop, |engine| {
            let is_done = had_load && engine.load.sender.as_ref().is_some_and(|sender| sender.sent().is_done);
            is_done.then_some(())
        })?;
        let mut ended = None;
        for event in std::mem::take(&mut self.0.events) {
            match event {
                Event::Offline { reason } => ended = Some(FcPortError::Offline(reason)),
                Event::PeerDown { id, reason, .. } if had_load && !self.sent().is_some_and(|sent| sent.is_done) => {
                    ended.get_or_insert(FcPortError::PeerDown(id, reason));
                }
                _ => {}
            }
        }
        ended.map_or(Ok(()), Err)
    }

    /// Logs out of all ports and the fabric, and waits for the fabric's accept for a time. Returns whether it came.
    pub fn log_out(&mut self, within: Span) -> bool {
        if self.id() == FcId::NONE {
            return true;
        }
        self.0.load.sender = None;
        self.0.port.log_out(clock::now().0);
        // It is no use to stop the end.
        let done = self.work(within, &mut || false, |engine| engine.is_logged_out.then_some(()));
        matches!(done, Ok(Some(())))
    }

    /// Asks the name server; None: it rejects the question, or does not answer.
    fn ask(&mut self, query: &Query, within: Span, stop: Stop<'_>) -> Result<Option<bytes::Bytes>, FcPortError> {
        let asked = self.0.port.ask_directory(query, clock::now().0);
        let content = self.until(within, stop, |event| match event {
            Event::DirectoryAnswer { number, content } if *number == asked => Some(content.clone()),
            _ => None,
        })?;
        Ok(content.flatten())
    }

    /// Works until an event is the wanted one; None when the time is over. An end of the login is an error, except
    /// before it was there.
    fn until<T>(
        &mut self,
        within: Span,
        stop: Stop<'_>,
        mut wanted: impl FnMut(&Event) -> Option<T>,
    ) -> Result<Option<T>, FcPortError> {
        self.work(within, stop, |engine| {
            let events = std::mem::take(&mut engine.events);
            events.iter().find_map(&mut wanted)
        })
    }

    /// Works until `done` gives something; None when the time is over.
    fn work<T>(
        &mut self,
        within: Span,
        stop: Stop<'_>,
        mut done: impl FnMut(&mut Engine) -> Option<T>,
    ) -> Result<Option<T>, FcPortError> {
        let end_ns = clock::now().0.saturating_add(within.0);
        loop {
            let now_ns = clock::now().0;
            self.0.run_until(end_ns.min(now_ns + LOOK_NS));
            if let Some(found) = done(&mut self.0) {
                return Ok(Some(found));
            }
            if stop() {
                return Err(FcPortError::Stopped);
            }
            if clock::now().0 >= end_ns {
                return Ok(None);
            }
        }
    }
}

fn name_of(content: &[u8]) -> Option<Wwn> {
    Some(Wwn(u64::from_be_bytes(content.get(..8)?.try_into().ok()?)))
}
