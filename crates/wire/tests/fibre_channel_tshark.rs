//! Wireshark's dissectors read the Fibre Channel that we write: FIP, FCoE, link services, name server, SCSI, iFCP,
//! FCIP, iSNS.

use bytes::{Bytes, BytesMut};
use std::process::Command;
use wire::encapsulation::TimeStamp;
use wire::ethernet::{EthernetHeader, ETHERTYPE_FIP};
use wire::fc::els::{self, AffectedPorts, ChangeRegistration, Request, Scope};
use wire::fc::fcp::{self, Residual, TaskAttribute};
use wire::fc::name_server::{self, Query, QueryScope, TypeMap};
use wire::fc::{ct::CtHeader, frame_control, routing, BasicAccept, FcId, Frame, FrameHeader, FrameType, Login, Wwn};
use wire::ifcp::{AddressMode, Bind, BindStatus, DeviceFrame, SessionMessage};
use wire::isns::{self, Attribute, Function, IpAddress, Status, Tag};
use wire::pcapng::Writer;
use wire::{fcip, fcoe, fip, ifcp, tcp_flags, Conversation, SegmentFields};

const HOST: FcId = FcId::of(1, 0, 1);
const DISK: FcId = FcId::of(2, 0, 1);
const HOST_MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const FCF_MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];
const TIME: TimeStamp = TimeStamp(0xe8d4_a510_8000_0000);

fn login(command: els::Command, fabric_port: bool) -> Login {
    Login {
        command: command.0,
        buffer_credits: 10,
        receive_bytes: 2048,
        fabric_port,
        further_addresses: fabric_port,
        r_a_tov_ms: fabric_port.then_some(10_000),
        e_d_tov_ms: 2000,
        port: Wwn::of_mac(0x2000, HOST_MAC),
        node: Wwn::of_mac(0x1000, HOST_MAC),
        class3: true,
        sequential_delivery: fabric_port,
    }
}

/// One sequence of one frame, with the other side's turn after it.
fn single(r_ctl: u8, kind: FrameType, d_id: FcId, payload: Bytes) -> Frame {
    let f_ctl = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    Frame::class3(FrameHeader { r_ctl, kind, d_id, s_id: HOST, f_ctl, ox_id: 7, ..FrameHeader::default() }, payload)
}

fn answer(r_ctl: u8, kind: FrameType, s_id: FcId, payload: Bytes) -> Frame {
    let f_ctl = frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE;
    let header = FrameHeader { r_ctl, kind, d_id: HOST, s_id, f_ctl, ox_id: 7, rx_id: 9, ..FrameHeader::default() };
    Frame::class3(header, payload)
}

/// Frames of a login, a discovery, a write and its abort, each with the name of its protocol in Wireshark's columns.
fn frames() -> Vec<(&'static str, Frame)> {
    let els = |d_id, request: Request| single(routing::ELS_REQUEST, FrameType::ELS, d_id, request.to_bytes());
    let ct =
        |query: Query| single(routing::UNSOLICITED_CONTROL, FrameType::CT, FcId::DIRECTORY_SERVER, query.to_bytes());
    let served = |query: &Query, content: &[u8]| {
        let (header, _) = CtHeader::parse(&query.to_bytes()).unwrap();
        answer(routing::SOLICITED_CONTROL, FrameType::CT, FcId::DIRECTORY_SERVER, header.accept(content))
    };
    let accepted = |s_id, payload: Bytes| answer(routing::ELS_REPLY, FrameType::ELS, s_id, payload);
    let fcp = |r_ctl, payload: Bytes| single(r_ctl, FrameType::FCP, DISK, payload);
    let answered = |r_ctl, payload: Bytes| answer(r_ctl, FrameType::FCP, DISK, payload);
    let plogi = login(els::Command::PLOGI, false);
    let process = els::ProcessLogin {
        kind: FrameType::FCP.0,
        establish: true,
        response: 0,
        parameters: els::ProcessLogin::INITIATOR | els::ProcessLogin::NO_READ_TRANSFER_READY,
    };
    let page = AffectedPorts { event: 0, scope: Scope::Port, id: DISK };
    let write = fcp::Command {
        lun: [0; 8],
        reference: 0,
        priority: 0,
        attribute: TaskAttribute::Simple,
        management: None,
        read: false,
        write: true,
        cdb: Bytes::from_static(&[0x2a, 0, 0, 0, 0, 8, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]),
        data_bytes: 2048,
    };
    let data = FrameHeader {
        r_ctl: routing::SOLICITED_DATA,
        kind: FrameType::FCP,
        d_id: DISK,
        s_id: HOST,
        f_ctl: frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE | frame_control::RELATIVE_OFFSET,
        seq_id: 1,
        ox_id: 7,
        rx_id: 9,
        ..FrameHeader::default()
    };
    let good = fcp::Response { status: 0, residual: Residual::None, code: None, sense: Bytes::new() };
    let abort = single(routing::ABORT_SEQUENCE, FrameType::BASIC, DISK, Bytes::new());
    let aborted = BasicAccept { seq_id: None, ox_id: 7, rx_id: 9, low_seq_cnt: 0, high_seq_cnt: 0xffff };
    let ports = Query::PortsOfType { kind: FrameType::FCP.0, scope: QueryScope::default() };
    let exchange = els::ExchangeName { originator: HOST, ox_id: 7, rx_id: 9 };
    vec![
        ("FC ELS", els(FcId::FABRIC_PORT, Request::Login(login(els::Command::FLOGI, false)))),
        (
            "FC ELS",
            accepted(FcId::FABRIC_PORT, Bytes::copy_from_slice(&els::accept_login(&login(els::Command::FLOGI, true)))),
        ),
        ("FC ELS", els(FcId::DIRECTORY_SERVER, Request::Login(plogi))),
        ("FC ELS", els(FcId::FABRIC_CONTROLLER, Request::Register(ChangeRegistration::Full))),
        ("dNS", ct(Query::RegisterTypes(HOST, TypeMap::of(FrameType::FCP.0)))),
        ("dNS", ct(Query::RegisterFeatures { id: HOST, features: 2, kind: 8 })),
        ("dNS", ct(ports.clone())),
        ("dNS", served(&ports, &name_server::list_of_ports(&[(DISK, Wwn(0x2000_0000_0000_0001))]))),
        ("FC ELS", els(HOST, Request::StateChange(vec![page]))),
        ("FC ELS", els(DISK, Request::ProcessLogin(process))),
        ("FC ELS", els(DISK, Request::ReadTimeouts)),
        ("FC ELS", accepted(DISK, els::accept_timeouts(10_000, 2_000))),
        ("FCP", fcp(routing::UNSOLICITED_COMMAND, write.to_bytes())),
        ("FCP", answered(routing::DATA_DESCRIPTOR, fcp::TransferReady { offset: 0, bytes: 2048 }.to_bytes())),
        ("FCP", Frame::class3(data, Bytes::from(vec![0xa5; 2048]))),
        ("FCP", answered(routing::COMMAND_STATUS, good.to_bytes())),
        ("FC ELS", els(DISK, Request::ReadExchangeConcise(exchange))),
        ("BLS", abort),
        ("BLS", answer(routing::BASIC_ACCEPT, FrameType::BASIC, DISK, Bytes::copy_from_slice(&aborted.to_bytes()))),
        ("FC ELS", els(DISK, Request::Logout(els::Logout { id: HOST, port: plogi.port }))),
    ]
}

/// Messages of a node's discovery and login.
fn fip_messages() -> Vec<fip::Message> {
    use fip::{flags, Descriptor, Operation};
    let mac = Descriptor::Mac(HOST_MAC);
    let name = Descriptor::Name(Wwn::of_mac(0x1000, HOST_MAC));
    let flogi = single(
        routing::ELS_REQUEST,
        FrameType::ELS,
        FcId::FABRIC_PORT,
        Request::Login(login(els::Command::FLOGI, false)).to_bytes(),
    );
    let service = fip::LinkService { header: flogi.header, payload: flogi.payload.to_bytes() };
    let fabric = Descriptor::Fabric { id: 0, fc_map: fcoe::DEFAULT_FC_MAP, name: Wwn(0x1000_0000_0000_0002) };
    let period = Descriptor::KeepAlivePeriod { off: false, ms: fip::DEFAULT_KEEP_ALIVE_MS };
    let message = |operation, flags, descriptors| fip::Message { operation, flags, descriptors };
    let available = flags::FABRIC_PROVIDED_MACS | flags::AVAILABLE | flags::SOLICITED | flags::FABRIC_PORT;
    vec![
        message(Operation::VlanRequest, 0, vec![mac.clone()]),
        message(Operation::VlanNotification, 0, vec![mac.clone(), Descriptor::Vlan(100)]),
        message(
            Operation::Solicitation,
            flags::FABRIC_PROVIDED_MACS,
            vec![mac.clone(), name.clone(), Descriptor::MaxFcoeBytes(2172)],
        ),
        message(
            Operation::Advertisement,
            available,
            vec![Descriptor::Priority(128), mac.clone(), name.clone(), fabric, period],
        ),
        message(
            Operation::LinkServiceRequest,
            flags::FABRIC_PROVIDED_MACS,
            vec![Descriptor::Flogi(service.clone()), Descriptor::Mac([0; 6])],
        ),
        message(Operation::KeepAlive, 0, vec![mac.clone(), Descriptor::Port { mac: HOST_MAC, id: HOST, name: Wwn(1) }]),
        message(Operation::ClearVirtualLinks, 0, vec![mac, name]),
    ]
}

/// Lines of fields that tshark prints of a capture, one per frame.
fn dissect(capture: &[u8], more: &[&str], fields: &[&str]) -> Vec<Vec<String>> {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("elephan-fc-{}-{number}.pcapng", std::process::id()));
    std::fs::write(&path, capture).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=|", "-n"]).args(more);
    command.args(["-o", "tcp.check_checksum:TRUE"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('|').map(str::to_string).collect()).collect()
}

fn has_tshark() -> bool {
    Command::new("tshark").arg("--version").output().is_ok()
}

/// Fields by which a reader says that something is wrong; 6291456 and above are warnings and errors.
const FAULTS: [&str; 2] = ["_ws.malformed", "_ws.expert.severity"];

fn assert_no_fault(rows: &[Vec<String>], from: usize) {
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row[from], "", "frame {}: malformed in {row:?}", number + 1);
        let worst = row[from + 1].split(',').filter_map(|value| value.parse::<u32>().ok()).max().unwrap_or(0);
        assert!(worst < 6_291_456, "frame {}: {row:?}", number + 1);
    }
}

#[test]
fn fcoe_and_fip_are_read_without_a_fault() {
    if !has_tshark() {
        return crate::skip::skipped("tshark is not installed (Debian package tshark)");
    }
    let mut writer = Writer::of_ethernet(Vec::new()).unwrap();
    let ethernet = EthernetHeader { destination: FCF_MAC, source: HOST_MAC, vlan: Some(3 << 13 | 100) };
    let mut put = |bytes: BytesMut| writer.write_packet(0, &bytes, bytes.len() as u32).unwrap();
    let mut expected = Vec::new();
    for message in fip_messages() {
        let mut bytes = BytesMut::new();
        ethernet.encode(ETHERTYPE_FIP, &mut bytes);
        message.encode(&mut bytes);
        put(bytes);
        // Its FLOGI is named after what it carries.
        expected.push(if message.operation == fip::Operation::LinkServiceRequest { "FC ELS" } else { "FIP" });
    }
    for (protocol, frame) in frames() {
        let mut bytes = BytesMut::new();
        fcoe::encode(&ethernet, &frame, &mut bytes);
        put(bytes);
        expected.push(protocol);
    }
    let fields = ["_ws.col.Protocol", "fcoe.crc.status", "fcels.opcode", FAULTS[0], FAULTS[1]];
    let rows = dissect(&writer.finish().unwrap(), &["-2"], &fields);
    let protocols: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(protocols, expected);
    // 1 = good, 0 = bad.
    assert!(rows[fip_messages().len()..].iter().all(|row| row[1] == "1"), "{rows:?}");
    assert_no_fault(&rows, 3);
}

#[test]
fn frames_with_delimiters_are_read_without_a_fault_beside_ip() {
    if !has_tshark() {
        return crate::skip::skipped("tshark is not installed (Debian package tshark)");
    }
    let mut writer = Writer::new(Vec::new()).unwrap();
    let link = writer.add_fibre_channel("fc").unwrap();
    for (_, frame) in frames() {
        let mut bytes = BytesMut::new();
        frame.encode_delimited(&mut bytes);
        writer.write_packet_at(link, 0, &bytes, bytes.len() as u32).unwrap();
    }
    let fields = ["_ws.col.Protocol", "frame.interface_name", "fc.crc.status", FAULTS[0], FAULTS[1]];
    let rows = dissect(&writer.finish().unwrap(), &["-2"], &fields);
    let expected: Vec<_> = frames().iter().map(|(protocol, _)| [*protocol, "fc", "1"]).collect();
    assert_eq!(rows.iter().map(|row| [&*row[0], &*row[1], &*row[2]]).collect::<Vec<_>>(), expected);
    assert_no_fault(&rows, 3);
}

/// The bytes of each message.
fn encoded<M>(messages: &[M], encode: impl Fn(&M, &mut BytesMut)) -> Vec<BytesMut> {
    let of = |message| {
        let mut bytes = BytesMut::new();
        encode(message, &mut bytes);
        bytes
    };
    messages.iter().map(of).collect()
}

/// A connection that carries one message in each segment.
fn tcp_capture(messages: &[BytesMut]) -> Vec<u8> {
    let mut talk = Conversation::new(1);
    let mut writer = Writer::new(Vec::new()).unwrap();
    let base = SegmentFields { flags: tcp_flags::ACK, window_bytes: 1 << 16, ..SegmentFields::default() };
    let mut put = |from_client: bool, segment: SegmentFields, data: &[u8]| {
        let mut bytes = talk.headers(from_client, &segment, data).to_vec();
        bytes.extend_from_slice(data);
        writer.write_packet(0, &bytes, bytes.len() as u32).unwrap();
    };
    put(true, SegmentFields { flags: tcp_flags::SYN, ..base }, &[]);
    put(false, SegmentFields { flags: tcp_flags::SYN | tcp_flags::ACK, ack: 1, ..base }, &[]);
    let mut seq = 1;
    for message in messages {
        put(true, SegmentFields { seq, ack: 1, payload_bytes: message.len() as u32, ..base }, message);
        seq += message.len() as u64;
    }
    writer.finish().unwrap()
}

#[test]
fn ifcp_is_read_without_a_fault() {
    if !has_tshark() {
        return crate::skip::skipped("tshark is not installed (Debian package tshark)");
    }
    let bind = Bind {
        liveness_s: 10,
        mode: AddressMode::Translation,
        version: ifcp::VERSION,
        user: 1,
        source: Wwn(0x2000_0000_0000_0001),
        destination: Wwn(0x2000_0000_0000_0002),
    };
    let sessions = [
        SessionMessage::Bind(bind),
        SessionMessage::BindResponse { bind, status: BindStatus::Success, handle: 1 },
        SessionMessage::LivenessTest { interval_s: 10, count: 0, source: bind.source, destination: bind.destination },
        SessionMessage::Unbind { user: 1, handle: 1 },
    ];
    let mut messages: Vec<ifcp::Message> =
        sessions.into_iter().map(|message| ifcp::Message::Session(message, TIME)).collect();
    // Only traffic between devices crosses: nothing to or from a service of the fabric.
    let between_devices = |frame: &Frame| !frame.header.d_id.is_well_known() && !frame.header.s_id.is_well_known();
    for (protocol, frame) in frames().into_iter().filter(|(_, frame)| between_devices(frame)) {
        let special = protocol == "FC ELS";
        let mode = AddressMode::Translation;
        messages.push(ifcp::Message::Device(DeviceFrame { frame, mode, special, accepted: None, time: TIME }));
    }
    let encoded = encoded(&messages, |message, bytes| message.encode(bytes));
    let fields = ["ifcp.encap.crc", "ifcp.sof", "ifcp.flags.ses", FAULTS[0], FAULTS[1]];
    let rows = dissect(&tcp_capture(&encoded), &["-d", "tcp.port==5001,ifcp"], &fields);
    assert_eq!(rows.len(), messages.len() + 2);
    let ifcp = rows.iter().filter(|row| !row[1].is_empty()).count();
    assert_eq!(ifcp, messages.len(), "{rows:?}");
    assert_no_fault(&rows[2..], 3);
}

#[test]
fn fcip_is_read_without_a_fault() {
    if !has_tshark() {
        return crate::skip::skipped("tshark is not installed (Debian package tshark)");
    }
    let special = fcip::SpecialFrame {
        changed: false,
        source: Wwn(0x1000_0000_0000_0001),
        entity: 1,
        nonce: 0x0123_4567_89ab_cdef,
        usage_flags: fcip::SpecialFrame::CLASS_3,
        usage_code: 0,
        destination: Wwn(0),
        keep_alive_ms: 5000,
    };
    let mut messages = vec![fcip::Message::Special(special, TIME)];
    messages.extend(frames().into_iter().map(|(_, frame)| fcip::Message::Frame(frame, TIME)));
    let encoded = encoded(&messages, |message, bytes| message.encode(bytes));
    let fields = ["fcip.proto", "fcip.conncode", "fc.r_ctl", FAULTS[0], FAULTS[1]];
    let rows = dissect(&tcp_capture(&encoded), &["-d", "tcp.port==5001,fcip"], &fields);
    assert_eq!(rows.len(), messages.len() + 2);
    let fcip = rows.iter().filter(|row| !row[0].is_empty()).count();
    assert_eq!(fcip, messages.len(), "{rows:?}");
    assert_eq!(rows.iter().filter(|row| !row[2].is_empty()).count(), frames().len(), "{rows:?}");
    assert_no_fault(&rows[2..], 3);
}

/// Messages of a gateway and of its server.
fn isns_messages() -> Vec<isns::Message> {
    use isns::{flags, port_role, scn_bitmap};
    let port = Attribute::wwn(Tag::PORT_NAME, Wwn::of_mac(0x2000, HOST_MAC));
    let entity = Attribute::text(Tag::ENTITY, "gateway.example");
    let address = Attribute::address(Tag::PORTAL_ADDRESS, IpAddress::of_v4([192, 0, 2, 1]));
    let portal = Attribute::word(Tag::PORTAL_PORT, 3420);
    let registered = vec![
        entity.clone(),
        Attribute::word(Tag::ENTITY_PROTOCOL, isns::PROTOCOL_IFCP),
        Attribute::word(Tag::REGISTRATION_PERIOD, 300),
        address.clone(),
        portal.clone(),
        Attribute::text(Tag::PORTAL_NAME, "east"),
        Attribute::word(Tag::STATUS_INQUIRY_INTERVAL, 60),
        Attribute::word(Tag::STATUS_INQUIRY_PORT, 3206),
        Attribute::word(Tag::CHANGE_PORT, 3206 | Tag::UDP),
        port.clone(),
        Attribute::fc_id(Tag::PORT_ID, HOST),
        Attribute::word(Tag::PORT_TYPE, Tag::N_PORT),
        Attribute::text(Tag::PORT_SYMBOLIC_NAME, "a port"),
        Attribute::wwn(Tag::FABRIC_PORT_NAME, Wwn::of_mac(0x2000, FCF_MAC)),
        Attribute::address(Tag::PORT_ADDRESS, IpAddress::of_v4([192, 0, 2, 1])),
        Attribute::word(Tag::CLASS_OF_SERVICE, Tag::CLASS_3),
        Attribute::bytes(Tag::FC4_TYPES, &TypeMap::of(FrameType::FCP.0).to_bytes()),
        Attribute::bytes(Tag::FC4_FEATURES, &[0; 128]),
        Attribute::word(Tag::PORT_ROLE, port_role::INITIATOR),
        Attribute::wwn(Tag::NODE_NAME, Wwn::of_mac(0x1000, HOST_MAC)),
        Attribute::text(Tag::NODE_SYMBOLIC_NAME, "a node"),
    ];
    let wanted = [Tag::ENTITY, Tag::PORTAL_ADDRESS, Tag::PORTAL_PORT, Tag::PORT_NAME, Tag::PORT_ID];
    let request = |function, keys, operating| isns::Message::request(function, 7, port.clone(), keys, operating);
    let changes = scn_bitmap::ADDED | scn_bitmap::REMOVED | scn_bitmap::UPDATED;
    let mut register = request(Function::REGISTER, vec![entity.clone()], registered);
    register.flags |= flags::REPLACE;
    let query =
        request(Function::QUERY, vec![Attribute::wanted(Tag::PORT_NAME)], wanted.map(Attribute::wanted).to_vec());
    let found = vec![
        Attribute::wanted(Tag::PORT_NAME),
        Attribute::DELIMITER,
        entity.clone(),
        address.clone(),
        portal.clone(),
        port.clone(),
        Attribute::fc_id(Tag::PORT_ID, HOST),
    ];
    let timestamp = Attribute::bytes(Tag::TIMESTAMP, &[0, 0, 0, 0, 0x69, 0, 0, 0]);
    let from_server = |function, attributes| isns::Message {
        function,
        flags: flags::SERVER,
        transaction: 8,
        status: None,
        attributes,
    };
    let change = from_server(
        Function::CHANGE,
        vec![port.clone(), timestamp.clone(), Attribute::word(Tag::CHANGES, scn_bitmap::ADDED), port.clone()],
    );
    let inquiry = from_server(Function::STATUS_INQUIRY, vec![timestamp, entity, address, portal]);
    let next = request(
        Function::GET_NEXT,
        vec![Attribute::wanted(Tag::PORT_NAME)],
        vec![Attribute::wanted(Tag::PORT_NAME), Attribute::wanted(Tag::PORT_ID)],
    );
    let with_changes = vec![Attribute::word(Tag::CHANGES, changes)];
    vec![
        register.clone(),
        register.response(flags::SERVER, Status::SUCCESS, register.attributes[1..].to_vec()),
        request(Function::REGISTER_CHANGES, vec![port.clone()], with_changes),
        query.response(flags::SERVER, Status::SUCCESS, found),
        query,
        next,
        change.response(flags::CLIENT, Status::SUCCESS, vec![port.clone()]),
        change,
        inquiry.response(flags::CLIENT, Status::SUCCESS, inquiry.attributes.clone()),
        inquiry,
        request(Function::DEREGISTER_CHANGES, vec![port.clone()], vec![]),
        request(Function::DEREGISTER, vec![], vec![port.clone()]),
    ]
}

#[test]
fn isns_is_read_without_a_fault() {
    if !has_tshark() {
        return crate::skip::skipped("tshark is not installed (Debian package tshark)");
    }
    let messages = isns_messages();
    let encoded = encoded(&messages, |message, bytes| message.encode(bytes));
    let fields = ["isns.functionid", "isns.fc_port_name_wwpn", "_ws.expert.message", FAULTS[0]];
    let rows = dissect(&tcp_capture(&encoded), &["-d", "tcp.port==5001,isns"], &fields);
    assert_eq!(rows.len(), messages.len() + 2);
    for (row, message) in rows[2..].iter().zip(&messages) {
        assert_eq!(row[0], message.function.0.to_string(), "{row:?}");
        let names = message.attributes.iter().filter(|attribute| attribute.tag == Tag::PORT_NAME).count();
        let read = row[1].split(',').filter(|name| !name.is_empty()).count();
        assert!(names == 0 || read > 0, "{row:?}");
        // The dissector wants three bytes for the address of a port. RFC 4171, 6.1 has four, and open-isns takes four.
        let with_address = message.attributes.iter().any(|attribute| attribute.as_fc_id() == Some(HOST));
        let expected = if with_address { "Invalid attribute length (should be 3)" } else { "" };
        assert_eq!((row[2].as_str(), row[3].as_str()), (expected, ""), "{row:?}");
    }
}
