//! One round of a gateway: frames in, what the cores make of them, frames out.

use super::address_file::AddressFile;
use super::attachment::Attachment;
use super::config::{AttachmentConfig, GatewayConfig};
use super::packet_socket::Interface;
use super::segment::Segment;
use super::status::{PortStatus, Status};
use std::io;
use storage::fc::fabric::{self, Event, Fabric, Location};
use storage::fc::forwarder::{self, Forwarder};
use wire::fc::{FrameType, Wwn};
use wire::fcoe::{FCOE_HEADER_BYTES, FCOE_TRAILER_BYTES};

const NS_PER_S: u64 = 1_000_000_000;
/// Frames of one attachment in a round, so that none waits long for another.
const ROUND_MAX: usize = 64;
/// Bytes of an FC frame around its payload: header and CRC.
const FC_HEADER_BYTES: usize = 24 + 4;
/// Longest and shortest payload that a port may announce (FC-FS-2), bytes.
const PAYLOAD_BYTES: std::ops::RangeInclusive<usize> = 256..=2112;

/// A gateway's cores with its sockets.
pub(super) struct Engine {
    pub segment: Segment,
    forwarder: Forwarder,
    addresses: AddressFile,
    next_check_ns: u64,
    /// Since when nothing is read, ns.
    paused_since_ns: Option<u64>,
    status: Status,
    log: Vec<String>,
}

impl Engine {
    /// Opens all that a configuration names.
    pub fn open(config: GatewayConfig, now_ns: u64) -> io::Result<Engine> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let (addresses, assignments) = AddressFile::open(&config.addresses)?;
        let (mac, payload) = link_of(&config)?;
        let mut settings =
            fabric::Settings::new(config.fabric, config.domain).map_err(|error| invalid(error.to_string()))?;
        settings.receive_bytes = payload;
        let attachments = config.attachments.into_iter().map(|one| Attachment::open(one, now_ns));
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
        Ok(Engine {
            segment,
            forwarder,
            addresses,
            next_check_ns: now_ns,
            paused_since_ns: None,
            status: Status::default(),
            log: Vec::new(),
        })
    }

    /// True while frames are read: no queue is full.
    pub fn reads(&self) -> bool {
        self.segment.has_room()
    }

    /// Does all that can be done now. Returns whether more may be waiting to be read.
    pub fn round(&mut self, now_ns: u64) -> bool {
        self.segment.flush(now_ns);
        if now_ns >= self.next_check_ns {
            self.next_check_ns = now_ns + NS_PER_S;
            self.log.extend(self.segment.handle_timeout(now_ns));
        }
        if now_ns >= self.forwarder.poll_timeout() {
            self.forwarder.handle_timeout(now_ns);
            self.send_all(now_ns);
        }
        self.note_pause(now_ns);
        let mut more = false;
        for index in 0..self.segment.len() {
            for turn in 0..ROUND_MAX {
                if !self.reads() {
                    break;
                }
                match self.segment.receive(index, now_ns) {
                    Ok(Some(frame)) => {
                        self.status.received_frames += 1;
                        self.status.received_bytes += frame.len() as u64;
                        self.forwarder.handle_ethernet(&frame, now_ns);
                        self.send_all(now_ns);
                        more |= turn + 1 == ROUND_MAX;
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.log.push(error.to_string());
                        break;
                    }
                }
            }
        }
        more && self.reads()
    }

    /// Time at which [`Engine::round`] has something to do, ns.
    pub fn poll_timeout(&self) -> u64 {
        self.forwarder.poll_timeout().min(self.next_check_ns)
    }

    /// Ends all logins; the nodes are told.
    pub fn clear_all(&mut self, now_ns: u64) {
        self.forwarder.clear_all(now_ns);
        self.send_all(now_ns);
        self.write_addresses();
    }

    /// Lines for the operator since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// The state now.
    pub fn status(&self) -> Status {
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
            kernel_drops: losses.kernel_drops,
            held_too_long: losses.held_too_long,
            unreachable: losses.unreachable,
            forwarder: self.forwarder.counters(),
            fabric: self.forwarder.fabric().counters(),
            ..self.status.clone()
        }
    }

    /// Sends what the forwarder has. A new address is in its file before the port learns it.
    fn send_all(&mut self, now_ns: u64) {
        let mut is_new = false;
        while let Some(event) = self.forwarder.poll_event() {
            match event {
                Event::LoggedIn { id, name, .. } => {
                    is_new |= !self.addresses.has(name, id);
                    self.log.push(format!("{name} logged in as {id}"));
                }
                Event::LoggedOut { id, name, .. } => self.log.push(format!("{name} logged out, was {id}")),
                Event::Registered { .. } => {}
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

    fn write_addresses(&mut self) {
        if let Err(error) = self.addresses.write(self.forwarder.fabric().assignments()) {
            // The logins go on: addresses may differ after a restart, and virtual links are cleared at its start.
            self.log.push(format!("the addresses cannot be written: {error}"));
        }
    }

    fn note_pause(&mut self, now_ns: u64) {
        match (self.reads(), self.paused_since_ns) {
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
