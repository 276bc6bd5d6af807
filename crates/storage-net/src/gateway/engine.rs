//! One round of a gateway: frames in, what the cores make of them, frames out.

use super::address_file::AddressFile;
use super::config::GatewayConfig;
use super::ip_side::IpSide;
use super::isns_side::IsnsSide;
use super::learnt::gateways_of;
use super::pause::Pause;
use super::segment::{Received, Segment};
use super::status::{PortStatus, SessionStatus, Status};
use crate::ethernet::{Attachment, AttachmentConfig, Interface};
use rustix::event::PollFlags;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use storage::fc::fabric::{self, Event, Fabric, Location};
use storage::fc::forwarder::{self, Forwarder};
use storage::fc::ifcp::ConnectionKey;
use wire::fc::{FrameType, Wwn};
use wire::fcoe::{fabric_provided_mac, FCOE_HEADER_BYTES, FCOE_TRAILER_BYTES};
use wire::fip::ALL_FCF_MACS;
use wire::ifcp::AddressMode;

const NS_PER_S: u64 = 1_000_000_000;
/// Frames of one attachment in a round, so that none waits long for another.
const ROUND_MAX: usize = 64;
/// Bytes of an FC frame around its payload: header and CRC.
const FC_HEADER_BYTES: usize = 24 + 4;
/// Longest and shortest payload that a port may announce (FC-FS-2), bytes.
const PAYLOAD_BYTES: std::ops::RangeInclusive<usize> = 256..=2112;

/// A descriptor that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiting {
    /// A way to nodes.
    Attachment,
    /// A connection to another gateway, or the listener.
    Ip(Option<ConnectionKey>),
    /// A connection with the name server, or its listener.
    Isns,
}

/// A gateway's cores with its sockets.
pub(super) struct Engine {
    pub segment: Segment,
    forwarder: Forwarder,
    fc_map: u32,
    ip: Option<IpSide>,
    isns: Option<IsnsSide>,
    /// The attached ports changed since the name server heard of them.
    has_new_logins: bool,
    /// Lines on what the name server lists and cannot be used.
    refused: BTreeSet<String>,
    addresses: AddressFile,
    next_check_ns: u64,
    /// Of an interface.
    pause: Option<Pause>,
    /// Since when nothing is read, ns.
    paused_since_ns: Option<u64>,
    status: Status,
    log: Vec<String>,
}

impl Engine {
    /// Opens all that a configuration names.
    pub fn open(config: GatewayConfig, now_ns: u64) -> io::Result<Engine> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let (addresses, assignments) = AddressFile::open(&config.addresses, config.domain)?;
        let (mac, payload) = link_of(&config)?;
        let mut settings =
            fabric::Settings::new(config.fabric, config.domain).map_err(|error| invalid(error.to_string()))?;
        settings.receive_bytes = payload;
        let fabric_port = settings.port;
        let pause = match &config.attachments[..] {
            [AttachmentConfig::Interface(name)] if config.sends_pause => Some(Pause::of(name, mac)),
            _ => None,
        };
        let attachments = config.attachments.into_iter().map(|one| Attachment::open(one, vec![ALL_FCF_MACS], now_ns));
        let segment = Segment::new(attachments.collect::<io::Result<_>>()?);
        let settings_of_forwarder = forwarder::Settings {
            vlan: config.vlan,
            priority: config.priority,
            fc_map: config.fc_map,
            keep_alive_ms: config.keep_alive_ms,
            ..forwarder::Settings::new(mac, config.fabric)
        };
        let forwarder = Forwarder::new(settings_of_forwarder, Fabric::new(settings, assignments), now_ns)
            .map_err(|error| invalid(error.to_string()))?;
        let isns = config.ip.as_ref().and_then(|ip| ip.isns.clone());
        let ip = config.ip.map(|ip| IpSide::open(ip, now_ns)).transpose()?;
        let address = ip.as_ref().map(IpSide::address).transpose()?;
        let isns = isns.zip(address).map(|(isns, portal)| IsnsSide::open(isns, portal, fabric_port)).transpose()?;
        Ok(Engine {
            segment,
            forwarder,
            fc_map: config.fc_map,
            ip,
            isns,
            has_new_logins: false,
            refused: BTreeSet::new(),
            addresses,
            next_check_ns: now_ns,
            pause,
            paused_since_ns: None,
            status: Status { address, ..Status::default() },
            log: Vec::new(),
        })
    }

    /// True while frames of peers are read: no queue towards the nodes is full.
    fn takes_from_peers(&self) -> bool {
        self.segment.has_room()
    }

    /// True while frames of an attachment are read: no queue towards the nodes is full, and none towards the peers
    /// that a port behind the attachment fills.
    fn takes_from(&self, index: usize) -> bool {
        self.segment.has_room() && !self.ip.as_ref().is_some_and(|ip| self.fills(ip, index))
    }

    fn fills(&self, ip: &IpSide, index: usize) -> bool {
        ip.full().iter().any(|id| self.segment.may_be_behind(fabric_provided_mac(self.fc_map, *id), index))
    }

    /// True while all attachments are read.
    fn takes_all(&self) -> bool {
        (0..self.segment.len()).all(|index| self.takes_from(index))
    }

    /// Descriptors with what to wait for.
    pub fn waits_for(&self) -> Vec<(Waiting, RawFd, PollFlags)> {
        let attachments = self.segment.waits_for(|index| self.takes_from(index));
        let attachments = attachments.map(|(fd, events)| (Waiting::Attachment, fd.as_raw_fd(), events));
        let ip = self.ip.iter().flat_map(|ip| ip.waits_for(self.takes_from_peers()));
        let ip = ip.map(|(key, fd, events)| (Waiting::Ip(key), fd.as_raw_fd(), events));
        let isns = self.isns.iter().flat_map(IsnsSide::waits_for);
        let isns = isns.map(|(fd, events)| (Waiting::Isns, fd.as_raw_fd(), events));
        attachments.chain(ip).chain(isns).collect()
    }

    /// Notes that a descriptor of [`Engine::waits_for`] has something.
    pub fn note_ready(&mut self, waiting: Waiting) {
        match (waiting, &mut self.ip, &mut self.isns) {
            (Waiting::Ip(key), Some(ip), _) => ip.note_ready(key),
            (Waiting::Isns, _, Some(isns)) => isns.note_ready(),
            _ => {}
        }
    }

    /// Does all that can be done now. Returns whether more may be waiting to be read.
    pub fn round(&mut self, now_ns: u64) -> bool {
        self.segment.flush(now_ns);
        let is_check = now_ns >= self.next_check_ns;
        if is_check {
            self.next_check_ns = now_ns + NS_PER_S;
            self.log.extend(self.segment.handle_timeout(now_ns));
        }
        self.serve_isns(is_check, now_ns);
        if now_ns >= self.forwarder.poll_timeout() {
            self.forwarder.handle_timeout(now_ns);
            self.send_all(now_ns);
        }
        self.note_pause(now_ns);
        let mut more = false;
        for index in 0..self.segment.len() {
            more |= self.read_attachment(index, now_ns);
        }
        self.segment.flush(now_ns);
        let reads = self.takes_from_peers();
        if let Some(ip) = &mut self.ip {
            more |= ip.round(reads, now_ns);
            self.send_all(now_ns);
        }
        // A PAUSE does not wait for frames that only wait for their batch.
        self.segment.flush(now_ns);
        self.send_pause(now_ns);
        self.segment.flush(now_ns);
        // Room that came with the last flush lets frames in again for which no descriptor speaks.
        more || (0..self.segment.len()).any(|index| self.segment.has_frames(index) && self.takes_from(index))
    }

    /// Registers what is attached with the name server, and takes what it lists. `is_check`: once a second.
    fn serve_isns(&mut self, is_check: bool, now_ns: u64) {
        let (Some(isns), Some(ip)) = (&mut self.isns, &mut self.ip) else { return };
        if std::mem::take(&mut self.has_new_logins) {
            isns.set_local(self.forwarder.fabric(), now_ns);
        }
        if ip.take_stranger() {
            isns.ask(now_ns);
        }
        isns.round(now_ns);
        let is_stale = isns.is_stale(now_ns);
        if !(isns.take_news() || is_stale && is_check) {
            return;
        }
        let (mut gateways, mut refused) = gateways_of(isns.remote_ports(), ip.mode());
        if is_stale {
            // A session in use says more of its gateway than a server that is silent.
            gateways.retain(|gateway| ip.has_session_with(gateway.address.ip()));
        }
        refused.extend(ip.set_learnt(gateways, now_ns));
        isns.note_refused(refused.difference(&self.refused).cloned());
        self.refused = refused;
        self.send_all(now_ns);
    }

    /// Reads from an attachment. Returns whether it may have more.
    fn read_attachment(&mut self, index: usize, now_ns: u64) -> bool {
        for _ in 0..ROUND_MAX {
            if !self.takes_from(index) {
                return false;
            }
            let forwarder = &self.forwarder;
            match self.segment.receive(index, now_ns, |mac| forwarder.node_of(mac)) {
                Ok(Some(Received::Intruder(line))) => {
                    self.status.other_link_frames += 1;
                    self.log.extend(line);
                }
                Ok(Some(Received::Frame(frame))) => {
                    self.status.received_frames += 1;
                    self.status.received_bytes += frame.len() as u64;
                    self.forwarder.handle_ethernet(&frame, now_ns);
                    self.send_all(now_ns);
                }
                Ok(None) => return false,
                Err(error) => {
                    self.log.push(error.to_string());
                    return false;
                }
            }
        }
        true
    }

    /// Time at which [`Engine::round`] has something to do, ns.
    pub fn poll_timeout(&self) -> u64 {
        let ip = self.ip.as_ref().map_or(u64::MAX, IpSide::poll_timeout);
        let isns =
            self.isns.as_ref().map_or(u64::MAX, |isns| if self.has_new_logins { 0 } else { isns.poll_timeout() });
        // While frames wait none is sent: the descriptor says when they have gone.
        let pause = self.pause.as_ref().filter(|_| !self.segment.is_blocked()).map_or(u64::MAX, Pause::poll_timeout);
        self.forwarder.poll_timeout().min(self.next_check_ns).min(ip).min(isns).min(pause)
    }

    /// Lets no exchange between ports begin.
    pub fn begin_drain(&mut self) {
        self.forwarder.fabric_mut().drain();
        let exchanges = self.forwarder.fabric().exchanges();
        self.log.push(format!("stops; exchanges under way: {exchanges}"));
    }

    /// True when no exchange is under way, and no frame waits.
    pub fn is_drained(&self) -> bool {
        let is_idle = self.ip.as_ref().is_none_or(IpSide::is_idle);
        self.forwarder.fabric().exchanges() == 0 && is_idle && !self.segment.is_blocked()
    }

    /// Ends all sessions by UNBIND.
    pub fn unbind(&mut self, now_ns: u64) {
        let left = self.forwarder.fabric().exchanges();
        if left > 0 {
            self.log.push(format!("exchanges that did not end in time: {left}"));
        }
        if let Some(ip) = &mut self.ip {
            ip.stop(now_ns);
        }
        if let Some(isns) = &mut self.isns {
            isns.stop(now_ns);
        }
        self.send_all(now_ns);
    }

    /// True when peers have answered all UNBINDs, and the name server that the gateway goes.
    pub fn is_unbound(&self) -> bool {
        let is_stopped = self.isns.as_ref().is_none_or(IsnsSide::is_stopped);
        is_stopped && self.ip.as_ref().is_none_or(|ip| ip.is_unbound() && ip.is_idle())
    }

    /// Ends all logins and connections; nodes are told.
    pub fn clear_all(&mut self, now_ns: u64) {
        self.forwarder.clear_all(now_ns);
        self.send_all(now_ns);
        // Their connections close.
        self.ip = None;
        self.isns = None;
        self.segment.flush(now_ns);
        self.send_pause(now_ns);
        self.segment.flush(now_ns);
        self.write_addresses();
    }

    /// Lines for the operator since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        if let Some(ip) = &mut self.ip {
            self.log.extend(ip.take_log());
        }
        if let Some(isns) = &mut self.isns {
            self.log.extend(isns.take_log());
        }
        std::mem::take(&mut self.log)
    }

    /// The state now.
    pub fn status(&self, now_ns: u64) -> Status {
        let losses = self.segment.losses();
        let entries = self.forwarder.fabric().entries();
        Status {
            ports: entries
                .map(|(id, entry)| PortStatus {
                    id,
                    port: entry.port,
                    node: entry.node,
                    is_remote: entry.location == Location::Remote,
                    has_scsi: entry.types.has(FrameType::FCP.0),
                })
                .collect(),
            peers: self.ip.iter().flat_map(IpSide::peers).collect(),
            isns: self.isns.as_ref().map(|isns| isns.status(now_ns)),
            sessions: self.ip.iter().flat_map(IpSide::sessions).map(SessionStatus::from).collect(),
            ifcp: self.ip.as_ref().map(IpSide::counters).unwrap_or_default(),
            kernel_drops: losses.kernel_drops,
            held_too_long: losses.held_too_long,
            unreachable: losses.unreachable,
            exchanges: self.forwarder.fabric().exchanges(),
            forwarder: self.forwarder.counters(),
            fabric: self.forwarder.fabric().counters(),
            ..self.status.clone()
        }
    }

    /// Sends what the cores have. A new address is in its file before the port learns it.
    fn send_all(&mut self, now_ns: u64) {
        let mut is_new = false;
        loop {
            let mut is_done = true;
            while let Some(event) = self.forwarder.poll_event() {
                is_done = false;
                is_new |= self.note(&event);
                self.has_new_logins = true;
                if let Some(ip) = &mut self.ip {
                    ip.handle_fabric_event(&event, now_ns);
                }
            }
            while let Some(frame) = self.forwarder.poll_remote() {
                is_done = false;
                if let Some(ip) = &mut self.ip {
                    ip.handle_frame(frame, now_ns);
                }
            }
            if let Some(ip) = &mut self.ip {
                let presented = ip.serve_fabric(self.forwarder.fabric_mut(), now_ns);
                // The addresses of transparent mode are the peers' own.
                let is_given = ip.mode() == AddressMode::Translation;
                is_new |= is_given && presented.iter().any(|(name, id)| !self.addresses.has(*name, *id));
                self.forwarder.flush(now_ns);
                ip.pump(now_ns);
            }
            if is_done {
                break;
            }
        }
        if is_new {
            self.write_addresses();
        }
        while let Some(frame) = self.forwarder.poll_transmit() {
            self.status.sent_frames += 1;
            self.status.sent_bytes += frame.len() as u64;
            self.segment.send(frame, now_ns);
        }
    }

    /// Notes a change of logins. Returns whether it gave an address that the file does not have.
    fn note(&mut self, event: &Event) -> bool {
        match *event {
            Event::LoggedIn { id, name, .. } => {
                self.log.push(format!("{name} logged in as {id}"));
                !self.addresses.has(name, id)
            }
            Event::LoggedOut { id, name, .. } => {
                self.log.push(format!("{name} logged out, was {id}"));
                false
            }
            Event::Registered { .. } => false,
        }
    }

    fn write_addresses(&mut self) {
        if let Err(error) = self.addresses.write(self.forwarder.fabric().assignments()) {
            // The logins go on: addresses may differ after a restart, and virtual links are cleared at its start.
            self.log.push(format!("the addresses cannot be written: {error}"));
        }
    }

    /// Asks the SAN to wait while nothing is read, and to go on after it.
    fn send_pause(&mut self, now_ns: u64) {
        // Behind frames that wait, a PAUSE would come too late, and be out of date.
        let takes = self.takes_all();
        let is_blocked = self.segment.is_blocked();
        if let Some(frame) = self.pause.as_mut().filter(|_| !is_blocked).and_then(|pause| pause.frame(takes, now_ns)) {
            self.status.pause_frames += 1;
            self.segment.send(frame, now_ns);
        }
    }

    fn note_pause(&mut self, now_ns: u64) {
        match (self.takes_all(), self.paused_since_ns) {
            (false, None) => {
                self.status.pauses += 1;
                self.paused_since_ns = Some(now_ns);
            }
            (false, Some(since)) => {
                self.status.paused_ns += now_ns.saturating_sub(since);
                self.paused_since_ns = Some(now_ns);
            }
            (true, Some(since)) => {
                self.status.paused_ns += now_ns.saturating_sub(since);
                self.paused_since_ns = None;
            }
            (true, None) => {}
        }
    }
}

/// The forwarder's Ethernet address, and the longest payload that the Ethernet carries.
fn link_of(config: &GatewayConfig) -> io::Result<([u8; 6], u16)> {
    let (mac, frame_bytes) = match &config.attachments[..] {
        [AttachmentConfig::Interface(name)] => {
            let interface =
                Interface::of(name).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
            (interface.mac, interface.mtu)
        }
        sockets if !sockets.is_empty() && sockets.iter().all(|one| matches!(one, AttachmentConfig::Socket { .. })) => {
            (mac_of(config.fabric), usize::MAX)
        }
        _ => {
            let text = "one interface, or sockets alone, are needed";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    };
    let around = FCOE_HEADER_BYTES + FC_HEADER_BYTES + FCOE_TRAILER_BYTES;
    // Of whole words.
    let payload = frame_bytes.saturating_sub(around).min(*PAYLOAD_BYTES.end()) / 4 * 4;
    if payload < *PAYLOAD_BYTES.start() {
        let text = format!("an MTU of {frame_bytes} bytes carries no FC frame: 2158 would be right");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok((mac, payload as u16))
}

/// An address of the gateway's own, made of the fabric's name: of one station, locally administered.
fn mac_of(fabric: Wwn) -> [u8; 6] {
    let [.., a, b, c, d, e] = fabric.0.to_be_bytes();
    [0x02, a, b, c, d, e]
}
