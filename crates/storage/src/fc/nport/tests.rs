//! N_Ports on a fabric, in one process.

use super::{Event, NPort, Role, Settings, Upward};
use crate::fc::fabric::{Assignments, Fabric, Output, PortKey, Settings as FabricSettings};
use bytes::Bytes;
use proptest::prelude::*;
use wire::fc::ct::CtHeader;
use wire::fc::els::{Command, Reject, Request};
use wire::fc::name_server::Query;
use wire::fc::{routing, Eof, FcId, Frame, FrameHeader, FrameType, Sof, Wwn};

const NS_PER_MS: u64 = 1_000_000;
const INITIATOR: Role = Role { initiator: true, target: false };
const TARGET: Role = Role { initiator: false, target: true };

fn settings(number: u64, role: Role) -> Settings {
    Settings::new(Wwn(0x2000_0000_0000_0000 | number), Wwn(0x1000_0000_0000_0000 | number), role)
}

/// A fabric with ports, each at a link of its own; frames take no time.
struct San {
    fabric: Fabric,
    ports: Vec<NPort>,
    now_ns: u64,
    /// Frames that ports sent, by the port's number.
    sent: Vec<(usize, Frame)>,
    /// Numbers of frames to lose, counted over all.
    lose: Vec<usize>,
    count: usize,
}

impl San {
    fn new(ports: Vec<NPort>) -> San {
        let fabric = Fabric::new(FabricSettings::new(Wwn(0x1000_0000_0000_00fa), 1).unwrap(), Assignments::default());
        San { fabric, ports, now_ns: 0, sent: Vec::new(), lose: Vec::new(), count: 0 }
    }

    fn is_lost(&mut self) -> bool {
        self.count += 1;
        self.lose.contains(&(self.count - 1))
    }

    /// Carries frames until none is left.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for at in 0..self.ports.len() {
                while let Some(frame) = self.ports[at].poll_frame() {
                    moved = true;
                    self.sent.push((at, frame.clone()));
                    if !self.is_lost() {
                        self.fabric.handle_frame(PortKey(at as u32), frame);
                    }
                }
            }
            while let Some(output) = self.fabric.poll_output() {
                moved = true;
                let Output::Attached(PortKey(at), frame) = output else { panic!("{output:?}") };
                if !self.is_lost() {
                    self.ports[at as usize].handle_frame(frame, self.now_ns);
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn run_for(&mut self, ms: u64) {
        let end_ns = self.now_ns + ms * NS_PER_MS;
        loop {
            self.settle();
            let next = self.ports.iter().filter_map(NPort::poll_timeout).min();
            let Some(next) = next.filter(|next| *next <= end_ns) else { break };
            self.now_ns = self.now_ns.max(next);
            let now_ns = self.now_ns;
            self.ports.iter_mut().for_each(|port| port.handle_timeout(now_ns));
        }
        self.now_ns = end_ns;
    }

    fn start(&mut self) {
        let now_ns = self.now_ns;
        self.ports.iter_mut().for_each(|port| port.log_in(now_ns));
        self.settle();
    }

    fn events(&mut self, at: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.ports[at].poll_event()).collect()
    }

    /// True when the initiator, port 1, has the target, port 0.
    fn is_up(&self) -> bool {
        self.ports[1].peers().any(|peer| peer.id == self.ports[0].id() && peer.target)
            && self.ports[0].peers().any(|peer| peer.id == self.ports[1].id() && peer.initiator)
    }
}

/// A target, port 0, and an initiator, port 1.
fn pair() -> San {
    San::new(vec![NPort::new(settings(1, TARGET)), NPort::new(settings(2, INITIATOR))])
}

/// Name of what a frame asks for.
fn asked(frame: &Frame) -> String {
    let payload = frame.payload.to_bytes();
    match (frame.header.kind, frame.header.r_ctl) {
        (FrameType::ELS, routing::ELS_REQUEST) => Command::of(&payload).unwrap().name().unwrap().to_string(),
        (FrameType::CT, _) => {
            let (ct, content) = CtHeader::parse(&payload).unwrap();
            let query = format!("{:?}", Query::parse(&ct, &content).unwrap());
            query.split(['(', ' ']).next().unwrap().to_string()
        }
        _ => "answer".to_string(),
    }
}

#[test]
fn a_port_asks_in_the_order_in_which_linux_does() {
    let mut san = pair();
    san.ports[0].log_in(0);
    san.settle();
    assert!(san.ports[0].is_online());
    san.sent.clear();
    san.ports[1].log_in(0);
    san.settle();
    let order: Vec<String> = san.sent.iter().filter(|(at, _)| *at == 1).map(|(_, frame)| asked(frame)).collect();
    // GPN_FT is PortsOfType; RSCNs are answered before it.
    let order: Vec<&str> = order.iter().map(String::as_str).filter(|name| *name != "answer").collect();
    let expected = [
        "FLOGI",
        "PLOGI",
        "RegisterNodeName",
        "RegisterSymbolicNodeName",
        "RegisterSymbolicPortName",
        "RegisterTypes",
        "RegisterFeatures",
        "SCR",
        "PortsOfType",
        "PLOGI",
        "PRLI",
        "RTV",
    ];
    assert_eq!(order, expected);
    assert!(san.is_up());
    let id = san.ports[1].id();
    assert_eq!(san.events(1)[0], Event::Online { id });
}

#[test]
fn a_lost_frame_of_the_login_is_made_up_for() {
    let mut whole = pair();
    whole.start();
    assert!(whole.is_up());
    for lost in 0..whole.count {
        let mut san = pair();
        san.lose = vec![lost];
        san.start();
        san.run_for(20_000);
        assert!(san.is_up(), "frame {lost}");
        assert_eq!(san.ports[1].kept(), (0, 1), "frame {lost}");
    }
}

#[test]
fn a_fabric_that_does_not_answer_is_asked_again_for_ever() {
    let mut san = pair();
    san.lose = (0..30).collect();
    san.start();
    san.run_for(60_000);
    assert!(san.is_up());
    assert!(san.ports[1].counters().retries > 0);
}

#[test]
fn ports_come_and_go_by_state_changes() {
    let mut san = pair();
    san.start();
    san.events(1);
    let (id, port) = (san.ports[0].id(), san.ports[0].settings().port);
    // The link of the target is cut: the name server does not know it any more.
    san.ports[0].handle_link_down("cut");
    san.fabric.detach(PortKey(0));
    san.run_for(1);
    let events = san.events(1);
    assert!(
        matches!(events[..], [Event::PeerDown { id: gone, port: name, .. }] if gone == id && name == port),
        "{events:?}"
    );
    san.ports[0].log_in(san.now_ns);
    san.run_for(1);
    assert!(san.is_up());
    // A state change of a port that is still there changes nothing.
    let before = san.events(1).len();
    let change = rscn(san.ports[1].id(), id);
    san.ports[1].handle_frame(change, san.now_ns);
    san.run_for(1);
    assert_eq!((before, san.events(1)), (1, vec![]));
    // A target that logs out is logged in with again.
    let (initiator, now_ns) = (san.ports[1].id(), san.now_ns);
    san.ports[0].end_login_with(initiator, now_ns);
    san.run_for(1);
    assert!(!san.is_up());
    san.run_for(10_000);
    assert!(san.is_up());
}

fn rscn(to: FcId, changed: FcId) -> Frame {
    use wire::fc::els::{AffectedPorts, Scope};
    let pages = vec![AffectedPorts { event: 0, scope: Scope::Port, id: changed }];
    let header = FrameHeader {
        r_ctl: routing::ELS_REQUEST,
        d_id: to,
        s_id: FcId::FABRIC_CONTROLLER,
        kind: FrameType::ELS,
        f_ctl: wire::fc::frame_control::END_SEQUENCE,
        ..FrameHeader::default()
    };
    Frame::class3(header, Request::StateChange(pages).to_bytes())
}

#[test]
fn a_fabric_that_began_anew_is_logged_in_to_again() {
    let mut san = pair();
    san.start();
    san.fabric = Fabric::new(FabricSettings::new(Wwn(0x1000_0000_0000_00fa), 1).unwrap(), Assignments::default());
    // The first request to a server of the fabric finds out.
    let now_ns = san.now_ns;
    for port in &mut san.ports {
        port.handle_link_down("cleared");
        port.log_in(now_ns);
    }
    san.run_for(10_000);
    assert!(san.is_up());
}

#[test]
fn a_further_address_of_a_link_is_asked_for_by_fdisc() {
    let mut san = pair();
    san.start();
    let mut further = NPort::new(Settings { further: true, ..settings(3, TARGET) });
    further.log_in(0);
    let request = further.poll_frame().unwrap();
    assert_eq!(asked(&request), "FDISC");
    san.fabric.handle_frame(PortKey(0), request);
    let Some(Output::Attached(PortKey(0), reply)) = san.fabric.poll_output() else { panic!() };
    further.handle_frame(reply, 0);
    assert_eq!(further.id().domain(), 1);
    assert_ne!(further.id(), san.ports[0].id());
}

#[test]
fn ping_and_the_list_of_ports_are_answered() {
    let mut san = pair();
    san.start();
    san.events(1);
    let target = san.ports[0].id();
    let number = san.ports[1].ping(target, b"elephan", san.now_ns);
    san.ports[1].ask_ports(FrameType::FCP, san.now_ns);
    san.settle();
    let events = san.events(1);
    assert!(events.contains(&Event::Pong { id: target, number, rtt_ns: 0 }));
    let Some(Event::Ports(ports)) = events.iter().find(|event| matches!(event, Event::Ports(_))) else {
        panic!("{events:?}")
    };
    assert!(ports.contains(&(target, san.ports[0].settings().port)) && ports.len() == 2);
    let number = san.ports[1].ping_address(target, san.now_ns);
    san.settle();
    assert_eq!(san.events(1), [Event::Pong { id: target, number, rtt_ns: 0 }]);
    let name = san.ports[0].settings().port;
    let found = san.ports[1].ask_directory(&Query::IdOfPort(name), san.now_ns);
    let unknown = san.ports[1].ask_directory(&Query::IdOfPort(Wwn(9)), san.now_ns);
    san.settle();
    let content = Some(Bytes::copy_from_slice(&[&[0][..], &target.to_bytes()].concat()));
    let answer = |number, content| Event::DirectoryAnswer { number, content };
    assert_eq!(san.events(1), [answer(found, content), answer(unknown, None)]);
    let number = san.ports[1].ping(FcId::of(1, 9, 9), b"elephan", san.now_ns);
    san.run_for(5_000);
    assert_eq!(san.events(1), [Event::NoPong { id: FcId::of(1, 9, 9), number, is_rejected: false }]);
}

#[test]
fn ten_thousand_logins_leave_nothing() {
    let mut san = pair();
    for _ in 0..10_000 {
        san.start();
        let now_ns = san.now_ns;
        san.ports.iter_mut().for_each(|port| port.log_out(now_ns));
        san.settle();
        san.events(0);
        san.events(1);
        san.sent.clear();
        // The cables are pulled as well: the fabric answers the last LOGO of both.
        san.now_ns += NS_PER_MS;
    }
    assert_eq!((san.ports[0].kept(), san.ports[1].kept()), ((0, 0), (0, 0)));
    assert_eq!((san.fabric.logins(), san.fabric.entries().count()), (0, 0));
    assert_eq!((san.ports[0].poll_timeout(), san.ports[1].poll_timeout()), (None, None));
    assert!(san.ports[0].poll_upward().is_none());
}

#[test]
fn frames_of_other_classes_are_refused_once() {
    let mut san = pair();
    san.start();
    let port = &mut san.ports[0];
    let header = FrameHeader {
        d_id: port.id(),
        s_id: FcId::of(1, 2, 3),
        kind: FrameType::FCP,
        r_ctl: routing::UNSOLICITED_COMMAND,
        ..FrameHeader::default()
    };
    let frame = Frame { sof: Sof::Initiate2, ..Frame::class3(header, Bytes::new()) };
    port.handle_frame(frame.clone(), 0);
    let reject = port.poll_frame().unwrap();
    assert_eq!((reject.header.r_ctl, reject.header.d_id), (routing::PORT_REJECT, FcId::of(1, 2, 3)));
    port.handle_frame(Frame { header: FrameHeader { r_ctl: routing::PORT_REJECT, ..header }, ..frame.clone() }, 0);
    port.handle_frame(Frame { sof: Sof::Fabric, ..frame }, 0);
    assert_eq!((port.poll_frame(), port.counters().other_class), (None, 3));
}

#[test]
fn content_of_a_port_that_is_not_logged_in_is_answered_by_one_logout() {
    let mut san = pair();
    san.start();
    let port = &mut san.ports[0];
    let header = FrameHeader {
        d_id: port.id(),
        s_id: FcId::of(1, 2, 3),
        kind: FrameType::FCP,
        r_ctl: routing::UNSOLICITED_COMMAND,
        ..FrameHeader::default()
    };
    for _ in 0..100 {
        port.handle_frame(Frame::class3(header, Bytes::from_static(&[0; 32])), 0);
    }
    let frames: Vec<Frame> = std::iter::from_fn(|| port.poll_frame()).collect();
    assert_eq!(frames.iter().map(asked).collect::<Vec<_>>(), ["LOGO"]);
    assert_eq!((port.poll_upward(), port.counters().no_login), (None, 100));
}

#[test]
fn a_process_login_without_a_login_is_rejected() {
    let mut san = pair();
    san.start();
    let port = &mut san.ports[0];
    let login = Request::ProcessLogin(port.process(0));
    let header = FrameHeader {
        d_id: port.id(),
        s_id: FcId::of(1, 2, 3),
        kind: FrameType::ELS,
        r_ctl: routing::ELS_REQUEST,
        f_ctl: wire::fc::frame_control::END_SEQUENCE,
        ..FrameHeader::default()
    };
    port.handle_frame(Frame::class3(header, login.to_bytes()), 0);
    let reply = port.poll_frame().unwrap().payload.to_bytes();
    let reject = Reject { reason: Reject::UNABLE, explanation: Reject::LOGIN_REQUIRED };
    assert_eq!(Reject::parse(&reply), Ok(reject));
}

#[test]
fn ports_without_a_process_are_up_after_the_login() {
    let mut san = San::new(vec![NPort::new(settings(1, Role::default())), NPort::new(settings(2, Role::default()))]);
    san.start();
    let receiver = san.ports[0].id();
    san.ports[1].log_in_to(receiver, 0);
    san.settle();
    for at in 0..2 {
        let events = san.events(at);
        assert!(events.iter().any(|event| matches!(event, Event::PeerUp(_))), "{at}: {events:?}");
    }
}

/// A header whose fields are often those that mean something.
fn any_header(own: FcId, peer: FcId) -> impl Strategy<Value = FrameHeader> {
    let address = move || {
        prop_oneof![
            4 => Just(own),
            4 => Just(peer),
            2 => Just(FcId::FABRIC_CONTROLLER),
            2 => Just(FcId::DIRECTORY_SERVER),
            1 => Just(FcId::FABRIC_PORT),
            1 => Just(FcId::NONE),
            1 => any::<u32>().prop_map(FcId::new),
        ]
    };
    let r_ctl = prop_oneof![Just(0x22u8), Just(0x23), Just(0x02), Just(0x03), Just(0x06), Just(0x81), any::<u8>()];
    let kind = prop_oneof![Just(0u8), Just(1), Just(8), Just(0x20), any::<u8>()];
    let ox_id = prop_oneof![0xf000u16..0xf010, any::<u16>()];
    (address(), address(), r_ctl, kind, any::<u32>(), ox_id, any::<u16>(), 0u16..3).prop_map(
        |(d_id, s_id, r_ctl, kind, f_ctl, ox_id, rx_id, seq_cnt)| FrameHeader {
            r_ctl,
            d_id,
            s_id,
            kind: FrameType(kind),
            f_ctl: f_ctl & 0xff_ffff,
            seq_cnt,
            ox_id,
            rx_id,
            ..FrameHeader::default()
        },
    )
}

fn any_payload() -> impl Strategy<Value = Vec<u8>> {
    let command = prop_oneof![Just(1u8), Just(2), Just(3), Just(5), Just(0x20), Just(0x61), any::<u8>()];
    (command, proptest::collection::vec(any::<u8>(), 0..160)).prop_map(|(command, mut bytes)| {
        if let Some(first) = bytes.first_mut() {
            *first = command;
        }
        bytes
    })
}

proptest! {
    /// Frames of anybody: no panic, and no more is kept than the bounds say.
    #[test]
    fn hostile_frames_neither_panic_nor_grow_the_port(
        frames in (Just(FcId::of(1, 1, 1)), Just(FcId::of(1, 1, 0))).prop_flat_map(|(own, peer)| {
            proptest::collection::vec((any_header(own, peer), any_payload(), 0u64..3_000), 1..60)
        }),
    ) {
        let mut port = NPort::new(Settings { peers_max: 4, ..settings(2, INITIATOR) });
        let mut san = San::new(vec![NPort::new(settings(1, TARGET))]);
        san.start();
        port.log_in(0);
        // Half of a login at least, so that answers find requests.
        for _ in 0..4 {
            while let Some(frame) = port.poll_frame() {
                san.fabric.handle_frame(PortKey(1), frame);
            }
            while let Some(output) = san.fabric.poll_output() {
                if let Output::Attached(PortKey(1), frame) = output {
                    port.handle_frame(frame, 0);
                }
            }
        }
        let mut now_ns = 0;
        for (header, payload, ms) in frames {
            now_ns += ms * NS_PER_MS;
            port.handle_frame(Frame { eof: Eof::Terminate, ..Frame::class3(header, payload) }, now_ns);
            port.handle_timeout(now_ns);
            while port.poll_frame().is_some() {}
            while let Some(upward) = port.poll_upward() {
                if let Upward::Frame(frame) = upward {
                    prop_assert!(port.peers().any(|peer| peer.id == frame.header.s_id));
                }
            }
            while port.poll_event().is_some() {}
            let (requests, peers) = port.kept();
            prop_assert!(peers <= 4 && requests < 300, "{} requests, {} peers", requests, peers);
        }
    }
}
