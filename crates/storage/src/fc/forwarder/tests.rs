//! A node's way in and out, in Ethernet frames, as Linux's libfcoe goes it.

use super::{Forwarder, Settings};
use crate::fc::fabric::{self, Assignments, Entry, Event, Fabric, Location};
use crate::fc::testing::login;
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use wire::ethernet::{EthernetHeader, ETHERTYPE_FCOE, ETHERTYPE_FIP};
use wire::fc::els::{self, Command, Logout, Request};
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType, Wwn};
use wire::fcoe;
use wire::fip::{flags, Descriptor, LinkService, Message, Operation, ALL_ENODE_MACS, ALL_FCF_MACS};

const FCF: [u8; 6] = [0x52, 0x54, 0, 0, 0, 0xfc];
const HOST: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const OTHER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];
const FABRIC: Wwn = Wwn(0x1000_0000_0000_00fa);
const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const TAG: u16 = 3 << 13 | 100;

fn forwarder() -> Forwarder {
    let fabric = Fabric::new(fabric::Settings::new(FABRIC, 1).unwrap(), Assignments::default());
    let settings = Settings { vlan: Some(TAG), ..Settings::new(FCF, FABRIC) };
    Forwarder::new(settings, fabric, 0).unwrap()
}

fn ethernet(source: [u8; 6], destination: [u8; 6]) -> EthernetHeader {
    EthernetHeader { destination, source, vlan: Some(TAG) }
}

fn fip_frame(source: [u8; 6], destination: [u8; 6], message: &Message) -> Bytes {
    let mut bytes = BytesMut::new();
    ethernet(source, destination).encode(ETHERTYPE_FIP, &mut bytes);
    message.encode(&mut bytes);
    bytes.freeze()
}

fn fc_frame(source: [u8; 6], frame: &Frame) -> Bytes {
    let mut bytes = BytesMut::new();
    fcoe::encode(&ethernet(source, FCF), frame, &mut bytes);
    bytes.freeze()
}

/// A frame that left: its receiver, and FIP's message or FCoE's frame.
#[derive(Debug)]
enum Left {
    Fip([u8; 6], Message, usize),
    Fcoe([u8; 6], Frame),
}

fn left(forwarder: &mut Forwarder) -> Vec<Left> {
    let mut found = Vec::new();
    while let Some(bytes) = forwarder.poll_transmit() {
        let (header, kind, content) = EthernetHeader::decode(&bytes).unwrap();
        assert_eq!((header.source, header.vlan), (FCF, Some(TAG)));
        found.push(match kind {
            ETHERTYPE_FIP => Left::Fip(header.destination, Message::decode(&content).unwrap(), bytes.len() - 4),
            ETHERTYPE_FCOE => Left::Fcoe(header.destination, fcoe::decode(&content).unwrap()),
            other => panic!("{other:#x}"),
        });
    }
    found
}

fn header(s_id: FcId, d_id: FcId) -> FrameHeader {
    let f_ctl = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    FrameHeader { r_ctl: routing::ELS_REQUEST, d_id, s_id, kind: FrameType::ELS, f_ctl, ox_id: 9, ..Default::default() }
}

fn service(s_id: FcId, request: &Request) -> LinkService {
    LinkService { header: header(s_id, FcId::FABRIC_PORT), payload: request.to_bytes() }
}

/// Sends a link service by FIP and returns the answer's descriptors.
fn ask(forwarder: &mut Forwarder, source: [u8; 6], descriptor: Descriptor, now_ns: u64) -> Vec<Descriptor> {
    let message = Message {
        operation: Operation::LinkServiceRequest,
        flags: flags::FABRIC_PROVIDED_MACS,
        descriptors: vec![descriptor, Descriptor::Mac([0; 6])],
    };
    forwarder.handle_ethernet(&fip_frame(source, FCF, &message), now_ns);
    let mut answers = left(forwarder);
    assert_eq!(answers.len(), 1, "{answers:?}");
    let Left::Fip(_, message, _) = answers.remove(0) else { panic!("not by FIP") };
    assert_eq!(message.operation, Operation::LinkServiceReply);
    message.descriptors
}

/// Logs a node in; returns its address and the Ethernet address that goes with it.
fn join(forwarder: &mut Forwarder, source: [u8; 6], name: u64, now_ns: u64) -> (FcId, [u8; 6]) {
    let request = Request::Login(login(Command::FLOGI, name));
    let answer = ask(forwarder, source, Descriptor::Flogi(service(FcId::NONE, &request)), now_ns);
    let [Descriptor::Flogi(accept), Descriptor::Mac(mac)] = &answer[..] else { panic!("{answer:?}") };
    assert_eq!(accept.payload[0], Command::LS_ACC.0);
    assert_eq!(*mac, fcoe::fabric_provided_mac(fcoe::DEFAULT_FC_MAP, accept.header.d_id));
    (accept.header.d_id, *mac)
}

fn keep_alive(source: [u8; 6], port: Option<Descriptor>) -> Bytes {
    let descriptors = [Some(Descriptor::Mac(HOST)), port].into_iter().flatten().collect();
    fip_frame(source, FCF, &Message { operation: Operation::KeepAlive, flags: 0, descriptors })
}

#[test]
fn a_node_discovers_the_forwarder() {
    let mut forwarder = forwarder();
    forwarder.handle_timeout(0);
    let Left::Fip(to, message, _) = &left(&mut forwarder)[0] else { panic!() };
    assert_eq!((*to, message.operation), (ALL_ENODE_MACS, Operation::Advertisement));
    assert_eq!(message.flags & flags::SOLICITED, 0);
    let descriptors = vec![Descriptor::Mac(HOST), Descriptor::Name(Wwn(1)), Descriptor::MaxFcoeBytes(2158)];
    let solicitation = Message { operation: Operation::Solicitation, flags: flags::FABRIC_PROVIDED_MACS, descriptors };
    forwarder.handle_ethernet(&fip_frame(HOST, ALL_FCF_MACS, &solicitation), S);
    let answer = left(&mut forwarder);
    let [Left::Fip(to, message, bytes)] = &answer[..] else { panic!("{answer:?}") };
    assert_eq!((*to, *bytes), (HOST, 2172), "the largest frame with its Ethernet header");
    let expected = flags::FABRIC_PROVIDED_MACS | flags::AVAILABLE | flags::SOLICITED | flags::FABRIC_PORT;
    assert_eq!(message.flags, expected);
    // Before it knows the VLAN a node asks without a tag, or in VLAN 0.
    let vlans = Message { operation: Operation::VlanRequest, flags: 0, descriptors: vec![Descriptor::Mac(HOST)] };
    for vlan in [None, Some(3 << 13), Some(TAG)] {
        let mut bytes = BytesMut::new();
        EthernetHeader { vlan, ..ethernet(HOST, ALL_FCF_MACS) }.encode(ETHERTYPE_FIP, &mut bytes);
        vlans.encode(&mut bytes);
        forwarder.handle_ethernet(&bytes.freeze(), S);
        let answer = forwarder.poll_transmit().unwrap();
        let (header, _, content) = EthernetHeader::decode(&answer).unwrap();
        assert_eq!((header.destination, header.vlan), (HOST, vlan));
        let message = Message::decode(&content).unwrap();
        assert_eq!(message.descriptors, [Descriptor::Mac(FCF), Descriptor::Vlan(100)]);
    }
}

#[test]
fn a_node_logs_in_speaks_and_logs_out() {
    let mut forwarder = forwarder();
    let (id, mac) = join(&mut forwarder, HOST, 1, 0);
    let plogi = Request::Login(login(Command::PLOGI, 1)).to_bytes();
    let frame = Frame::class3(header(id, FcId::DIRECTORY_SERVER), plogi);
    forwarder.handle_ethernet(&fc_frame(mac, &frame), S);
    let answer = left(&mut forwarder);
    let [Left::Fcoe(to, reply)] = &answer[..] else { panic!("{answer:?}") };
    assert_eq!((*to, reply.header.d_id), (mac, id));
    // A further address, and its end.
    let fdisc = Descriptor::Fdisc(service(FcId::NONE, &Request::Login(login(Command::FDISC, 2))));
    let answer = ask(&mut forwarder, HOST, fdisc, S);
    let [Descriptor::Fdisc(accept), Descriptor::Mac(further)] = &answer[..] else { panic!("{answer:?}") };
    let second = accept.header.d_id;
    assert_ne!((second, *further), (id, mac));
    for (id, source) in [(second, *further), (id, mac)] {
        let logo = Request::Logout(Logout { id, port: login(Command::FLOGI, 1).port });
        let answer = ask(&mut forwarder, source, Descriptor::Logo(service(id, &logo)), S);
        let [Descriptor::Logo(accept), Descriptor::Mac(none)] = &answer[..] else { panic!("{answer:?}") };
        assert_eq!((&accept.payload[..], *none), (&els::accept()[..], [0; 6]));
    }
    assert_eq!(forwarder.fabric().logins(), 0);
    forwarder.handle_ethernet(&fc_frame(mac, &frame), 2 * S);
    assert_eq!(forwarder.counters().no_login, 1);
}

#[test]
fn a_frame_counts_only_from_its_senders_ethernet_address() {
    let mut forwarder = forwarder();
    let (id, mac) = join(&mut forwarder, HOST, 1, 0);
    let (other, other_mac) = join(&mut forwarder, OTHER, 2, 0);
    let scsi = FrameHeader { r_ctl: routing::UNSOLICITED_COMMAND, kind: FrameType::FCP, ..header(id, other) };
    let frame = Frame::class3(scsi, Bytes::from_static(b"abc"));
    forwarder.handle_ethernet(&fc_frame(other_mac, &frame), S);
    forwarder.handle_ethernet(&fc_frame(HOST, &frame), S);
    assert_eq!((left(&mut forwarder).len(), forwarder.counters().no_login), (0, 2));
    forwarder.handle_ethernet(&fc_frame(mac, &frame), S);
    let passed = left(&mut forwarder);
    let [Left::Fcoe(to, passed)] = &passed[..] else { panic!("{passed:?}") };
    assert_eq!((*to, &passed.payload.to_bytes()[..]), (other_mac, &b"abc"[..]));
    // Another VLAN, another receiver.
    let mut bytes = BytesMut::new();
    fcoe::encode(&EthernetHeader { vlan: None, ..ethernet(mac, FCF) }, &frame, &mut bytes);
    forwarder.handle_ethernet(&bytes.freeze(), S);
    let mut bytes = BytesMut::new();
    fcoe::encode(&ethernet(mac, OTHER), &frame, &mut bytes);
    forwarder.handle_ethernet(&bytes.freeze(), S);
    assert_eq!(forwarder.counters().not_ours, 2);
}

#[test]
fn a_node_of_which_nothing_is_heard_is_logged_out() {
    let mut forwarder = forwarder();
    let (id, mac) = join(&mut forwarder, HOST, 1, 0);
    let port = || Some(Descriptor::Port { mac, id, name: login(Command::FLOGI, 1).port });
    let mut now = 0;
    // Keep-alives every 8 s hold the login for an hour, with those of the port every 90 s.
    while now < 3600 * S {
        now += 8 * S;
        forwarder.handle_ethernet(&keep_alive(HOST, None), now);
        if now % (88 * S) == 0 {
            forwarder.handle_ethernet(&keep_alive(mac, port()), now);
        }
        forwarder.handle_timeout(now);
        assert!(forwarder.poll_timeout() > now);
    }
    assert_eq!(forwarder.fabric().logins(), 1);
    let advertisements = left(&mut forwarder).len();
    assert!((449..=451).contains(&advertisements), "{advertisements}");
    // Then silence: 2.5 periods, and half a one until it is noticed.
    let last = now;
    while forwarder.fabric().logins() == 1 {
        now = forwarder.poll_timeout();
        forwarder.handle_timeout(now);
        assert!(now <= last + 24 * S);
    }
    assert!(now >= last + 20 * S);
    let clear = left(&mut forwarder).into_iter().find_map(|left| match left {
        Left::Fip(to, message, _) if message.operation == Operation::ClearVirtualLinks => Some((to, message)),
        _ => None,
    });
    let (to, message) = clear.unwrap();
    assert_eq!((to, message.descriptors.len()), (HOST, 2), "no port is named: all of them end");
    let out = std::iter::from_fn(|| forwarder.poll_event()).last().unwrap();
    assert!(matches!(out, Event::LoggedOut { id: gone, .. } if gone == id));
}

#[test]
fn a_port_whose_keep_alives_stop_is_logged_out_alone() {
    let mut forwarder = forwarder();
    let (first, mac) = join(&mut forwarder, HOST, 1, 0);
    let fdisc = Descriptor::Fdisc(service(FcId::NONE, &Request::Login(login(Command::FDISC, 2))));
    ask(&mut forwarder, HOST, fdisc, 0);
    let name = login(Command::FLOGI, 1).port;
    for turn in 0..60 {
        forwarder.handle_ethernet(&keep_alive(HOST, None), turn * 8 * S);
        forwarder.handle_ethernet(&keep_alive(mac, Some(Descriptor::Port { mac, id: first, name })), turn * 8 * S);
        forwarder.handle_timeout(turn * 8 * S);
    }
    let ids: Vec<FcId> = forwarder.fabric().entries().map(|(id, _)| id).collect();
    assert_eq!((ids, forwarder.counters().expired), (vec![first], 1));
}

#[test]
fn a_node_that_missed_a_restart_is_told_at_its_next_keep_alive() {
    let mut forwarder = forwarder();
    forwarder.handle_ethernet(&keep_alive(HOST, None), S);
    let answer = left(&mut forwarder);
    let [Left::Fip(to, message, _)] = &answer[..] else { panic!("{answer:?}") };
    assert_eq!((*to, message.operation), (HOST, Operation::ClearVirtualLinks));
    assert_eq!(message.descriptors.len(), 2, "no port is named: all of them end");
}

#[test]
fn a_forwarder_that_stops_tells_all_nodes() {
    let mut forwarder = forwarder();
    join(&mut forwarder, HOST, 1, 0);
    join(&mut forwarder, OTHER, 2, 0);
    forwarder.clear_all(S);
    let mut notified: Vec<[u8; 6]> = left(&mut forwarder)
        .into_iter()
        .filter_map(|left| match left {
            Left::Fip(to, message, _) if message.operation == Operation::ClearVirtualLinks => Some(to),
            _ => None,
        })
        .collect();
    notified.sort_unstable();
    assert_eq!((notified, forwarder.fabric().logins()), (vec![HOST, OTHER], 0));
}

#[test]
fn nodes_beyond_the_bound_are_refused_and_failed_logins_keep_nothing() {
    let fabric = Fabric::new(fabric::Settings::new(FABRIC, 1).unwrap(), Assignments::default());
    let settings = Settings { vlan: Some(TAG), nodes_max: 1, ..Settings::new(FCF, FABRIC) };
    let mut forwarder = Forwarder::new(settings, fabric, 0).unwrap();
    // FDISC before FLOGI is rejected, and the node is forgotten.
    let fdisc = Descriptor::Fdisc(service(FcId::NONE, &Request::Login(login(Command::FDISC, 2))));
    let answer = ask(&mut forwarder, OTHER, fdisc, 0);
    assert!(matches!(&answer[0], Descriptor::Fdisc(service) if service.payload[0] == Command::LS_RJT.0));
    join(&mut forwarder, HOST, 1, 0);
    let flogi = Descriptor::Flogi(service(FcId::NONE, &Request::Login(login(Command::FLOGI, 3))));
    let message = Message { operation: Operation::LinkServiceRequest, flags: 0, descriptors: vec![flogi] };
    forwarder.handle_ethernet(&fip_frame(OTHER, FCF, &message), 0);
    assert_eq!((left(&mut forwarder).len(), forwarder.counters().too_many_nodes), (0, 1));
}

#[test]
fn frames_cross_to_presented_ports_and_back() {
    let mut forwarder = forwarder();
    let (id, mac) = join(&mut forwarder, HOST, 1, 0);
    let disk = forwarder.fabric_mut().present(Entry::new(Location::Remote, Wwn(0x77), Wwn(0x78))).unwrap();
    forwarder.flush(0);
    let there = Frame::class3(header(id, disk), Request::Login(login(Command::PLOGI, 1)).to_bytes());
    forwarder.handle_ethernet(&fc_frame(mac, &there), S);
    assert_eq!(forwarder.poll_remote().map(|frame| frame.header), Some(there.header));
    let back = Frame::class3(FrameHeader { r_ctl: routing::ELS_REPLY, ..header(disk, id) }, els::accept());
    forwarder.handle_remote(back.clone(), S);
    let answer = left(&mut forwarder);
    assert!(matches!(&answer[..], [Left::Fcoe(to, frame)] if *to == mac && frame.header == back.header));
}

#[test]
fn nobody_makes_the_forwarder_speak_to_a_group_or_in_anothers_name() {
    let mut forwarder = forwarder();
    let (id, mac) = join(&mut forwarder, HOST, 1, 0);
    // Keep-alives and solicitations that name a group, or another node than their sender.
    for named in [ALL_ENODE_MACS, [0; 6], HOST] {
        for (operation, more) in [
            (Operation::KeepAlive, None),
            (Operation::KeepAlive, Some(Descriptor::Port { mac, id, name: Wwn(1) })),
            (Operation::Solicitation, Some(Descriptor::MaxFcoeBytes(0))),
        ] {
            let descriptors = [Some(Descriptor::Mac(named)), more].into_iter().flatten().collect();
            let message = Message { operation, flags: flags::FABRIC_PROVIDED_MACS, descriptors };
            forwarder.handle_ethernet(&fip_frame(OTHER, FCF, &message), S);
        }
    }
    forwarder.handle_ethernet(
        &fip_frame(ALL_ENODE_MACS, FCF, &Message { operation: Operation::KeepAlive, flags: 0, descriptors: vec![] }),
        S,
    );
    // Link services that are none: to a server in a host's name, of another command, by another node.
    let plogi = Request::Login(login(Command::PLOGI, 1)).to_bytes();
    let logo = Request::Logout(Logout { id, port: login(Command::FLOGI, 1).port });
    for descriptor in [
        Descriptor::Flogi(LinkService { header: header(id, FcId::DIRECTORY_SERVER), payload: plogi.clone() }),
        Descriptor::Flogi(LinkService { header: header(FcId::NONE, FcId::FABRIC_PORT), payload: plogi }),
        Descriptor::Logo(service(id, &logo)),
    ] {
        let operation = Operation::LinkServiceRequest;
        let message = Message { operation, flags: flags::FABRIC_PROVIDED_MACS, descriptors: vec![descriptor] };
        forwarder.handle_ethernet(&fip_frame(OTHER, FCF, &message), S);
    }
    let sent = left(&mut forwarder);
    assert_eq!((sent.len(), forwarder.fabric().logins()), (0, 1), "{sent:?}");
}

#[test]
fn a_name_that_is_logged_in_is_refused_to_another_node_until_its_own_is_gone() {
    let mut forwarder = forwarder();
    let (id, _) = join(&mut forwarder, HOST, 1, 0);
    let again = || Descriptor::Flogi(service(FcId::NONE, &Request::Login(login(Command::FLOGI, 1))));
    let answer = ask(&mut forwarder, OTHER, again(), S);
    assert!(matches!(&answer[0], Descriptor::Flogi(service) if service.payload[0] == Command::LS_RJT.0));
    assert_eq!(join(&mut forwarder, HOST, 1, S).0, id, "its own node logs in again");
    forwarder.handle_timeout(30 * S);
    left(&mut forwarder);
    assert_eq!(join(&mut forwarder, OTHER, 1, 31 * S).0, id);
}

#[test]
fn a_port_that_missed_the_end_of_its_login_is_told_at_its_next_keep_alive() {
    let mut forwarder = forwarder();
    let (id, mac) = join(&mut forwarder, HOST, 1, 0);
    let fdisc = Descriptor::Fdisc(service(FcId::NONE, &Request::Login(login(Command::FDISC, 2))));
    ask(&mut forwarder, HOST, fdisc, 0);
    let logo = Request::Logout(Logout { id, port: login(Command::FLOGI, 1).port });
    ask(&mut forwarder, mac, Descriptor::Logo(service(id, &logo)), S);
    let port = Descriptor::Port { mac, id, name: login(Command::FLOGI, 1).port };
    forwarder.handle_ethernet(&keep_alive(mac, Some(port.clone())), S);
    let answer = left(&mut forwarder);
    let [Left::Fip(to, message, _)] = &answer[..] else { panic!("{answer:?}") };
    assert_eq!((*to, message.operation, message.descriptors.last()), (HOST, Operation::ClearVirtualLinks, Some(&port)));
}

#[test]
fn keep_alives_that_linux_would_not_keep_are_refused() {
    let fabric = Fabric::new(fabric::Settings::new(FABRIC, 1).unwrap(), Assignments::default());
    let settings = Settings { keep_alive_ms: 499, ..Settings::new(FCF, FABRIC) };
    let error = Forwarder::new(settings, fabric, 0).unwrap_err();
    assert!(error.to_string().contains("at least 500 ms"), "{error}");
    assert!(fabric::Settings::new(FABRIC, 240).unwrap_err().to_string().contains("1 to 239"));
}

proptest! {
    /// Any frames from an Ethernet: nothing breaks, and a node that is logged in stays so.
    #[test]
    fn a_hostile_ethernet_harms_nobody_else(
        frames in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), 0u8..4, 0u16..5, 0u8..4), 1..80),
    ) {
        let mut forwarder = forwarder();
        let (id, _) = join(&mut forwarder, HOST, 1, 0);
        for (content, source, code, subcode) in frames {
            let mut bytes = BytesMut::new();
            let source = [[0x52, 0x54, 0, 0, 9, source], OTHER][usize::from(source == 0)];
            let kind = if code == 0 { ETHERTYPE_FCOE } else { ETHERTYPE_FIP };
            ethernet(source, FCF).encode(kind, &mut bytes);
            if code > 0 {
                let words = (content.len() / 4) as u8;
                bytes.extend_from_slice(&[0x10, 0, 0, code as u8, 0, subcode, 0, words, 0x80, 0]);
            }
            bytes.extend_from_slice(&content);
            forwarder.handle_ethernet(&bytes.freeze(), S);
            while forwarder.poll_transmit().is_some() {}
        }
        prop_assert!(forwarder.fabric().entries().any(|(found, _)| found == id));
    }
}
