//! An N_Port with SCSI: initiator, target, or both, under one clock.

use super::command::{Command, Ended};
use super::initiator::{Asked, Initiator, Settings as InitiatorSettings};
use super::target::{Settings as TargetSettings, Target, Work};
use crate::fc::nport::{Event, NPort, PeerInfo, Settings, Upward};
use crate::scsi::{Device, Outcome};
use bytes::Bytes;
use std::collections::VecDeque;
use wire::fc::els::{self, Reject};
use wire::fc::{frame_control, Frame, FrameType};

/// An N_Port with SCSI.
#[derive(Debug)]
pub struct Port {
    nport: NPort,
    initiator: Option<Initiator>,
    target: Option<Target>,
    events: VecDeque<Event>,
    others: VecDeque<Frame>,
}

impl Port {
    /// A port whose role is that of its parts: an initiator if `initiator` has settings, a target if `target` has
    /// units.
    pub fn new(
        settings: Settings,
        initiator: Option<InitiatorSettings>,
        target: Option<(TargetSettings, Device)>,
    ) -> Port {
        let role = crate::fc::nport::Role { initiator: initiator.is_some(), target: target.is_some() };
        Port {
            nport: NPort::new(Settings { role, ..settings }),
            initiator: initiator.map(Initiator::new),
            target: target.map(|(settings, device)| Target::new(settings, device)),
            events: VecDeque::new(),
            others: VecDeque::new(),
        }
    }

    /// The N_Port.
    pub fn nport(&self) -> &NPort {
        &self.nport
    }

    /// The initiator.
    pub fn initiator(&self) -> Option<&Initiator> {
        self.initiator.as_ref()
    }

    /// The target.
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// The link is up: logs in to the fabric.
    pub fn log_in(&mut self, now_ns: u64) {
        self.nport.log_in(now_ns);
    }

    /// Logs out of everything; the frames leave by [`Port::poll_frame`].
    pub fn log_out(&mut self, now_ns: u64) {
        self.nport.log_out(now_ns);
        self.settle(now_ns);
    }

    /// The link is down.
    pub fn handle_link_down(&mut self, reason: &'static str, now_ns: u64) {
        self.nport.handle_link_down(reason);
        self.settle(now_ns);
    }

    /// Logs in with a port that the name server does not list.
    pub fn log_in_to(&mut self, id: wire::fc::FcId, now_ns: u64) {
        self.nport.log_in_to(id, now_ns);
    }

    /// Sends a port bytes to send back; see [`NPort::ping`].
    pub fn ping(&mut self, to: wire::fc::FcId, bytes: &[u8], now_ns: u64) -> u32 {
        self.nport.ping(to, bytes, now_ns)
    }

    /// Asks for all ports of a type; see [`NPort::ask_ports`].
    pub fn ask_ports(&mut self, kind: FrameType, now_ns: u64) {
        self.nport.ask_ports(kind, now_ns);
    }

    /// Hands in a command, and returns its number; None for a port that is no initiator.
    pub fn submit(&mut self, command: Command, now_ns: u64) -> Option<u64> {
        self.initiator.as_mut().map(|initiator| initiator.submit(command, now_ns))
    }

    /// Sends a frame that is not SCSI's, such as one of a load.
    pub fn send(&mut self, frame: Frame) {
        self.nport.send(frame);
    }

    /// Takes a frame that came at `now_ns`.
    pub fn handle_frame(&mut self, frame: Frame, now_ns: u64) {
        self.nport.handle_frame(frame, now_ns);
        self.settle(now_ns);
    }

    /// An operation on the medium came to its end.
    pub fn handle_work(&mut self, id: u64, outcome: Outcome) {
        if let Some(target) = &mut self.target {
            target.handle_work(id, outcome);
        }
    }

    /// Does what is due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.nport.handle_timeout(now_ns);
        self.settle(now_ns);
        if let Some(initiator) = &mut self.initiator {
            initiator.handle_timeout(now_ns);
        }
        self.settle(now_ns);
    }

    /// Time at which [`Port::handle_timeout`] has something to do, ns.
    pub fn poll_timeout(&self) -> Option<u64> {
        let initiator = self.initiator.as_ref().and_then(Initiator::poll_timeout);
        [self.nport.poll_timeout(), initiator].into_iter().flatten().min()
    }

    /// The next frame that leaves at `now_ns`. Poll only with room for it: data is cut into frames here.
    pub fn poll_frame(&mut self, now_ns: u64) -> Option<Frame> {
        if let Some(frame) = self.nport.poll_frame() {
            return Some(frame);
        }
        if let Some(frame) = self.target.as_mut().and_then(Target::poll_frame) {
            return Some(frame);
        }
        self.initiator.as_mut().and_then(|initiator| initiator.poll_frame(now_ns))
    }

    /// The next operation for the medium.
    pub fn poll_work(&mut self) -> Option<Work> {
        self.target.as_mut().and_then(Target::poll_work)
    }

    /// The next command that ended.
    pub fn poll_completion(&mut self) -> Option<Ended> {
        self.initiator.as_mut().and_then(Initiator::poll_completion)
    }

    /// The next change of logins.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next frame of a logged-in port that is not SCSI's.
    pub fn poll_other(&mut self) -> Option<Frame> {
        self.others.pop_front()
    }

    /// Carries what the N_Port found to the parts, and back what they ask for.
    fn settle(&mut self, now_ns: u64) {
        loop {
            let mut moved = false;
            while let Some(event) = self.nport.poll_event() {
                self.note(&event, now_ns);
                self.events.push_back(event);
            }
            while let Some(upward) = self.nport.poll_upward() {
                self.take(upward, now_ns);
            }
            while let Some(asked) = self.initiator.as_mut().and_then(Initiator::poll_asked) {
                moved = true;
                match asked {
                    Asked::Status(to, name, key) => self.nport.read_exchange(to, name, key, now_ns),
                    Asked::Reinstate(to, name, key) => self.nport.reinstate(to, name, key, now_ns),
                    Asked::Renew(id) => self.nport.renew_login_with(id, now_ns),
                }
            }
            // A request may have ended logins at once.
            if !moved {
                return;
            }
        }
    }

    fn note(&mut self, event: &Event, now_ns: u64) {
        match event {
            Event::PeerUp(peer) => {
                let (own, r_a_tov_ns) = (self.nport.id(), self.nport.r_a_tov_ns());
                // The fabric in between may take less than the peer.
                let receive_bytes = self.nport.payload_bytes_to(peer.id) as u16;
                let peer = &PeerInfo { receive_bytes, ..*peer };
                if let Some(initiator) = self.initiator.as_mut().filter(|_| peer.target) {
                    initiator.attach(own, peer, r_a_tov_ns, now_ns);
                }
                if let Some(target) = self.target.as_mut().filter(|_| peer.initiator) {
                    target.attach(own, peer);
                }
            }
            Event::PeerDown { id, .. } => {
                if let Some(initiator) = &mut self.initiator {
                    initiator.detach(*id, now_ns);
                }
                if let Some(target) = &mut self.target {
                    target.detach(*id);
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, upward: Upward, now_ns: u64) {
        match upward {
            Upward::Frame(frame) if matches!(frame.header.kind, FrameType::FCP | FrameType::BASIC) => {
                let from_responder = frame.header.has(frame_control::EXCHANGE_RESPONDER);
                let r_a_tov_ns = self.nport.r_a_tov_ns();
                match (&mut self.initiator, &mut self.target) {
                    (Some(initiator), _) if from_responder => initiator.handle_frame(frame, now_ns),
                    (_, Some(target)) if !from_responder => target.handle_frame(frame, now_ns, r_a_tov_ns),
                    _ => self.nport.refuse_abort(&frame),
                }
            }
            Upward::Frame(frame) => self.others.push_back(frame),
            Upward::ReadExchange(header, name) => {
                let status = self.target.as_ref().and_then(|target| target.exchange_status(&name));
                self.nport.answer(&header, &status.map_or_else(unknown_exchange, |status| status.to_bytes()));
            }
            Upward::Reinstate(header, name) => {
                let known = self.target.as_mut().is_some_and(|target| target.reinstate(&name));
                self.nport.answer(&header, &if known { els::accept() } else { unknown_exchange() });
            }
            Upward::ExchangeStatus(key, answer) => {
                if let Some(initiator) = &mut self.initiator {
                    initiator.handle_status(key, &answer, now_ns);
                }
            }
            Upward::Reinstated(key) => {
                if let Some(initiator) = &mut self.initiator {
                    initiator.handle_reinstated(key);
                }
            }
        }
    }
}

fn unknown_exchange() -> Bytes {
    Reject { reason: Reject::LOGICAL_ERROR, explanation: Reject::INVALID_OX_RX_ID }.to_bytes()
}
