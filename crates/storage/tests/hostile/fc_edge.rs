//! Strangers at the edge of a fabric: Ethernet frames to a forwarder, Fibre Channel frames to an N_Port with an
//! initiator and a target. **Promise: whatever they send, a node is served afterwards; nothing grows without bound.**

use super::fc_frame::{frame, login};
use super::input::Input;
use super::session::{device, Medium0};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use storage::fc::fabric::{self, Assignments, Fabric};
use storage::fc::fcp::{self, initiator, target, Data, Port, Work};
use storage::fc::forwarder::{Forwarder, Settings};
use storage::fc::nport::{self, Role};
use storage::scsi::Medium;
use wire::ethernet::{EthernetHeader, ETHERTYPE_FIP};
use wire::fc::els::{self, Command, Logout, Request};
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType, Wwn};
use wire::fcoe::{self, fabric_provided_mac};
use wire::fip::{flags, Descriptor, LinkService, Message, Operation, ALL_FCF_MACS};

const FCF: [u8; 6] = [0x52, 0x54, 0, 0, 0, 0xfc];
const FABRIC: Wwn = Wwn(0x1000_0000_0000_00fa);
const MS: u64 = 1_000_000;
/// Frames that one frame of a stranger may cause: notices for each login, and answers.
const MOST_FRAMES: usize = 4096;

fn fabric() -> Fabric {
    let settings = fabric::Settings::new(FABRIC, 1).expect("a domain");
    Fabric::new(settings, Assignments::default())
}

fn fip(source: [u8; 6], message: &Message) -> Bytes {
    let mut bytes = BytesMut::new();
    EthernetHeader { destination: FCF, source, vlan: None }.encode(ETHERTYPE_FIP, &mut bytes);
    message.encode(&mut bytes);
    bytes.freeze()
}

fn link_service(s_id: FcId, request: &Request) -> LinkService {
    let f_ctl = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    let (r_ctl, kind, d_id) = (routing::ELS_REQUEST, FrameType::ELS, FcId::FABRIC_PORT);
    LinkService {
        header: FrameHeader { r_ctl, kind, d_id, s_id, f_ctl, ..FrameHeader::default() },
        payload: request.to_bytes(),
    }
}

fn any_message(input: &mut Input<'_>, mac: [u8; 6], ids: &[FcId]) -> Message {
    let operation = input.pick(&[
        Operation::LinkServiceRequest,
        Operation::LinkServiceRequest,
        Operation::Solicitation,
        Operation::VlanRequest,
        Operation::KeepAlive,
        Operation::LinkServiceReply,
        Operation::ClearVirtualLinks,
        Operation::Advertisement,
    ]);
    let host = input.u8() & 3;
    let id = input.pick(ids);
    let descriptor = |input: &mut Input<'_>| match input.u8() % 10 {
        0 | 1 => Descriptor::Mac(if input.u8() & 3 == 0 { [2, 0, 0, 0, 0, input.u8()] } else { mac }),
        2 => Descriptor::Flogi(link_service(FcId::NONE, &Request::Login(login(Command::FLOGI, host)))),
        3 => Descriptor::Fdisc(link_service(FcId::NONE, &Request::Login(login(Command::FDISC, host ^ 1)))),
        4 => {
            let logout = Logout { id, port: login(Command::FLOGI, host).port };
            Descriptor::Logo(link_service(id, &Request::Logout(logout)))
        }
        5 => Descriptor::Port { mac: fabric_provided_mac(fcoe::DEFAULT_FC_MAP, id), id, name: Wwn(u64::from(host)) },
        6 => Descriptor::Name(Wwn(u64::from(host))),
        7 => Descriptor::MaxFcoeBytes(u16::from(input.u8()) * 16),
        8 => Descriptor::Priority(input.u8()),
        _ => Descriptor::Vlan(input.u16()),
    };
    let descriptors = (0..input.u8() % 5).map(|_| descriptor(input)).collect();
    Message { operation, flags: input.pick(&[flags::FABRIC_PROVIDED_MACS, 0, 0xffff]), descriptors }
}

/// Any Ethernet frames at a forwarder; then a node logs in as always.
pub fn forwarder(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let settings = Settings { nodes_max: 4, ..Settings::new(FCF, FABRIC) };
    let mut forwarder = Forwarder::new(settings, fabric(), 0).expect("a forwarder");
    let mut now_ns = 0;
    let ids = [FcId::of(1, 1, 0), FcId::of(1, 1, 1), FcId::of(1, 1, 2), FcId::FABRIC_PORT, FcId::DIRECTORY_SERVER];
    while !input.is_empty() {
        let mac = [2, 0, 0, 0, 0, input.u8() & 7];
        let mut sent = BytesMut::new();
        match input.u8() % 8 {
            0 => {
                let header = EthernetHeader { destination: FCF, source: mac, vlan: None };
                header.encode(input.pick(&[ETHERTYPE_FIP, 0x8906, 0x0800]), &mut sent);
                sent.extend_from_slice(input.bytes(64));
            }
            1 => now_ns += u64::from(input.u16()) * MS,
            2..5 => sent = any_message(&mut input, mac, &ids).into_frame(mac),
            _ => {
                let frame = frame(&mut input, &ids);
                let source = if input.u8() & 7 == 0 {
                    mac
                } else {
                    fabric_provided_mac(fcoe::DEFAULT_FC_MAP, frame.header.s_id)
                };
                fcoe::encode(&EthernetHeader { destination: FCF, source, vlan: None }, &frame, &mut sent);
            }
        }
        if input.u8() & 15 == 0 {
            let at = usize::from(input.u8());
            if let Some(byte) = sent.get_mut(at) {
                *byte ^= input.u8();
            }
        }
        forwarder.handle_ethernet(&sent.freeze(), now_ns);
        forwarder.handle_timeout(now_ns);
        let mut count = 0;
        while forwarder.poll_transmit().is_some() || forwarder.poll_remote().is_some() {
            count += 1;
            assert!(count < MOST_FRAMES, "one frame caused {count}");
        }
        while forwarder.poll_event().is_some() {}
        assert!(forwarder.fabric().logins() <= 4 * 256, "{}", forwarder.fabric().logins());
    }
    // All of them fall silent, and another node comes.
    now_ns += 1_000_000 * MS;
    forwarder.handle_timeout(now_ns);
    while forwarder.poll_transmit().is_some() {}
    let flogi = Descriptor::Flogi(link_service(FcId::NONE, &Request::Login(login(Command::FLOGI, 9))));
    let descriptors = vec![flogi, Descriptor::Mac([0; 6])];
    let request = Message { operation: Operation::LinkServiceRequest, flags: flags::FABRIC_PROVIDED_MACS, descriptors };
    forwarder.handle_ethernet(&fip([2, 0, 0, 0, 1, 9], &request), now_ns);
    let mut is_served = false;
    while let Some(bytes) = forwarder.poll_transmit() {
        let (_, kind, content) = EthernetHeader::decode(&bytes).expect("its own frame is read");
        if kind == ETHERTYPE_FIP {
            let message = Message::decode(&content).expect("its own message is read");
            is_served |= message.descriptors.iter().any(
                |descriptor| matches!(descriptor, Descriptor::Flogi(answer) if answer.payload[0] == Command::LS_ACC.0),
            );
        }
    }
    assert!(is_served, "a node is not served");
}

trait IntoFrame {
    fn into_frame(self, source: [u8; 6]) -> BytesMut;
}

impl IntoFrame for Message {
    /// The message in an Ethernet frame, to all forwarders where nodes send it so.
    fn into_frame(self, source: [u8; 6]) -> BytesMut {
        let to_all = matches!(self.operation, Operation::Solicitation | Operation::VlanRequest);
        let destination = if to_all { ALL_FCF_MACS } else { FCF };
        let mut bytes = BytesMut::new();
        EthernetHeader { destination, source, vlan: None }.encode(ETHERTYPE_FIP, &mut bytes);
        self.encode(&mut bytes);
        bytes
    }
}

/// Any frames at an N_Port with an initiator and a target, which answers some of the port's own requests.
pub fn n_port(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let own = FcId::of(1, 1, 0);
    let ids =
        [own, FcId::of(1, 1, 1), FcId::of(1, 1, 2), FcId::FABRIC_PORT, FcId::DIRECTORY_SERVER, FcId::FABRIC_CONTROLLER];
    let settings = nport::Settings::new(Wwn(0x11), Wwn(0x10), Role { initiator: true, target: true });
    let targets = target::Settings { data_bytes_max: 1 << 20, commands_max: 16, ..target::Settings::default() };
    let mut port = Port::new(settings, Some(initiator::Settings::default()), Some((targets, device())));
    let medium = Medium0::default();
    let mut now_ns = 0;
    let mut work: VecDeque<Work> = VecDeque::new();
    let mut submitted = 0_u64;
    let mut ended = 0_u64;
    port.log_in(now_ns);
    let mut asked: VecDeque<Frame> = VecDeque::new();
    while !input.is_empty() {
        match input.u8() % 8 {
            0 => {
                now_ns += u64::from(input.u16()) * MS;
                port.handle_timeout(now_ns);
            }
            1 if submitted - ended < 8 => {
                let mut cdb = [0; 16];
                (cdb[0], cdb[8]) = (input.pick(&[0x28, 0x2a, 0x12]), 2);
                let data = match cdb[0] {
                    0x2a => Data::Write(wire::iscsi::Payload::Zeros(1024)),
                    _ => Data::Read(1024),
                };
                port.submit(fcp::Command { target: input.pick(&ids), lun: 0, cdb, data }, now_ns);
                submitted += 1;
            }
            2 => {
                if let Some(done) = work.pop_front() {
                    port.handle_work(done.id, medium.0.perform(&done.op));
                }
            }
            // An accept of what the port asked, so that the stranger gets further.
            3 | 4 => {
                let Some(request) = asked.pop_front() else { continue };
                port.handle_frame(accept(&request, own), now_ns);
            }
            _ => port.handle_frame(frame(&mut input, &ids), now_ns),
        }
        while let Some(frame) = port.poll_frame(now_ns) {
            assert!(frame.content_bytes() <= wire::fc::FRAME_BYTES_MAX);
            if frame.header.r_ctl == routing::ELS_REQUEST && asked.len() < 64 {
                asked.push_back(frame);
            }
        }
        while let Some(more) = port.poll_work() {
            work.push_back(more);
        }
        while port.poll_completion().is_some() {
            ended += 1;
        }
        while port.poll_event().is_some() || port.poll_other().is_some() {}
        assert!(work.len() <= 64 * ids.len(), "{} operations", work.len());
    }
    assert!(ended <= submitted, "{ended} of {submitted} commands ended");
    // The link goes: every command ends.
    port.handle_link_down("the link is gone", now_ns);
    for _ in 0..100 {
        now_ns += 10_000 * MS;
        port.handle_timeout(now_ns);
        while port.poll_frame(now_ns).is_some() {}
        while port.poll_completion().is_some() {
            ended += 1;
        }
    }
    assert_eq!(ended, submitted, "commands that never end");
}

/// The accept of a login or of another link service.
fn accept(request: &Frame, own: FcId) -> Frame {
    let payload = match Request::parse(&request.payload.to_bytes()) {
        Ok(Request::Login(asked)) => {
            let mut login = login(Command(asked.command), 1);
            login.fabric_port = asked.command != Command::PLOGI.0;
            Bytes::copy_from_slice(&els::accept_login(&login))
        }
        Ok(Request::ProcessLogin(process)) => process.to_bytes(Command::LS_ACC),
        _ => els::accept(),
    };
    let header = request.header;
    let f_ctl = frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE;
    let (s_id, ox_id) = (header.d_id, header.ox_id);
    let reply = FrameHeader { r_ctl: routing::ELS_REPLY, d_id: own, s_id, f_ctl, ox_id, rx_id: 1, ..header };
    Frame::class3(reply, payload)
}
