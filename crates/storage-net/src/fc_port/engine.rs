//! One round of a port: frames in, what the cores make of them, frames out.

use super::config::FcPortConfig;
use super::load::Load;
use crate::clock;
use crate::ethernet::{Attachment, AttachmentConfig, Interface, Mac};
use rustix::event::{poll, PollFd, Timespec};
use std::io;
use storage::fc::enode::{self, ENode};
use storage::fc::nport::{self, NPort, Role, Upward};
use wire::fc::els::Reject;
use wire::fc::{FrameType, Wwn, CRC_BYTES, FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX};
use wire::fcoe::{FCOE_HEADER_BYTES, FCOE_TRAILER_BYTES};
use wire::fip::ALL_ENODE_MACS;

const NS_PER_S: u64 = 1_000_000_000;
/// Frames of a round, so that what is due is done.
const ROUND_MAX: usize = 64;

/// A port's cores with its socket.
pub(super) struct Engine {
    attachment: Attachment,
    pub node: ENode,
    pub port: NPort,
    pub load: Load,
    next_check_ns: u64,
    log: Vec<String>,
    pub events: Vec<nport::Event>,
    /// A forwarder was chosen.
    pub has_forwarder: bool,
    /// The fabric has accepted the logout.
    pub is_logged_out: bool,
}

impl Engine {
    pub fn open(config: FcPortConfig) -> io::Result<Engine> {
        let now_ns = clock::now().0;
        let (interface, mtu) = match &config.attachment {
            AttachmentConfig::Interface(name) => {
                let found =
                    Interface::of(name).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
                (Some(found.mac), found.mtu)
            }
            AttachmentConfig::Socket { .. } => (None, usize::MAX),
        };
        let (port, mac) = match (config.port, interface) {
            (Some(port), _) => (port, mac_of(port)),
            (None, Some(mac)) => (Wwn::of_mac(0x2000, mac), mac),
            (None, None) => return Err(invalid("a port on a socket needs a name".to_owned())),
        };
        let node = Wwn(0x1000 << 48 | port.0 & 0x0fff_ffff_ffff_ffff);
        let around = FCOE_HEADER_BYTES + FRAME_HEADER_BYTES + CRC_BYTES + FCOE_TRAILER_BYTES;
        let payload = mtu.saturating_sub(around).min(PAYLOAD_BYTES_MAX) / 4 * 4;
        if payload < 256 {
            return Err(invalid(format!("an MTU of {mtu} bytes carries no FC frame: 2158 would be right")));
        }
        let settings =
            enode::Settings { mac, node, port, vlan: config.vlan, fcoe_bytes_max: (payload + around) as u16 };
        let port_settings = nport::Settings {
            receive_bytes: payload as u16,
            port_symbol: "elephan fc".to_owned(),
            ..nport::Settings::new(port, node, Role::default())
        };
        let addresses = vec![ALL_ENODE_MACS, mac];
        Ok(Engine {
            attachment: Attachment::open(config.attachment, addresses, now_ns)?,
            node: ENode::new(settings, now_ns),
            port: NPort::new(port_settings),
            load: Load::default(),
            next_check_ns: now_ns,
            log: Vec::new(),
            events: Vec::new(),
            has_forwarder: false,
            is_logged_out: false,
        })
    }

    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Works until a time, or until there is an event.
    pub fn run_until(&mut self, end_ns: u64) {
        loop {
            let now_ns = clock::now().0;
            let more = self.round(now_ns);
            if !self.events.is_empty() || now_ns >= end_ns {
                return;
            }
            if !more {
                self.wait(end_ns);
            }
        }
    }

    /// Does all that can be done now. Returns whether there may be more.
    fn round(&mut self, now_ns: u64) -> bool {
        self.attachment.flush(now_ns);
        if now_ns >= self.next_check_ns {
            self.next_check_ns = now_ns + NS_PER_S;
            self.log.extend(self.attachment.handle_timeout(now_ns));
        }
        self.node.handle_timeout(now_ns);
        if self.port.poll_timeout().is_some_and(|at_ns| at_ns <= now_ns) {
            self.port.handle_timeout(now_ns);
        }
        let mut more = self.attachment.has_room();
        for _ in 0..ROUND_MAX {
            if !more {
                break;
            }
            match self.attachment.receive(now_ns) {
                Ok(Some(frame)) => {
                    self.node.handle_ethernet(&frame, now_ns);
                    self.drain(now_ns);
                }
                Ok(None) => more = false,
                Err(error) => {
                    self.log.push(error.to_string());
                    more = false;
                }
            }
        }
        self.drain(now_ns);
        more |= self.send_load();
        self.attachment.flush(clock::now().0);
        more
    }

    /// Sends the frames of the load that are due. Returns whether there are more.
    fn send_load(&mut self) -> bool {
        let Some(sender) = &mut self.load.sender else { return false };
        for _ in 0..ROUND_MAX {
            if self.attachment.is_full() {
                return false;
            }
            let now_ns = clock::now().0;
            let Some(frame) = sender.poll_frame(self.port.id(), now_ns, clock::since_1900) else { return false };
            self.node.handle_frame(&frame);
            while let Some(bytes) = self.node.poll_transmit() {
                self.attachment.send(bytes, now_ns);
            }
        }
        true
    }

    /// Takes out what the cores have for each other and for the way.
    fn drain(&mut self, now_ns: u64) {
        loop {
            let mut moved = false;
            while let Some(event) = self.node.poll_event() {
                moved = true;
                self.note(event, now_ns);
            }
            while let Some(frame) = self.node.poll_frame() {
                moved = true;
                self.port.handle_frame(frame, now_ns);
            }
            while let Some(upward) = self.port.poll_upward() {
                moved = true;
                self.serve(upward);
            }
            while let Some(event) = self.port.poll_event() {
                self.events.push(event);
            }
            while let Some(frame) = self.port.poll_frame() {
                moved = true;
                self.node.handle_frame(&frame);
            }
            while let Some(bytes) = self.node.poll_transmit() {
                self.attachment.send(bytes, now_ns);
            }
            if !moved {
                return;
            }
        }
    }

    fn note(&mut self, event: enode::Event, now_ns: u64) {
        match event {
            enode::Event::Up { .. } => {
                self.has_forwarder = true;
                self.port.log_in(now_ns);
            }
            enode::Event::Granted(mac) => {
                if let Err(error) = self.attachment.add_address(mac) {
                    self.log.push(format!("the interface does not take the port's address: {error}"));
                }
            }
            enode::Event::Down { reason } => {
                self.has_forwarder = false;
                self.log.push(reason.to_owned());
                self.port.handle_link_down(reason);
            }
            enode::Event::LoggedOut => self.is_logged_out = true,
        }
    }

    /// The port's FC-4: loads. It has no exchanges of its own that others could ask for.
    fn serve(&mut self, upward: Upward) {
        match upward {
            Upward::Frame(frame) if frame.header.kind == FrameType::BASIC => self.port.refuse_abort(&frame),
            Upward::Frame(frame) => {
                if let Some(answer) = self.load.handle_frame(&frame, clock::since_1900()) {
                    self.port.send(answer);
                }
            }
            Upward::ReadExchange(header, _) | Upward::Reinstate(header, _) => {
                let reject = Reject { reason: Reject::NOT_SUPPORTED, explanation: Reject::REQUEST_NOT_SUPPORTED };
                self.port.answer(&header, &reject.to_bytes());
            }
            Upward::ExchangeStatus(..) | Upward::Reinstated(_) => {}
        }
    }

    fn wait(&self, end_ns: u64) {
        // A load whose frames the way does not take waits for room, not for its time.
        let sender = self.load.sender.as_ref().filter(|_| !self.attachment.is_full());
        let next_ns = self
            .node
            .poll_timeout()
            .min(self.port.poll_timeout().unwrap_or(u64::MAX))
            .min(sender.map_or(u64::MAX, |sender| sender.poll_timeout()))
            .min(self.next_check_ns)
            .min(end_ns);
        let left = next_ns.saturating_sub(clock::now().0);
        let timeout = Timespec { tv_sec: (left / NS_PER_S) as i64, tv_nsec: (left % NS_PER_S) as i64 };
        let waited = self.attachment.waits_for(self.attachment.has_room());
        let mut fds: Vec<PollFd<'_>> = waited.map(|(fd, events)| PollFd::from_borrowed_fd(fd, events)).collect();
        // A signal ends it early.
        let _ = poll(&mut fds, Some(&timeout));
    }
}

/// An Ethernet address made of a port's name: of one station, locally administered.
fn mac_of(port: Wwn) -> Mac {
    let [.., a, b, c, d, e] = port.0.to_be_bytes();
    [0x02, a, b, c, d, e]
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
