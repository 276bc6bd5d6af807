//! A node on a UNIX datagram socket: logs in as Linux's libfcoe does, sends and receives FC frames.

use bytes::{Bytes, BytesMut};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::ethernet::{EthernetHeader, ETHERTYPE_FCOE, ETHERTYPE_FIP};
use wire::fc::els::{ChangeRegistration, Command, Logout, Request};
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType, Login, Wwn};
use wire::fcoe;
use wire::fip::{flags, Descriptor, LinkService, Message, Operation, ALL_FCF_MACS};

/// Longest wait for a frame.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A frame from the gateway.
#[derive(Debug)]
pub enum Received {
    Fip(Message),
    Fc(Frame),
}

pub struct Node {
    socket: UnixDatagram,
    gateway: PathBuf,
    own: PathBuf,
    number: u8,
    forwarder: [u8; 6],
    granted: [u8; 6],
    pub id: FcId,
}

impl Node {
    /// A node that has not logged in: `own` is its path, `gateway` the gateway's.
    pub fn new(own: &Path, gateway: &Path, number: u8) -> Node {
        let socket = UnixDatagram::bind(own).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Node {
            socket,
            gateway: gateway.to_owned(),
            own: own.to_owned(),
            number,
            forwarder: [0; 6],
            granted: [0; 6],
            id: FcId::NONE,
        }
    }

    pub fn name(&self) -> Wwn {
        Wwn(0x2000_0000_0000_0000 | u64::from(self.number))
    }

    fn mac(&self) -> [u8; 6] {
        [0x52, 0x54, 0, 0, 0, self.number]
    }

    /// Asks for a forwarder.
    pub fn solicit(&self) {
        let descriptors =
            vec![Descriptor::Mac(self.mac()), Descriptor::Name(self.name()), Descriptor::MaxFcoeBytes(2158)];
        let flags = flags::FABRIC_PROVIDED_MACS;
        self.send_fip(ALL_FCF_MACS, &Message { operation: Operation::Solicitation, flags, descriptors });
    }

    /// Finds the forwarder and logs in to its fabric and name server.
    pub fn log_in(&mut self) {
        self.solicit();
        let flags = flags::FABRIC_PROVIDED_MACS;
        let solicited =
            self.fip(|message| message.operation == Operation::Advertisement && message.flags & flags::SOLICITED != 0);
        self.forwarder = mac_of(&solicited).unwrap();
        let header = self.header(FcId::NONE, FcId::FABRIC_PORT, routing::ELS_REQUEST, FrameType::ELS);
        let payload = Request::Login(self.login(Command::FLOGI)).to_bytes();
        let descriptors = vec![Descriptor::Flogi(LinkService { header, payload }), Descriptor::Mac([0; 6])];
        self.send_fip(self.forwarder, &Message { operation: Operation::LinkServiceRequest, flags, descriptors });
        let reply = self.fip(|message| message.operation == Operation::LinkServiceReply);
        let [Descriptor::Flogi(accept), Descriptor::Mac(granted)] = &reply.descriptors[..] else { panic!("{reply:?}") };
        assert_eq!(accept.payload[0], Command::LS_ACC.0, "{accept:?}");
        (self.id, self.granted) = (accept.header.d_id, *granted);
        let plogi = Request::Login(self.login(Command::PLOGI)).to_bytes();
        let header = self.header(self.id, FcId::DIRECTORY_SERVER, routing::ELS_REQUEST, FrameType::ELS);
        assert!(self.send(&Frame::class3(header, plogi)));
        assert_eq!(self.fc().header.s_id, FcId::DIRECTORY_SERVER);
    }

    /// Logs out of the fabric.
    pub fn log_out(&mut self) {
        let header = self.header(self.id, FcId::FABRIC_PORT, routing::ELS_REQUEST, FrameType::ELS);
        let payload = Request::Logout(Logout { id: self.id, port: self.name() }).to_bytes();
        let descriptors = vec![Descriptor::Logo(LinkService { header, payload }), Descriptor::Mac(self.granted)];
        let flags = flags::FABRIC_PROVIDED_MACS;
        self.send_fip(self.forwarder, &Message { operation: Operation::LinkServiceRequest, flags, descriptors });
        self.fip(|message| message.operation == Operation::LinkServiceReply);
        self.id = FcId::NONE;
    }

    fn login(&self, command: Command) -> Login {
        Login {
            command: command.0,
            buffer_credits: 8,
            receive_bytes: 2112,
            fabric_port: false,
            further_addresses: false,
            r_a_tov_ms: None,
            e_d_tov_ms: 2000,
            port: self.name(),
            node: Wwn(0x1000_0000_0000_0000 | u64::from(self.number)),
            class3: true,
            sequential_delivery: false,
        }
    }

    fn header(&self, s_id: FcId, d_id: FcId, r_ctl: u8, kind: FrameType) -> FrameHeader {
        let f_ctl = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
        FrameHeader { r_ctl, d_id, s_id, kind, f_ctl, ox_id: 7, ..FrameHeader::default() }
    }

    /// Sends PLOGI to a port.
    pub fn ask_for_login(&self, to: FcId) {
        let header = self.header(self.id, to, routing::ELS_REQUEST, FrameType::ELS);
        assert!(self.send(&Frame::class3(header, Request::Login(self.login(Command::PLOGI)).to_bytes())));
    }

    /// Waits for PLOGI, accepts it, and returns its sender.
    pub fn accept_login(&self) -> FcId {
        self.accept(&self.els(Command::PLOGI))
    }

    /// The same, for a time without frames at most; None when no PLOGI came.
    pub fn accept_login_within(&self, silence: Duration) -> Option<FcId> {
        self.socket.set_read_timeout(Some(silence)).unwrap();
        let is_login = |received: &Received| match received {
            Received::Fc(frame) => frame.payload.to_bytes().first() == Some(&Command::PLOGI.0),
            Received::Fip(_) => false,
        };
        let asked = std::iter::from_fn(|| self.receive_in_time()).find(is_login);
        self.socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        match asked {
            Some(Received::Fc(frame)) => Some(self.accept(&frame)),
            _ => None,
        }
    }

    fn accept(&self, asked: &Frame) -> FcId {
        let f_ctl = frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE;
        let header = FrameHeader {
            f_ctl,
            ox_id: asked.header.ox_id,
            rx_id: 1,
            ..self.header(self.id, asked.header.s_id, routing::ELS_REPLY, FrameType::ELS)
        };
        let accept = self.login(Command::LS_ACC).to_bytes();
        assert!(self.send(&Frame::class3(header, Bytes::copy_from_slice(&accept))));
        asked.header.s_id
    }

    /// Waits for a link service of a command.
    pub fn els(&self, command: Command) -> Frame {
        self.frame_such(|frame| {
            frame.header.kind == FrameType::ELS && frame.payload.to_bytes().first() == Some(&command.0)
        })
    }

    /// Waits for a frame of SCSI data.
    pub fn data_frame(&self) -> Frame {
        self.frame_such(|frame| frame.header.kind == FrameType::FCP)
    }

    /// Registers for state changes.
    pub fn register_for_changes(&self) {
        let header = self.header(self.id, FcId::FABRIC_CONTROLLER, routing::ELS_REQUEST, FrameType::ELS);
        assert!(self.send(&Frame::class3(header, Request::Register(ChangeRegistration::Full).to_bytes())));
        self.els(Command::LS_ACC);
    }

    /// A frame of SCSI data to another port.
    pub fn data(&self, to: FcId, payload: Bytes) -> Frame {
        Frame::class3(self.header(self.id, to, routing::SOLICITED_DATA, FrameType::FCP), payload)
    }

    /// Sends a frame; false when the gateway does not take it now.
    pub fn send(&self, frame: &Frame) -> bool {
        let mut bytes = BytesMut::new();
        let ethernet = EthernetHeader { destination: self.forwarder, source: self.granted, vlan: None };
        fcoe::encode(&ethernet, frame, &mut bytes);
        self.send_bytes(&bytes)
    }

    fn send_fip(&self, destination: [u8; 6], message: &Message) {
        let mut bytes = BytesMut::new();
        EthernetHeader { destination, source: self.mac(), vlan: None }.encode(ETHERTYPE_FIP, &mut bytes);
        message.encode(&mut bytes);
        assert!(self.send_bytes(&bytes));
    }

    fn send_bytes(&self, bytes: &[u8]) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let sent = self.socket.send_to(bytes, &self.gateway);
        self.socket.set_nonblocking(false).unwrap();
        match sent {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// The next frame.
    pub fn receive(&self) -> Received {
        self.receive_in_time().unwrap_or_else(|| panic!("no frame in {TIMEOUT:?}"))
    }

    /// The next frame; None when none comes in the socket's time.
    fn receive_in_time(&self) -> Option<Received> {
        let mut buffer = [0; 4096];
        let bytes = match self.socket.recv(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            received => received.unwrap(),
        };
        let (_, kind, content) = EthernetHeader::decode(&Bytes::copy_from_slice(&buffer[..bytes])).unwrap();
        match kind {
            ETHERTYPE_FIP => Some(Received::Fip(Message::decode(&content).unwrap())),
            ETHERTYPE_FCOE => Some(Received::Fc(fcoe::decode(&content).unwrap())),
            other => panic!("{other:#x}"),
        }
    }

    /// The next FC frame.
    pub fn fc(&self) -> Frame {
        self.frame_such(|_| true)
    }

    /// The next FC frame that is wanted.
    fn frame_such(&self, wanted: impl Fn(&Frame) -> bool) -> Frame {
        self.first(|received| match received {
            Received::Fc(frame) if wanted(&frame) => Some(frame),
            _ => None,
        })
    }

    /// The next FIP message of a kind.
    pub fn fip(&self, wanted: impl Fn(&Message) -> bool) -> Message {
        self.first(|received| match received {
            Received::Fip(message) if wanted(&message) => Some(message),
            _ => None,
        })
    }

    /// The first frame of which `pick` takes something. Others do not lengthen the wait: a gateway advertises itself
    /// for ever.
    #[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it bounds a wait")]
    fn first<T>(&self, pick: impl Fn(Received) -> Option<T>) -> T {
        let begun = std::time::Instant::now();
        while begun.elapsed() < TIMEOUT {
            if let Some(picked) = pick(self.receive()) {
                return picked;
            }
        }
        panic!("no such frame in {TIMEOUT:?}");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.own);
    }
}

fn mac_of(message: &Message) -> Option<[u8; 6]> {
    message.descriptors.iter().find_map(|descriptor| match descriptor {
        Descriptor::Mac(mac) => Some(*mac),
        _ => None,
    })
}
