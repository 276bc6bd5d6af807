//! A host's way through a fabric, in the order in which Linux's libfc goes it, and hosts that go another.

use super::fabric::{Assignments, Entry, Event, Fabric, Location, Output, PortKey, Settings};
use super::testing::login;
use super::{frames_of, Collected, Collector, CollectorBounds};
use bytes::Bytes;
use proptest::prelude::*;
use wire::fc::ct::CtHeader;
use wire::fc::els::{self, ChangeRegistration, Command, Logout, Reject, Request};
use wire::fc::name_server::{parse_list_of_ids, parse_list_of_ports, Query, QueryScope, TypeMap};
use wire::fc::{frame_control, routing, Eof, FcId, Frame, FrameHeader, FrameType, Login, Sof, Wwn};

const FABRIC: Wwn = Wwn(0x1000_0000_0000_00fa);

fn fabric() -> Fabric {
    Fabric::new(Settings::new(FABRIC, 1).unwrap(), Assignments::default())
}

/// A request of one frame.
fn request(s_id: FcId, d_id: FcId, kind: FrameType, payload: Bytes) -> Frame {
    let r_ctl = if kind == FrameType::CT { routing::UNSOLICITED_CONTROL } else { routing::ELS_REQUEST };
    let f_ctl = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    Frame::class3(FrameHeader { r_ctl, d_id, s_id, kind, f_ctl, ox_id: 0x17, ..FrameHeader::default() }, payload)
}

/// All frames that leave the fabric through a link; nothing but RSCNs may go elsewhere.
fn through(fabric: &mut Fabric, port: PortKey) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(output) = fabric.poll_output() {
        match output {
            Output::Attached(to, frame) if to == port => frames.push(frame),
            Output::Attached(_, frame) if frame.payload.to_bytes()[0] == Command::RSCN.0 => {}
            other => panic!("{other:?}"),
        }
    }
    frames
}

/// The reply to an extended link service.
fn ask(fabric: &mut Fabric, port: PortKey, s_id: FcId, d_id: FcId, content: &Request) -> Frame {
    fabric.handle_frame(port, request(s_id, d_id, FrameType::ELS, content.to_bytes()));
    let mut frames = through(fabric, port);
    assert_eq!(frames.len(), 1, "{frames:?}");
    let reply = frames.remove(0);
    assert_eq!((reply.header.s_id, reply.header.ox_id), (d_id, 0x17));
    assert!(reply.header.has(frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE));
    reply
}

fn is_accept(frame: &Frame) -> bool {
    frame.payload.to_bytes()[0] == Command::LS_ACC.0
}

fn attach(fabric: &mut Fabric, port: PortKey, name: u64) -> FcId {
    let reply = ask(fabric, port, FcId::NONE, FcId::FABRIC_PORT, &Request::Login(login(Command::FLOGI, name)));
    assert!(is_accept(&reply));
    let parameters = Login::parse(&reply.payload.to_bytes()).unwrap();
    assert!(parameters.fabric_port && parameters.further_addresses && parameters.sequential_delivery);
    assert_eq!((parameters.node, parameters.r_a_tov_ms), (FABRIC, Some(10_000)));
    reply.header.d_id
}

/// The answer of the name server, put together from its frames.
fn query(fabric: &mut Fabric, port: PortKey, id: FcId, query: &Query) -> (CtHeader, Bytes) {
    fabric.handle_frame(port, request(id, FcId::DIRECTORY_SERVER, FrameType::CT, query.to_bytes()));
    let mut collector = Collector::new(CollectorBounds { sequences_of_one: 1, sequences: 1, bytes: 1 << 20 });
    let mut whole = None;
    for frame in through(fabric, port) {
        if frame.header.kind == FrameType::CT {
            match collector.add(&frame) {
                Collected::Whole(_, payload) => whole = Some(payload),
                Collected::Incomplete => {}
                Collected::Broken => panic!("{frame:?}"),
            }
        }
    }
    CtHeader::parse(&whole.unwrap()).unwrap()
}

/// Login, registration and subscription, as libfc does them; returns the address.
fn join(fabric: &mut Fabric, port: PortKey, name: u64) -> FcId {
    let id = attach(fabric, port, name);
    let plogi = Request::Login(login(Command::PLOGI, name));
    assert!(is_accept(&ask(fabric, port, id, FcId::DIRECTORY_SERVER, &plogi)));
    let own = login(Command::PLOGI, name);
    for registration in [
        Query::RegisterNodeName(id, own.node),
        Query::RegisterSymbolicNodeName(own.node, Bytes::from_static(b"host")),
        Query::RegisterSymbolicPortName(id, Bytes::from_static(b"host over eth0")),
        Query::RegisterTypes(id, TypeMap::of(FrameType::FCP.0)),
        Query::RegisterFeatures { id, features: 2, kind: FrameType::FCP.0 },
    ] {
        fabric.handle_frame(port, request(id, FcId::DIRECTORY_SERVER, FrameType::CT, registration.to_bytes()));
        let reply = std::iter::from_fn(|| fabric.poll_output()).find_map(|output| match output {
            Output::Attached(to, frame) if to == port && frame.header.kind == FrameType::CT => Some(frame),
            _ => None,
        });
        let (header, _) = CtHeader::parse(&reply.unwrap().payload.to_bytes()).unwrap();
        assert_eq!(header.code, CtHeader::ACCEPT, "{registration:?}");
    }
    let register = Request::Register(ChangeRegistration::Full);
    assert!(is_accept(&ask(fabric, port, id, FcId::FABRIC_CONTROLLER, &register)));
    id
}

fn events(fabric: &mut Fabric) -> Vec<Event> {
    std::iter::from_fn(|| fabric.poll_event()).collect()
}

/// Addresses that RSCNs name, by the link that they go to.
fn notifications(fabric: &mut Fabric) -> Vec<(PortKey, Vec<FcId>)> {
    let mut found = Vec::new();
    while let Some(output) = fabric.poll_output() {
        let Output::Attached(port, frame) = output else { continue };
        if let Ok(Request::StateChange(pages)) = Request::parse(&frame.payload.to_bytes()) {
            assert_eq!(frame.header.s_id, FcId::FABRIC_CONTROLLER);
            found.push((port, pages.iter().map(|page| page.id).collect()));
        }
    }
    found
}

const A: PortKey = PortKey(1);
const B: PortKey = PortKey(2);

#[test]
fn two_hosts_join_find_each_other_and_exchange_frames() {
    let mut fabric = fabric();
    let a = join(&mut fabric, A, 1);
    let b = join(&mut fabric, B, 2);
    assert_ne!(a, b);
    assert_eq!(a.domain(), 1);
    let ports = Query::PortsOfType { kind: FrameType::FCP.0, scope: QueryScope::default() };
    let (header, content) = query(&mut fabric, A, a, &ports);
    assert_eq!(header.code, CtHeader::ACCEPT);
    let found = parse_list_of_ports(&content).unwrap();
    assert_eq!(found, [(a, login(Command::PLOGI, 1).port), (b, login(Command::PLOGI, 2).port)]);
    let scsi = FrameHeader {
        r_ctl: routing::UNSOLICITED_COMMAND,
        d_id: b,
        s_id: a,
        kind: FrameType::FCP,
        ..Default::default()
    };
    let frame = Frame::class3(scsi, Bytes::from_static(b"command"));
    fabric.handle_frame(A, frame.clone());
    assert_eq!(fabric.poll_output(), Some(Output::Attached(B, frame)));
    assert_eq!(fabric.counters().forwarded, 1);
}

#[test]
fn a_change_is_told_once_to_all_others_who_asked() {
    let mut fabric = fabric();
    let a = join(&mut fabric, A, 1);
    let silent = attach(&mut fabric, PortKey(7), 7);
    let id = attach(&mut fabric, B, 2);
    assert_eq!(notifications(&mut fabric), []);
    let types = Query::RegisterTypes(id, TypeMap::of(FrameType::FCP.0)).to_bytes();
    for _ in 0..2 {
        fabric.handle_frame(B, request(id, FcId::DIRECTORY_SERVER, FrameType::CT, types.clone()));
    }
    assert_eq!(notifications(&mut fabric), [(A, vec![id])]);
    fabric.detach(B);
    fabric.detach(PortKey(7));
    assert_eq!(notifications(&mut fabric), [(A, vec![silent, id])]);
    let clear = Request::Register(ChangeRegistration::Clear);
    assert!(is_accept(&ask(&mut fabric, A, a, FcId::FABRIC_CONTROLLER, &clear)));
    attach(&mut fabric, B, 2);
    fabric.detach(B);
    assert_eq!(notifications(&mut fabric), []);
}

#[test]
fn the_name_server_answers_what_hosts_ask() {
    let mut fabric = fabric();
    let a = join(&mut fabric, A, 1);
    let own = login(Command::PLOGI, 1);
    let all = QueryScope::default();
    let name = |wwn: Wwn| wwn.0.to_be_bytes().to_vec();
    for (asked, expected) in [
        (Query::PortNameOf(a), name(own.port)),
        (Query::NodeNameOf(a), name(own.node)),
        (Query::IdOfPort(own.port), a.value().to_be_bytes().to_vec()),
    ] {
        let (header, content) = query(&mut fabric, A, a, &asked);
        assert_eq!((header.code, content.to_vec()), (CtHeader::ACCEPT, expected), "{asked:?}");
    }
    let (_, content) = query(&mut fabric, A, a, &Query::IdsOfType { kind: 8, scope: all });
    assert_eq!(parse_list_of_ids(&content).unwrap(), [a]);
    let (_, content) = query(&mut fabric, A, a, &Query::IdsOfPortType { port_type: 0x7f, scope: all });
    assert_eq!(parse_list_of_ids(&content).unwrap(), [a]);
    // Word 1 holds types 8 to 15; type 8 is its lowest nibble.
    let (_, content) = query(&mut fabric, A, a, &Query::FeaturesOf(a));
    assert_eq!((content.len(), &content[4..8]), (128, &[0, 0, 0, 2][..]));
    let elsewhere = QueryScope { domain: 9, area: 0 };
    for refused in [
        Query::PortNameOf(FcId::of(1, 9, 9)),
        Query::IdOfPort(Wwn(5)),
        Query::IdsOfType { kind: 0x28, scope: all },
        Query::PortsOfType { kind: 8, scope: elsewhere },
        Query::RegisterTypes(FcId::of(1, 9, 9), TypeMap::of(8)),
        Query::RegisterPortName(a, Wwn(5)),
        Query::AllNext(a),
        Query::Other(0x0999),
    ] {
        let (header, _) = query(&mut fabric, A, a, &refused);
        assert_eq!(header.code, CtHeader::REJECT, "{refused:?}");
    }
}

#[test]
fn a_list_longer_than_a_frame_comes_as_a_sequence() {
    let mut fabric = fabric();
    let a = join(&mut fabric, A, 1);
    for n in 0..300u64 {
        let mut entry = Entry::new(Location::Remote, Wwn(0x5000 + n), Wwn(0x6000 + n));
        entry.types = TypeMap::of(FrameType::FCP.0);
        fabric.present(entry).unwrap();
    }
    let pages: Vec<FcId> = notifications(&mut fabric).into_iter().flat_map(|(_, ids)| ids).collect();
    assert_eq!(pages.len(), 300, "each once");
    let ports = Query::PortsOfType { kind: FrameType::FCP.0, scope: QueryScope::default() };
    let (_, content) = query(&mut fabric, A, a, &ports);
    assert_eq!(parse_list_of_ports(&content).unwrap().len(), 301);
}

#[test]
fn further_addresses_are_given_and_end_with_the_link() {
    let mut fabric = fabric();
    let fdisc = |name| Request::Login(login(Command::FDISC, name));
    let early = ask(&mut fabric, A, FcId::NONE, FcId::FABRIC_PORT, &fdisc(9));
    let reject = Reject::parse(&early.payload.to_bytes()).unwrap();
    assert_eq!((reject.reason, reject.explanation), (Reject::UNABLE, Reject::LOGIN_REQUIRED));
    let first = attach(&mut fabric, A, 1);
    let second = ask(&mut fabric, A, FcId::NONE, FcId::FABRIC_PORT, &fdisc(2)).header.d_id;
    assert_ne!(first, second);
    assert_eq!(fabric.logins(), 2);
    // LOGO of one leaves the other.
    let logo = Request::Logout(Logout { id: second, port: login(Command::FDISC, 2).port });
    assert!(is_accept(&ask(&mut fabric, A, second, FcId::FABRIC_PORT, &logo)));
    assert_eq!(fabric.logins(), 1);
    ask(&mut fabric, A, FcId::NONE, FcId::FABRIC_PORT, &fdisc(2));
    fabric.detach(A);
    assert_eq!((fabric.logins(), fabric.entries().count()), (0, 0));
}

#[test]
fn a_port_keeps_its_address_over_logins_links_and_restarts() {
    let mut first = fabric();
    let ids: Vec<FcId> = (1..5).map(|name| attach(&mut first, PortKey(name as u32), name)).collect();
    // The same name at another link: refused while the first is there.
    let flogi = Request::Login(login(Command::FLOGI, 2));
    let refused = ask(&mut first, PortKey(50), FcId::NONE, FcId::FABRIC_PORT, &flogi);
    assert_eq!(Reject::parse(&refused.payload.to_bytes()).unwrap().explanation, Reject::INVALID_PORT_NAME);
    assert_eq!(first.logins(), 4);
    first.detach(PortKey(2));
    assert_eq!(attach(&mut first, PortKey(50), 2), ids[1]);
    let kept = Assignments::from_list(first.assignments().iter());
    let mut second = Fabric::new(Settings::new(FABRIC, 1).unwrap(), kept);
    assert_eq!(
        attach(&mut second, A, 9),
        first.assignments().iter().map(|(_, id)| id).max().map(|id| FcId::new(id.value() + 1)).unwrap()
    );
    for name in (1..5).rev() {
        assert_eq!(attach(&mut second, PortKey(name as u32 + 100), name), ids[name as usize - 1]);
    }
}

#[test]
fn a_host_that_missed_a_restart_is_told_to_log_in() {
    let mut fabric = fabric();
    let old = FcId::of(1, 1, 7);
    let scr = Request::Register(ChangeRegistration::Full);
    let reply = ask(&mut fabric, A, old, FcId::FABRIC_CONTROLLER, &scr);
    let reject = Reject::parse(&reply.payload.to_bytes()).unwrap();
    assert_eq!(reject.explanation, Reject::LOGIN_REQUIRED);
    assert_eq!(fabric.counters().foreign_source, 1);
}

#[test]
fn frames_that_are_not_a_ports_own_are_dropped_and_counted() {
    let mut fabric = fabric();
    let a = join(&mut fabric, A, 1);
    let b = join(&mut fabric, B, 2);
    let frame = |s_id, d_id| {
        let header =
            FrameHeader { r_ctl: routing::UNSOLICITED_COMMAND, d_id, s_id, kind: FrameType::FCP, ..Default::default() };
        Frame::class3(header, Bytes::from_static(b"x"))
    };
    fabric.handle_frame(A, frame(b, a));
    fabric.handle_frame(A, frame(a, FcId::of(1, 2, 3)));
    fabric.handle_remote(frame(a, b));
    fabric.handle_frame(A, Frame { eof: Eof::NormalInvalid, ..frame(a, b) });
    fabric.handle_frame(A, Frame { sof: Sof::Fabric, ..frame(a, b) });
    let counters = fabric.counters();
    assert_eq!((counters.foreign_source, counters.unknown_destination), (2, 1));
    assert_eq!((counters.malformed, counters.switch_traffic, counters.forwarded), (1, 1, 0));
    assert_eq!(fabric.poll_output(), None);
    fabric.handle_frame(A, Frame { sof: Sof::Initiate2, ..frame(a, b) });
    let refused = through(&mut fabric, A);
    assert_eq!(refused[0].header.r_ctl, routing::FABRIC_REJECT);
    assert_eq!(refused[0].header.parameter >> 16 & 0xff, 0x15, "class not supported by the fabric");
    assert_eq!((refused[0].header.d_id, refused[0].header.s_id), (a, b));
}

#[test]
fn a_presented_port_is_found_reached_and_withdrawn() {
    let mut fabric = fabric();
    let a = join(&mut fabric, A, 1);
    let mut entry = Entry::new(Location::Remote, Wwn(0x77), Wwn(0x78));
    entry.types = TypeMap::of(FrameType::FCP.0);
    let id = fabric.present(entry.clone()).unwrap();
    assert_eq!(fabric.present(entry.clone()), Some(id), "presenting it again changes nothing");
    assert_eq!(notifications(&mut fabric), [(A, vec![id])]);
    let out = request(a, id, FrameType::ELS, Request::Login(login(Command::PLOGI, 1)).to_bytes());
    fabric.handle_frame(A, out.clone());
    assert_eq!(fabric.poll_output(), Some(Output::Remote(out)));
    let back = request(id, a, FrameType::ELS, els::accept());
    fabric.handle_remote(back.clone());
    assert_eq!(fabric.poll_output(), Some(Output::Attached(A, back.clone())));
    fabric.withdraw(id);
    assert_eq!(notifications(&mut fabric), [(A, vec![id])]);
    fabric.handle_remote(back);
    assert_eq!(fabric.poll_output(), None);
    // An attached port's name cannot be presented, and a presented one's cannot log in.
    let own = Entry::new(Location::Remote, login(Command::FLOGI, 1).port, Wwn(1));
    assert_eq!(fabric.present(own), None);
    let mut other = Entry::new(Location::Remote, login(Command::FLOGI, 3).port, Wwn(1));
    other.types = TypeMap::of(8);
    fabric.present(other).unwrap();
    notifications(&mut fabric);
    let reply = ask(&mut fabric, B, FcId::NONE, FcId::FABRIC_PORT, &Request::Login(login(Command::FLOGI, 3)));
    assert_eq!(Reject::parse(&reply.payload.to_bytes()).unwrap().explanation, Reject::INVALID_PORT_NAME);
}

#[test]
fn ten_thousand_logins_and_logouts_leave_nothing() {
    let mut fabric = fabric();
    let watcher = join(&mut fabric, A, 1);
    for turn in 0..10_000u64 {
        let name = 2 + turn % 50;
        let id = join(&mut fabric, B, name);
        if turn % 2 == 0 {
            fabric.detach(B);
        } else {
            let logo = Request::Logout(Logout { id, port: login(Command::FLOGI, name).port });
            fabric.handle_frame(B, request(id, FcId::FABRIC_PORT, FrameType::ELS, logo.to_bytes()));
        }
        notifications(&mut fabric);
        events(&mut fabric);
    }
    assert_eq!(fabric.entries().map(|(id, _)| id).collect::<Vec<_>>(), [watcher]);
    assert_eq!((fabric.logins(), fabric.assignments().iter().count()), (1, 51));
}

#[test]
fn a_full_domain_gives_the_address_that_was_used_least_recently() {
    let names = (0..0xff00u64).map(|n| (Wwn(n + 1_000_000), FcId::new(0x01_0100 + n as u32)));
    let mut fabric = Fabric::new(Settings::new(FABRIC, 1).unwrap(), Assignments::from_list(names));
    // The oldest name comes back, and keeps its address.
    let oldest = fabric.present(Entry::new(Location::Remote, Wwn(1_000_000), Wwn(1))).unwrap();
    assert_eq!(oldest, FcId::new(0x01_0100));
    assert_eq!(attach(&mut fabric, A, 1), FcId::new(0x01_0101));
    assert_eq!(attach(&mut fabric, B, 2), FcId::new(0x01_0102));
    assert_eq!(fabric.assignments().iter().count(), 0xff00);
}

#[test]
fn a_domain_in_use_throughout_refuses_the_next_port() {
    let mut fabric = fabric();
    for n in 0..0xff00u64 {
        fabric.present(Entry::new(Location::Remote, Wwn(n + 1_000_000), Wwn(1))).unwrap();
    }
    let reply = ask(&mut fabric, A, FcId::NONE, FcId::FABRIC_PORT, &Request::Login(login(Command::FLOGI, 1)));
    let reject = Reject::parse(&reply.payload.to_bytes()).unwrap();
    assert_eq!(reject.explanation, Reject::INSUFFICIENT_RESOURCES);
    assert_eq!(fabric.present(Entry::new(Location::Remote, Wwn(5), Wwn(1))), None);
}

#[test]
fn addresses_of_another_domain_are_not_taken_over() {
    let list = [(Wwn(1), FcId::of(9, 1, 0)), (Wwn(2), FcId::DIRECTORY_SERVER), (Wwn(3), FcId::of(1, 0, 1))];
    let fabric = Fabric::new(Settings::new(FABRIC, 1).unwrap(), Assignments::from_list(list));
    assert_eq!(fabric.assignments().iter().count(), 0);
}

#[test]
fn an_abort_is_answered_and_ends_the_sequence_it_names() {
    let mut fabric = fabric();
    let a = join(&mut fabric, A, 1);
    let begun = FrameHeader {
        f_ctl: frame_control::FIRST_SEQUENCE,
        ..request(a, FcId::DIRECTORY_SERVER, FrameType::CT, Bytes::new()).header
    };
    fabric.handle_frame(A, Frame::class3(begun, Bytes::from_static(b"part")));
    // As a further frame of the sequence, and as a sequence of its own.
    for (sof, seq_cnt) in [(Sof::Normal3, 1), (Sof::Initiate3, 0)] {
        let f_ctl = frame_control::END_SEQUENCE;
        let header = FrameHeader { r_ctl: routing::ABORT_SEQUENCE, kind: FrameType::BASIC, seq_cnt, f_ctl, ..begun };
        let abort = Frame { sof, header, payload: Bytes::new().into(), eof: Eof::Terminate };
        fabric.handle_frame(A, abort);
        let answer = through(&mut fabric, A);
        assert_eq!((answer.len(), answer[0].header.r_ctl), (1, routing::BASIC_REJECT));
    }
}

#[test]
fn the_oldest_sequence_of_the_same_sender_gives_way() {
    let mut collector = Collector::new(CollectorBounds { sequences_of_one: 2, sequences: 3, bytes: 100 });
    let frame = |s_id: u8, seq_id, sof, f_ctl| {
        let header = FrameHeader {
            s_id: FcId::of(1, 1, s_id),
            seq_id,
            f_ctl,
            seq_cnt: u16::from(f_ctl != 0),
            ..FrameHeader::default()
        };
        Frame { sof, header, payload: Bytes::from_static(b"ab").into(), eof: Eof::Normal }
    };
    for seq_id in 0..9 {
        collector.add(&frame(9, seq_id, Sof::Initiate3, 0));
    }
    collector.add(&frame(1, 0, Sof::Initiate3, 0));
    let end = |s_id, seq_id| frame(s_id, seq_id, Sof::Normal3, frame_control::END_SEQUENCE);
    assert_eq!(collector.add(&end(9, 6)), Collected::Broken);
    assert!(matches!(collector.add(&end(1, 0)), Collected::Whole(_, bytes) if &bytes[..] == b"abab"));
    assert!(matches!(collector.add(&end(9, 8)), Collected::Whole(..)));
}

#[test]
fn a_list_is_cut_to_the_words_that_the_requester_takes() {
    let mut fabric = fabric();
    let a = join(&mut fabric, A, 1);
    for n in 0..10u64 {
        let mut entry = Entry::new(Location::Remote, Wwn(0x5000 + n), Wwn(0x6000 + n));
        entry.types = TypeMap::of(FrameType::FCP.0);
        fabric.present(entry).unwrap();
    }
    let asked = Query::PortsOfType { kind: FrameType::FCP.0, scope: QueryScope::default() };
    let (header, content) = CtHeader::parse(&asked.to_bytes()).unwrap();
    let limited = CtHeader { words: 14, ..header }.with(&content);
    fabric.handle_frame(A, request(a, FcId::DIRECTORY_SERVER, FrameType::CT, limited));
    let reply = through(&mut fabric, A).into_iter().find(|frame| frame.header.kind == FrameType::CT).unwrap();
    let (header, content) = CtHeader::parse(&reply.payload.to_bytes()).unwrap();
    assert_eq!((parse_list_of_ports(&content).unwrap().len(), header.words), (3, 8 * 4));
}

proptest! {
    #[test]
    fn a_sequence_is_put_together_from_its_frames(
        bytes in prop::collection::vec(any::<u8>(), 0..9000), most in 4usize..2112, count in any::<u16>(),
    ) {
        let f_ctl = frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
        let header = FrameHeader { f_ctl, seq_cnt: count, ..FrameHeader::default() };
        let payload = Bytes::from(bytes);
        let frames = frames_of(header, &payload, most);
        let mut collector = Collector::new(CollectorBounds { sequences_of_one: 4, sequences: 4, bytes: 10_000 });
        let (last, before) = frames.split_last().unwrap();
        for frame in before {
            prop_assert_eq!(collector.add(frame), Collected::Incomplete);
            prop_assert!(frame.payload.len() % 4 == 0 && frame.payload.len() <= most);
        }
        prop_assert_eq!(collector.add(last), Collected::Whole(last.header, payload));
        prop_assert_eq!(collector.open(), 0);
        if frames.len() > 2 {
            collector.add(&frames[0]);
            prop_assert_eq!(collector.add(&frames[2]), Collected::Broken);
            prop_assert_eq!(collector.open(), 0);
        }
    }

    /// A host that sends anything: the fabric goes on, keeps nothing beyond its bounds, and serves the other host.
    #[test]
    fn a_hostile_host_harms_nobody_else(
        frames in prop::collection::vec(
            (any::<[u8; 24]>(), prop::collection::vec(any::<u8>(), 0..300), 0u8..5, any::<bool>(), 0u8..7), 1..60),
    ) {
        let mut fabric = fabric();
        let good = join(&mut fabric, B, 2);
        let id = attach(&mut fabric, A, 1);
        for (header, payload, to, first, command) in frames {
            let mut header = FrameHeader::parse(&header).unwrap();
            header.s_id = if to == 4 { FcId::NONE } else { id };
            header.d_id =
                [FcId::FABRIC_PORT, FcId::DIRECTORY_SERVER, FcId::FABRIC_CONTROLLER, FcId::BROADCAST, FcId::FABRIC_PORT]
                    [usize::from(to)];
            let mut payload = payload;
            if let Some(place) = payload.first_mut() {
                *place = [3, 4, 5, 0x51, 0x61, 0x62, 1][usize::from(command)];
                (header.kind, header.r_ctl) = if command == 6 {
                    (FrameType::CT, routing::UNSOLICITED_CONTROL)
                } else {
                    (FrameType::ELS, routing::ELS_REQUEST)
                };
            }
            let sof = if first { Sof::Initiate3 } else { Sof::Normal3 };
            fabric.handle_frame(A, Frame { sof, header, payload: payload.into(), eof: Eof::Normal });
            while fabric.poll_output().is_some() {}
        }
        prop_assert!(fabric.logins() <= 257);
        let (header, _) = query(&mut fabric, B, good, &Query::PortNameOf(good));
        prop_assert_eq!(header.code, CtHeader::ACCEPT);
    }
}
