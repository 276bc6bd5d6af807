//! Strangers at the far end of a path: an iFCP gateway, an FCIP tunnel and an iSNS client with peers that send
//! anything. **Promise: a connection may end; no other is harmed, and nothing grows without bound.**

use super::fc_frame::{frame, login, port_name};
use super::input::Input;
use bytes::BytesMut;
use storage::fc::fabric::{self, Assignments, Entry, Fabric, Location, Output, PortKey};
use storage::fc::ifcp::{Clock, Gateway, PeerKey, RemotePort, Settings};
use storage::fc::{fcip, isns};
use wire::encapsulation::TimeStamp;
use wire::fc::els::{Command, Request};
use wire::fc::name_server::TypeMap;
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType, Wwn};
use wire::ifcp::{AddressMode, Bind, BindStatus, DeviceFrame, Message, SessionMessage, VERSION};
use wire::isns::{port_role, Attribute, Function, IpAddress, Status, Tag};

const MS: u64 = 1_000_000;
/// 2026, as a time base.
const EPOCH_NS: u64 = 3_976_214_400_000_000_000;
const PEER: PeerKey = PeerKey(7);
/// Outputs that one message may cause.
const MOST_OUTPUTS: usize = 4096;

/// Damages some bytes.
fn damage(input: &mut Input<'_>, bytes: &mut BytesMut) {
    if input.u8() & 15 == 0 {
        let at = usize::from(input.u16());
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= input.u8();
        }
    }
}

fn session_message(input: &mut Input<'_>) -> SessionMessage {
    let (source, destination) = (port_name(input.u8() & 3), port_name(input.u8() & 3));
    let (user, handle) = (u32::from(input.u8() & 3), u16::from(input.u8() & 3));
    let mode = input.pick(&[
        AddressMode::Translation,
        AddressMode::Translation,
        AddressMode::Transparent,
        AddressMode::Other(9),
    ]);
    let version = input.pick(&[VERSION, VERSION, VERSION, 2]);
    let bind = Bind { liveness_s: u16::from(input.u8() & 3), mode, version, user, source, destination };
    match input.u8() % 5 {
        0 | 1 => SessionMessage::Bind(bind),
        2 => SessionMessage::BindResponse {
            bind,
            status: input.pick(&[BindStatus::Success, BindStatus::SessionExists, BindStatus::Unspecified]),
            handle,
        },
        3 => SessionMessage::Unbind { user, handle },
        _ if input.u8() & 1 != 0 => SessionMessage::UnbindResponse { user, handle, status: u16::from(input.u8() & 31) },
        _ => SessionMessage::LivenessTest { interval_s: 3, count: u32::from(input.u8()), source, destination },
    }
}

fn remote(host: u8) -> RemotePort {
    let of = login(Command::PLOGI, host);
    RemotePort { id: Some(FcId::of(2, 1, host)), entry: Entry::new(Location::Remote, of.port, of.node) }
}

/// Logs a host in at a fabric; returns its address.
fn attach(fabric: &mut Fabric, host: u8) -> FcId {
    let f_ctl = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    let (r_ctl, kind, d_id) = (routing::ELS_REQUEST, FrameType::ELS, FcId::FABRIC_PORT);
    let header = FrameHeader { r_ctl, kind, d_id, f_ctl, ..FrameHeader::default() };
    let payload = Request::Login(login(Command::FLOGI, host)).to_bytes();
    fabric.handle_frame(PortKey(u32::from(host)), Frame::class3(header, payload));
    let Some(Output::Attached(_, reply)) = fabric.poll_output() else { panic!("no answer to FLOGI") };
    reply.header.d_id
}

/// Any messages from a peer's gateway, with hosts here that send as well.
pub fn gateway(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let settings = Settings {
        events_max: 64,
        ..Settings::new(AddressMode::Translation, Clock::Synchronized { epoch_ns: EPOCH_NS })
    };
    let (sessions_max, connections_max) = (settings.sessions_max, settings.connections_per_peer);
    let own = fabric::Settings::new(Wwn(0x1000_0000_0000_00fa), 1).expect("a domain");
    let mut fabric = Fabric::new(own, Assignments::default());
    let mut gateway = Gateway::new(settings).expect("a gateway");
    let mut now_ns = 0;
    let mut ids = vec![attach(&mut fabric, 0), attach(&mut fabric, 1)];
    gateway.add_peer(PEER, now_ns);
    gateway.set_ports(PEER, vec![remote(2), remote(3)], now_ns).expect("a known peer");
    let mut connections = Vec::new();
    let mut streams: Vec<BytesMut> = Vec::new();
    while !input.is_empty() {
        let what = input.u8();
        let at = usize::from(what >> 4);
        match what % 8 {
            0 => {
                now_ns += u64::from(input.u16()) * MS;
                gateway.handle_timeout(now_ns);
            }
            1 => {
                if let Some(connection) = gateway.handle_accepted(PEER, now_ns) {
                    connections.push(connection);
                    streams.push(BytesMut::new());
                }
            }
            2 if !connections.is_empty() => {
                let at = at % connections.len();
                gateway.handle_closed(connections.swap_remove(at), now_ns);
                streams.swap_remove(at);
            }
            3 => {
                let frame = frame(&mut input, &ids);
                let port = if frame.header.s_id == ids[1] { 1 } else { 0 };
                fabric.handle_frame(PortKey(port), frame);
            }
            _ if connections.is_empty() => {}
            kind => {
                let at = at % connections.len();
                let mut sent = BytesMut::new();
                match kind {
                    4 | 5 => Message::Session(session_message(&mut input), TimeStamp::NONE).encode(&mut sent),
                    6 => {
                        let frame = frame(&mut input, &ids);
                        let age_ns = if input.u8() & 15 == 0 { u64::from(input.u16()) * MS } else { 0 };
                        let time = TimeStamp::from_ns(EPOCH_NS + now_ns.saturating_sub(age_ns));
                        let flags = input.u8();
                        let mode = if flags & 0xf0 == 0 { AddressMode::Transparent } else { AddressMode::Translation };
                        let accepted =
                            (flags & 2 != 0).then(|| input.pick(&[Command::PLOGI, Command::ADISC, Command::REC]));
                        Message::Device(DeviceFrame { frame, mode, special: flags & 1 != 0, accepted, time })
                            .encode(&mut sent);
                    }
                    _ => sent.extend_from_slice(input.bytes(80)),
                }
                damage(&mut input, &mut sent);
                streams[at].extend_from_slice(&sent);
                gateway.handle_bytes(connections[at], &mut streams[at], now_ns);
                // A message that is not whole is at most a frame.
                assert!(
                    streams[at].len() < 4096
                        || gateway.poll_close().is_some()
                        || gateway.connections() < connections.len()
                );
            }
        }
        let mut outputs = 0;
        loop {
            let before = outputs;
            while let Some(event) = fabric.poll_event() {
                gateway.handle_fabric_event(&event, now_ns);
                outputs += 1;
            }
            while let Some(output) = gateway.poll_fabric() {
                if let Some((name, id)) = output.apply(&mut fabric) {
                    gateway.handle_presented(name, id, now_ns);
                    ids.extend(id.filter(|id| !ids.contains(id)));
                }
                outputs += 1;
            }
            while let Some(output) = fabric.poll_output() {
                if let Output::Remote(frame) = output {
                    gateway.handle_frame(frame, now_ns);
                }
                outputs += 1;
            }
            while let Some((connection, _)) = gateway.poll_connect() {
                if what & 8 == 0 {
                    gateway.handle_connected(connection, now_ns);
                    connections.push(connection);
                    streams.push(BytesMut::new());
                } else {
                    gateway.handle_closed(connection, now_ns);
                }
                outputs += 1;
            }
            while let Some(connection) = gateway.poll_ready() {
                let mut sent = BytesMut::new();
                gateway.poll_bytes(connection, &mut sent, 1 << 16, now_ns);
                outputs += 1;
            }
            while let Some((closed, _)) = gateway.poll_close() {
                if let Some(at) = connections.iter().position(|connection| *connection == closed) {
                    connections.swap_remove(at);
                    streams.swap_remove(at);
                }
                outputs += 1;
            }
            while let Some(event) = gateway.poll_event() {
                let line = event.to_string();
                assert!(!line.contains('\n') && line.len() < 300, "{line}");
            }
            while gateway.poll_flow().is_some() {}
            assert!(outputs < MOST_OUTPUTS, "one message caused {outputs} outputs");
            if outputs == before {
                break;
            }
        }
        assert!(ids.len() <= 64, "{} addresses", ids.len());
        assert!(gateway.connections() <= connections_max, "{} connections", gateway.connections());
        assert!(gateway.sessions().count() <= sessions_max);
    }
}

/// Any bytes through the connections of a tunnel, some of which begin as they should.
pub fn tunnel(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (own, peer) = (Wwn(1), Wwn(2));
    let settings = fcip::Settings { connections_max: 4, flows_max: 8, ..fcip::Settings::new(own, peer) };
    let received_most = settings.received_bytes_max + (1 << 13);
    let mut tunnel = fcip::Tunnel::new(settings);
    let mut now_ns = 0;
    let mut held = 0;
    tunnel.set_clock(Some(EPOCH_NS));
    let ids = [FcId::of(1, 1, 0), FcId::of(2, 1, 1), FcId::of(2, 1, 2)];
    while !input.is_empty() {
        let what = input.u8();
        let connection = fcip::ConnectionKey(u32::from(what >> 5));
        match what % 8 {
            0 => {
                now_ns += u64::from(input.u16()) * MS;
                tunnel.handle_timeout(now_ns);
            }
            1 => tunnel.handle_accepted(connection, now_ns),
            2 => tunnel.handle_connected(connection, u64::from(input.u8()), now_ns),
            3 => tunnel.handle_closed(connection, now_ns),
            4 => drop(tunnel.handle_frame(frame(&mut input, &ids), now_ns)),
            kind => {
                let mut sent = BytesMut::new();
                let time = TimeStamp::from_ns(EPOCH_NS + now_ns);
                match kind {
                    5 => {
                        let special = wire::fcip::SpecialFrame {
                            changed: input.u8() & 7 == 0,
                            source: input.pick(&[peer, peer, own, Wwn(3)]),
                            entity: u64::from(input.u8() & 1),
                            nonce: u64::from(input.u8()),
                            usage_flags: input.u8() & 0xf0,
                            usage_code: 0,
                            destination: input.pick(&[own, own, Wwn(0), Wwn(3)]),
                            keep_alive_ms: 1000,
                        };
                        wire::fcip::Message::Special(special, time).encode(&mut sent);
                    }
                    6 => wire::fcip::Message::Frame(frame(&mut input, &ids), time).encode(&mut sent),
                    _ => sent.extend_from_slice(input.bytes(80)),
                }
                damage(&mut input, &mut sent);
                if tunnel.wants_input() {
                    tunnel.handle_bytes(connection, &sent, now_ns);
                }
            }
        }
        for connection in (0..8).map(fcip::ConnectionKey) {
            // An echo of what was sent is how the other end opens a connection.
            let mut sent = BytesMut::new();
            tunnel.poll_bytes(connection, &mut sent, 1 << 16, now_ns);
            if what & 24 == 24 {
                tunnel.handle_bytes(connection, &sent, now_ns);
            }
        }
        while tunnel.poll_event().is_some() {}
        if what & 4 == 0 {
            held = 0;
            while let Some(frame) = tunnel.poll_frame() {
                held += frame.content_bytes();
                assert!(held <= received_most, "{held} bytes were kept");
            }
        }
        assert!(tunnel.open_connections().count() <= 4);
    }
    assert!(held <= received_most);
}

fn any_attribute(input: &mut Input<'_>) -> Attribute {
    match input.u8() % 8 {
        0 => Attribute::DELIMITER,
        1 => Attribute::text(Tag::ENTITY, input.pick(&["here", "there", ""])),
        2 => Attribute::wwn(Tag::PORT_NAME, port_name(input.u8() & 7)),
        3 => Attribute::fc_id(Tag::PORT_ID, FcId::of(2, 1, input.u8())),
        4 => Attribute::address(Tag::PORTAL_ADDRESS, IpAddress::of_v4([10, 0, 0, input.u8()])),
        5 => Attribute::word(Tag::PORTAL_PORT, u32::from(input.u16())),
        6 => {
            Attribute::word(input.pick(&[Tag::PORT_ROLE, Tag::FC4_FEATURES, Tag::CHANGES, Tag::PORT_TYPE]), input.u32())
        }
        _ => Attribute::bytes(
            input.pick(&[Tag::FC4_TYPES, Tag::NODE_NAME, Tag::PORT_NAME, Tag::TIMESTAMP]),
            input.bytes(40),
        ),
    }
}

/// Any messages from a server and from whoever connects to the port for notifications.
pub fn name_server(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let settings = isns::Settings {
        change_port: 3206,
        remote_ports_max: 4,
        ..isns::Settings::new("here", IpAddress([1; 16]), 3420)
    };
    let mut client = isns::Client::new(settings);
    let mut now_ns = 0;
    for host in 0..2 {
        let of = login(Command::PLOGI, host);
        client.register(
            isns::LocalPort {
                name: of.port,
                id: FcId::of(1, 1, host),
                node: of.node,
                fabric_port: Wwn(0xfa),
                types: TypeMap::of(8),
                role: port_role::INITIATOR,
                symbolic: String::new(),
            },
            now_ns,
        );
    }
    let mut asked: Vec<wire::isns::Message> = Vec::new();
    while !input.is_empty() {
        let what = input.u8();
        let connection = match what >> 6 {
            0..3 => isns::Connection::Server,
            _ => isns::Connection::Inbound(u32::from(what >> 4 & 3)),
        };
        match what % 8 {
            0 => {
                now_ns += u64::from(input.u16()) * MS;
                client.handle_timeout(now_ns);
            }
            1 if connection == isns::Connection::Server => client.handle_connected(now_ns),
            1 => client.handle_accepted(u32::from(what >> 4 & 3)),
            2 if what & 8 != 0 => client.handle_closed(connection, now_ns),
            kind => {
                let attributes: Vec<Attribute> = (0..input.u8() % 8).map(|_| any_attribute(&mut input)).collect();
                let functions = [Function::QUERY, Function::CHANGE, Function::STATUS_INQUIRY, Function::HEARTBEAT];
                let message = match asked.pop() {
                    Some(request) if kind > 3 => {
                        let status = input.pick(&[Status::SUCCESS, Status::SUCCESS, Status::SOURCE_UNKNOWN]);
                        request.response(wire::isns::flags::SERVER, status, attributes)
                    }
                    _ => wire::isns::Message {
                        function: input.pick(&functions),
                        flags: 0,
                        transaction: u16::from(input.u8()),
                        status: None,
                        attributes,
                    },
                };
                let mut sent = BytesMut::new();
                message.encode(&mut sent);
                damage(&mut input, &mut sent);
                client.handle_bytes(connection, &sent, now_ns);
            }
        }
        let mut bytes = wire::isns::Assembler::default();
        while let Some((to, sent)) = client.poll_transmit() {
            if to == isns::Connection::Server {
                bytes.push(&sent);
            }
        }
        while let Some(message) = bytes.next_message().expect("its own messages are read") {
            asked.push(message);
        }
        asked.truncate(16);
        let mut events = 0;
        while client.poll_event().is_some() {
            events += 1;
        }
        assert!(events < 64, "one message caused {events} events");
        assert!(client.remote_ports().count() <= 4);
    }
}
