//! Peers that break the protocol: each is refused with a line that says why, and costs no more than a bound.

use super::net::{data, els_answer, els_request, login, name, remote_port, settings, Net, EPOCH_NS, S};
use bytes::{Bytes, BytesMut};
use storage::fc::fabric::PortKey;
use storage::fc::ifcp::{ConnectionKey, PeerKey, Settings};
use wire::encapsulation::TimeStamp;
use wire::fc::els::{self, Command, Request};
use wire::fc::{FcId, Frame, Sof, Wwn};
use wire::ifcp::{AddressMode, Bind, BindStatus, DeviceFrame, Message, SessionMessage, VERSION};

/// The peer that the test plays.
const PEER: PeerKey = PeerKey(9);
/// Address of its host 2 at its own gateway.
const REMOTE: FcId = FcId::new(0x09_0001);

/// A site with host 1, and a peer with host 2 that the test plays.
struct Raw {
    net: Net,
    local: FcId,
    connection: ConnectionKey,
}

impl Raw {
    fn new(settings: Settings) -> Raw {
        let mut net = Net::new(vec![settings]);
        let local = net.attach(0, 1);
        net.down.insert((0, 9));
        let now_ns = net.now_ns;
        net.sites[0].gateway.add_peer(PEER, now_ns);
        net.sites[0].gateway.set_ports(PEER, vec![remote_port(2, REMOTE)], now_ns).unwrap();
        net.run();
        let connection = net.sites[0].gateway.handle_accepted(PEER, now_ns).unwrap();
        net.run();
        net.lines_of(0);
        Raw { net, local, connection }
    }

    fn usual(mode: AddressMode) -> Raw {
        Raw::new(settings(mode))
    }

    /// A peer with a session for hosts 2 and 1.
    fn bound(mode: AddressMode) -> Raw {
        let mut raw = Raw::usual(mode);
        let answers = raw.tell(SessionMessage::Bind(bind(mode)));
        assert!(matches!(
            answers[0],
            Message::Session(SessionMessage::BindResponse { status: BindStatus::Success, .. }, _)
        ));
        assert_eq!(raw.net.open(0).len(), 1);
        raw.net.lines_of(0);
        raw
    }

    /// Lets a message come, and returns those that go back.
    fn say(&mut self, message: &Message) -> Vec<Message> {
        let mut bytes = BytesMut::new();
        message.encode(&mut bytes);
        let now_ns = self.net.now_ns;
        self.net.sites[0].gateway.handle_bytes(self.connection, &mut bytes, now_ns);
        self.net.run();
        let mut answers = Vec::new();
        let Some(mut bytes) = self.net.sites[0].raw.remove(&self.connection) else { return answers };
        while let Some(message) = Message::decode(&mut bytes).unwrap() {
            answers.push(message.unwrap());
        }
        answers
    }

    fn tell(&mut self, message: SessionMessage) -> Vec<Message> {
        self.say(&Message::Session(message, TimeStamp::NONE))
    }

    /// Lets a frame come as it should be, but for what `change` makes of it. Returns the line that refuses it.
    fn refused(&mut self, frame: Frame, change: impl FnOnce(&mut DeviceFrame)) -> String {
        let before = self.net.sites[0].got.len();
        let mut device = self.device(frame);
        change(&mut device);
        self.say(&Message::Device(device));
        assert_eq!(self.net.sites[0].got.len(), before, "the host got the frame");
        let lines = self.net.lines_of(0);
        assert!(!lines.is_empty() && lines.iter().all(|line| !line.contains('\n')), "{lines:?}");
        lines[0].clone()
    }

    fn device(&self, frame: Frame) -> DeviceFrame {
        let time = TimeStamp::from_ns(EPOCH_NS + self.net.now_ns);
        DeviceFrame { frame, mode: AddressMode::Translation, special: false, accepted: None, time }
    }

    fn handle(&mut self) -> u16 {
        let answers = self.tell(SessionMessage::Bind(bind(AddressMode::Translation)));
        let Message::Session(SessionMessage::BindResponse { handle, .. }, _) = answers[0] else {
            panic!("{answers:?}")
        };
        handle
    }
}

fn bind(mode: AddressMode) -> Bind {
    Bind { liveness_s: 0, mode, version: VERSION, user: 77, source: name(2), destination: name(1) }
}

fn frame(local: FcId) -> Frame {
    data(REMOTE, local, 4, 0, b"data")
}

#[test]
fn a_wrong_cbind_is_answered_and_told() {
    let usual = bind(AddressMode::Translation);
    let unknown = Wwn(0x5000_0000_0000_0001);
    let cases = [
        (
            Bind { version: 2, ..usual },
            BindStatus::IncorrectVersion,
            "CBIND was refused: the versions of iFCP differ".into(),
        ),
        (
            Bind { mode: AddressMode::Transparent, ..usual },
            BindStatus::IncompatibleMode,
            "CBIND was refused: the address modes differ".into(),
        ),
        (
            Bind { mode: AddressMode::Other(7), ..usual },
            BindStatus::IncompatibleMode,
            "CBIND was refused: the address modes differ".into(),
        ),
        (
            Bind { source: unknown, ..usual },
            BindStatus::NoSuchDevice,
            format!("CBIND comes from {unknown}, which is no port of this peer"),
        ),
        (
            Bind { destination: unknown, ..usual },
            BindStatus::NoSuchDevice,
            format!("CBIND goes to {unknown}, which is not attached"),
        ),
    ];
    for (bind, expected, line) in cases {
        let mut raw = Raw::usual(AddressMode::Translation);
        let answers = raw.tell(SessionMessage::Bind(bind));
        let [Message::Session(SessionMessage::BindResponse { bind: answer, status, .. }, _)] = answers[..] else {
            panic!("{answers:?}")
        };
        assert_eq!(
            (status, answer.user, answer.source, answer.destination),
            (expected, 77, bind.source, bind.destination)
        );
        assert_eq!(raw.net.lines_of(0), [format!("peer 9: refused: {line}")]);
        assert_eq!(raw.net.sites[0].gateway.sessions().count(), 0);
        // The connection is as good as before.
        assert!(raw.handle() > 0);
    }
}

#[test]
fn a_wrong_frame_is_dropped_and_told() {
    let mut raw = Raw::usual(AddressMode::Translation);
    let good = frame(raw.local);
    assert_eq!(raw.refused(good.clone(), |_| {}), "peer 9: refused: the connection has no session");

    let mut raw = Raw::bound(AddressMode::Translation);
    let line = raw.refused(good.clone(), |device| device.time = TimeStamp::NONE);
    assert_eq!(line, "peer 9: refused: the frame has no time stamp");
    for off_ns in [6 * S, 1 << 40] {
        let early = TimeStamp::from_ns(EPOCH_NS + raw.net.now_ns + off_ns);
        let line = raw.refused(good.clone(), |device| device.time = early);
        assert_eq!(
            line,
            format!("peer 9: refused: the frame's time stamp differs by {} ms, more than IP_TOV", off_ns / 1_000_000)
        );
    }
    let line = raw.refused(Frame { sof: Sof::Initiate2, ..good.clone() }, |_| {});
    assert_eq!(line, "peer 9: refused: the frame is not device traffic of class 3");

    let plogi = |host| els_request(REMOTE, raw.local, 5, Request::Login(login(Command::PLOGI, host)).to_bytes());
    let (own, foreign) = (plogi(2), plogi(8));
    let line = raw.refused(own.clone(), |_| {});
    assert_eq!(line, "peer 9: refused: PLOGI lacks the SPC flag");
    let line = raw.refused(foreign, |device| device.special = true);
    assert_eq!(line, format!("peer 9: refused: the message has the port name {}, its session {}", name(8), name(2)));
    let accept = els_answer(&els_request(raw.local, REMOTE, 1, Bytes::new()), els::accept());
    let line = raw.refused(accept, |device| (device.special, device.accepted) = (true, Some(Command::PLOGI)));
    assert_eq!(line, "peer 9: refused: an accept of PLOGI answers no such request");
    let short = els_request(REMOTE, raw.local, 5, Bytes::from_static(&[0x13, 0, 0, 0]));
    let line = raw.refused(short, |device| device.special = true);
    assert!(line.starts_with("peer 9: refused: link service with addresses"), "{line}");

    // The session has gone on.
    let mut device = raw.device(own);
    device.special = true;
    raw.say(&Message::Device(device));
    assert_eq!(raw.net.take(0, PortKey(1)).header.d_id, raw.local);
}

#[test]
fn a_transparent_frame_with_another_address_is_dropped() {
    let mut raw = Raw::bound(AddressMode::Transparent);
    let local = raw.local;
    let wrong = data(FcId::new(0x09_0002), local, 4, 0, b"data");
    let line = raw.refused(wrong, |device| device.mode = AddressMode::Transparent);
    assert_eq!(
        line,
        format!("peer 9: refused: the frame has the address {}, its session {REMOTE}", FcId::new(0x09_0002))
    );
    let mut device = raw.device(frame(local));
    device.mode = AddressMode::Transparent;
    raw.say(&Message::Device(device));
    assert_eq!(raw.net.take(0, PortKey(1)), frame(local));
}

#[test]
fn a_frame_of_the_other_mode_ends_everything_with_the_peer() {
    let mut raw = Raw::bound(AddressMode::Translation);
    let now_ns = raw.net.now_ns;
    raw.net.sites[0].gateway.handle_accepted(PEER, now_ns).unwrap();
    let good = frame(raw.local);
    let line = raw.refused(good, |device| device.mode = AddressMode::Transparent);
    assert_eq!(line, "peer 9: refused: the frame is of the other address mode");
    assert!(raw.net.open(0).is_empty());
    assert_eq!(raw.net.sites[0].gateway.connections(), 0, "all connections were reset");
}

#[test]
fn a_wrong_liveness_test_ends_the_session() {
    for (interval_s, count, source) in [(4, 0, name(2)), (3, 1, name(2)), (3, 0, name(1))] {
        let mut raw = Raw::bound(AddressMode::Translation);
        let answers = raw.tell(SessionMessage::LivenessTest { interval_s, count, source, destination: name(1) });
        assert!(matches!(answers[..], [Message::Session(SessionMessage::Unbind { .. }, _)]), "{answers:?}");
        let ended = "ended: a liveness test had wrong content";
        assert!(raw.net.lines_of(0).iter().any(|line| line.ends_with(ended)));
    }
    let mut raw = Raw::bound(AddressMode::Translation);
    for count in 0..10 {
        let test = SessionMessage::LivenessTest { interval_s: 3, count, source: name(2), destination: name(1) };
        assert_eq!(raw.tell(test), []);
        raw.net.wait(3 * S);
    }
    assert_eq!(raw.net.open(0).len(), 1);
    raw.net.wait(6 * S);
    assert!(raw.net.open(0).is_empty(), "silence ends the session");
}

#[test]
fn unbind_is_for_the_connections_own_handle() {
    let mut raw = Raw::usual(AddressMode::Translation);
    let handle = raw.handle();
    let wrong = handle ^ 0x5555;
    let answers = raw.tell(SessionMessage::Unbind { user: 5, handle: wrong });
    assert_eq!(
        answers,
        [Message::Session(SessionMessage::UnbindResponse { user: 5, handle: wrong, status: 18 }, TimeStamp::NONE)]
    );
    assert_eq!(raw.net.open(0).len(), 1);
    let answers = raw.tell(SessionMessage::Unbind { user: 6, handle });
    assert_eq!(
        answers,
        [Message::Session(SessionMessage::UnbindResponse { user: 6, handle, status: 0 }, TimeStamp::NONE)]
    );
    assert!(raw.net.open(0).is_empty());
    assert!(raw.handle() != 0, "the connection serves the next session");
}

#[test]
fn a_peer_that_takes_no_answer_loses_the_connection() {
    let mut raw = Raw::bound(AddressMode::Translation);
    raw.net.sites[0].stuck = true;
    for _ in 0..1000 {
        raw.tell(SessionMessage::Unbind { user: 5, handle: 0xeeee });
    }
    assert_eq!(raw.net.sites[0].gateway.connections(), 0);
    let lines = raw.net.lines_of(0);
    assert!(
        lines.iter().any(|line| line.ends_with("ended: the peer broke the protocol of session messages")),
        "{lines:?}"
    );
}

#[test]
fn one_peer_has_no_more_connections_than_the_bound() {
    let mut raw = Raw::new(Settings { connections_per_peer: 10, ..settings(AddressMode::Translation) });
    let now_ns = raw.net.now_ns;
    let taken = (0..100).filter(|_| raw.net.sites[0].gateway.handle_accepted(PEER, now_ns).is_some()).count();
    assert_eq!(taken, 9);
    assert!(raw.net.sites[0].gateway.handle_accepted(PeerKey(3), now_ns).is_none(), "a stranger");
}

/// A message of each kind, some of which fit the session.
fn any_message(raw: &mut Raw) -> Message {
    let names = [name(1), name(2), name(3), Wwn(0)];
    let random = &mut raw.net.random;
    let source = names[random.below(4)];
    let destination = names[random.below(4)];
    let handle = random.below(4) as u16;
    let user = random.below(80) as u32;
    let mode = [AddressMode::Translation, AddressMode::Transparent, AddressMode::Other(9)]
        [random.below(20).saturating_sub(17)];
    let bind = Bind { liveness_s: random.below(4) as u16, mode, version: VERSION, user, source, destination };
    let status = [BindStatus::Success, BindStatus::SessionExists, BindStatus::Unspecified][random.below(3)];
    let session = match random.below(12) {
        0 => SessionMessage::Bind(bind),
        1 => SessionMessage::Bind(Bind { source: name(2), destination: name(1), ..bind }),
        2 => SessionMessage::BindResponse { bind, status, handle },
        3 => SessionMessage::Unbind { user, handle },
        4 => SessionMessage::UnbindResponse { user, handle, status: random.below(20) as u16 },
        5 => SessionMessage::LivenessTest { interval_s: 3, count: random.below(3) as u32, source, destination },
        _ => {
            let mut payload: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
            let codes = [2, 3, 5, 6, 0x52, 0x54, 0x55, 0x13, 8, 9, 0x0f, 0x12, 0x24, 0x7b, 0x20];
            if payload.len() > 8 {
                payload[0] = codes[random.below(codes.len())];
                // Codes of RFC 4172, table 7, where addresses may be.
                for at in [5, 9, 13, 25] {
                    if payload.len() > at + 3 && random.below(2) == 0 {
                        payload[at..at + 3].copy_from_slice(&[0, 0, random.below(5) as u8]);
                    }
                }
            }
            let asked = els_request(REMOTE, raw.local, random.below(6) as u16, Bytes::from(payload.clone()));
            let mut frame = if random.below(2) == 0 { els_answer(&asked, Bytes::from(payload)) } else { asked };
            if random.below(4) == 0 {
                frame.header.f_ctl = random.next() as u32 & 0xff_ffff;
                frame.sof = [Sof::Initiate3, Sof::Normal3][random.below(2)];
                frame.header.seq_cnt = random.below(3) as u16;
            }
            let special = random.below(2) == 0;
            let accepted = (random.below(2) == 0).then(|| Command(codes[random.below(codes.len())]));
            let time = TimeStamp::from_ns(EPOCH_NS + raw.net.now_ns);
            let mode = if random.below(60) == 0 { AddressMode::Transparent } else { AddressMode::Translation };
            return Message::Device(DeviceFrame { frame, mode, special, accepted, time });
        }
    };
    Message::Session(session, TimeStamp::NONE)
}

#[test]
fn messages_by_chance_neither_panic_nor_grow() {
    let mut sessions = 0;
    for seed in 0..40 {
        let mut raw = Raw::usual(AddressMode::Translation);
        raw.net.random.0 = seed;
        for _ in 0..500 {
            let message = any_message(&mut raw);
            let mut bytes = BytesMut::new();
            message.encode(&mut bytes);
            if raw.net.random.below(8) == 0 {
                let at = raw.net.random.below(bytes.len());
                bytes[at] ^= 1 << raw.net.random.below(8);
            }
            let now_ns = raw.net.now_ns;
            raw.net.sites[0].gateway.handle_bytes(raw.connection, &mut bytes, now_ns);
            raw.net.run();
            // The host answers what it gets, and asks for things itself.
            for (port, frame) in std::mem::take(&mut raw.net.sites[0].got) {
                assert_eq!((port, frame.header.d_id), (PortKey(1), raw.local));
                assert_eq!(frame.header.s_id, raw.net.alias(0, 2), "a frame is from no other port");
                if raw.net.random.below(2) == 0 {
                    raw.net.send_frame(0, port, els_answer(&frame, els::accept()));
                }
            }
            if raw.net.random.below(10) == 0 {
                let ns = raw.net.random.next() % S;
                raw.net.wait(ns);
            }
            sessions += raw.net.open(0).len();
            let gateway = &mut raw.net.sites[0].gateway;
            assert!(gateway.connections() <= 8 && gateway.sessions().count() <= 1);
            let now_ns = raw.net.now_ns;
            if !gateway.sessions().any(|session| session.open) && raw.net.random.below(4) == 0 {
                if let Some(connection) = gateway.handle_accepted(PEER, now_ns) {
                    gateway.handle_closed(raw.connection, now_ns);
                    raw.connection = connection;
                }
                raw.net.run();
            }
            raw.net.sites[0].raw.clear();
            for line in raw.net.lines_of(0) {
                assert!(!line.contains('\n') && line.len() < 300, "{line}");
            }
        }
    }
    assert!(sessions > 1000, "{sessions}: the messages hardly ever reach a session");
}

#[test]
fn bytes_by_chance_end_the_connection_alone() {
    let mut raw = Raw::usual(AddressMode::Translation);
    for seed in 0..2000 {
        raw.net.random.0 = seed;
        let now_ns = raw.net.now_ns;
        let connection = raw.net.sites[0].gateway.handle_accepted(PEER, now_ns).unwrap();
        let length = raw.net.random.below(200);
        let mut bytes: BytesMut = (0..length).map(|_| raw.net.random.next() as u8).collect();
        raw.net.sites[0].gateway.handle_bytes(connection, &mut bytes, now_ns);
        raw.net.sites[0].gateway.handle_closed(connection, now_ns);
        raw.net.run();
    }
    assert_eq!(raw.net.sites[0].gateway.connections(), 1);
    assert!(raw.handle() > 0);
    let broken = "peer 9: refused: ";
    assert!(raw.net.lines_of(0).iter().any(|line| line.starts_with(broken)));
}
