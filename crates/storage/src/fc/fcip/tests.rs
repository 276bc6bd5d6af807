//! Two ends of a tunnel over connections that deliver at any time, or die.

use super::{CloseReason, ConnectionKey, Event, Settings, Spread, Tunnel, UnsentReason};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use wire::fc::{frame_control, routing, Eof, FcId, Frame, FrameHeader, FrameType, Sof, Wwn};
use wire::fcip::{Message, SpecialFrame};

const EAST: Wwn = Wwn(0x1000_0000_0000_00ea);
const WEST: Wwn = Wwn(0x1000_0000_0000_00fe);
const MS: u64 = 1_000_000;
/// Time since 1900 at the tests' time 0: some day of 2026.
const CLOCK_NS: u64 = 3_990_000_000 * 1_000_000_000;
const ONE: ConnectionKey = ConnectionKey(1);
const TWO: ConnectionKey = ConnectionKey(2);

fn end(own: Wwn, peer: Wwn) -> Tunnel {
    with(Settings::new(own, peer))
}

fn with(settings: Settings) -> Tunnel {
    let mut tunnel = Tunnel::new(settings);
    tunnel.set_clock(Some(CLOCK_NS));
    tunnel
}

/// Two ends and the bytes between them, by connection: first east to west, then west to east.
struct Pair {
    ends: [Tunnel; 2],
    wires: BTreeMap<ConnectionKey, [BytesMut; 2]>,
    now_ns: u64,
    events: [Vec<Event>; 2],
}

impl Pair {
    fn of(east: Settings, west: Settings) -> Pair {
        Pair { ends: [with(east), with(west)], wires: BTreeMap::new(), now_ns: 0, events: [Vec::new(), Vec::new()] }
    }

    fn usual() -> Pair {
        Pair::of(Settings::new(EAST, WEST), Settings::new(WEST, EAST))
    }

    /// East makes a connection.
    fn connect(&mut self, connection: ConnectionKey) {
        self.wires.insert(connection, [BytesMut::new(), BytesMut::new()]);
        self.ends[0].handle_connected(connection, 1_000 + u64::from(connection.0) + self.now_ns, self.now_ns);
        self.ends[1].handle_accepted(connection, self.now_ns);
    }

    /// Sends what an end has for a connection.
    fn send(&mut self, from: usize, connection: ConnectionKey) {
        let Some(wires) = self.wires.get_mut(&connection) else { return };
        self.ends[from].poll_bytes(connection, &mut wires[from], usize::MAX, self.now_ns);
    }

    /// Delivers some of the bytes that one end sent through a connection.
    fn deliver(&mut self, from: usize, connection: ConnectionKey, at_most: usize) {
        let Some(wires) = self.wires.get_mut(&connection) else { return };
        let length = wires[from].len().min(at_most);
        let bytes = wires[from].split_to(length);
        self.ends[1 - from].handle_bytes(connection, &bytes, self.now_ns);
    }

    /// Carries everything to and fro until nothing moves.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            let keys: Vec<ConnectionKey> = self.wires.keys().copied().collect();
            for connection in keys {
                for from in 0..2 {
                    self.send(from, connection);
                    moved |= !self.wires[&connection][from].is_empty();
                    self.deliver(from, connection, usize::MAX);
                }
            }
            self.note_events();
            if !moved {
                return;
            }
        }
    }

    fn note_events(&mut self) {
        for side in 0..2 {
            while let Some(event) = self.ends[side].poll_event() {
                self.events[side].push(event);
            }
        }
    }

    fn closed(&self, side: usize) -> Vec<CloseReason> {
        let reason = |event: &Event| match event {
            Event::Close { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        self.events[side].iter().filter_map(reason).collect()
    }

    fn at(&mut self, ms: u64) {
        self.now_ns = ms * MS;
        for side in 0..2 {
            self.ends[side].handle_timeout(self.now_ns);
        }
    }
}

/// A frame of an exchange of a host in the east with a disk in the west.
fn frame(ox_id: u16, number: u32, bytes: usize) -> Frame {
    let header = FrameHeader {
        r_ctl: routing::UNSOLICITED_DATA,
        d_id: FcId::of(2, 1, 1),
        s_id: FcId::of(1, 1, 1),
        kind: FrameType::FCP,
        seq_cnt: number as u16,
        ox_id,
        parameter: number,
        ..FrameHeader::default()
    };
    Frame::class3(header, Bytes::from(vec![number as u8; bytes]))
}

fn class_f() -> Frame {
    let header = FrameHeader {
        r_ctl: routing::UNSOLICITED_CONTROL,
        d_id: FcId::FABRIC_CONTROLLER,
        s_id: FcId::FABRIC_CONTROLLER,
        kind: FrameType::ILS,
        f_ctl: frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE,
        ox_id: 5,
        ..FrameHeader::default()
    };
    Frame { sof: Sof::Fabric, header, payload: Bytes::from_static(&[0; 8]).into(), eof: Eof::Terminate }
}

fn received(tunnel: &mut Tunnel) -> Vec<Frame> {
    std::iter::from_fn(|| tunnel.poll_frame()).collect()
}

#[test]
fn a_special_frame_that_comes_back_opens_a_connection_for_both() {
    let mut pair = Pair::usual();
    pair.connect(ONE);
    assert_eq!(pair.ends[0].handle_frame(frame(1, 0, 64), 0).unwrap_err().reason, UnsentReason::NoConnection);
    pair.settle();
    assert_eq!(pair.events[0], [Event::Opened { connection: ONE, entity: None }, Event::Up]);
    assert_eq!(pair.events[1], [Event::Opened { connection: ONE, entity: Some(1) }, Event::Up]);
    for sent in [frame(1, 0, 64), frame(1, 1, 0), class_f()] {
        pair.ends[0].handle_frame(sent.clone(), 0).unwrap();
        pair.settle();
        assert_eq!(received(&mut pair.ends[1]), [sent]);
    }
    pair.ends[1].handle_frame(class_f(), 0).unwrap();
    pair.settle();
    assert_eq!(received(&mut pair.ends[0]), [class_f()]);
}

#[test]
fn a_peer_that_asks_for_another_switch_is_cut_off_or_told_the_name() {
    for tells_name in [false, true] {
        let mut pair = Pair::of(Settings::new(EAST, Wwn(7)), Settings { tells_name, ..Settings::new(WEST, EAST) });
        pair.connect(ONE);
        pair.settle();
        assert_eq!(pair.closed(1), [CloseReason::WrongDestination(Wwn(7))]);
        let reasons: Vec<CloseReason> = if tells_name { vec![CloseReason::OtherName(WEST)] } else { vec![] };
        assert_eq!(pair.closed(0), reasons);
        assert_eq!(pair.ends[0].open_connections().count() + pair.ends[1].open_connections().count(), 0);
    }
}

#[test]
fn a_switch_that_is_not_the_peer_is_refused() {
    let mut pair = Pair::of(Settings::new(Wwn(9), WEST), Settings { tells_name: true, ..Settings::new(WEST, EAST) });
    pair.connect(ONE);
    pair.settle();
    assert_eq!(pair.closed(1), [CloseReason::WrongSource(Wwn(9))]);
    assert!(pair.wires[&ONE][1].is_empty());
}

fn special(nonce: u64) -> SpecialFrame {
    SpecialFrame {
        changed: false,
        source: EAST,
        entity: 1,
        nonce,
        usage_flags: 0,
        usage_code: 0,
        destination: WEST,
        keep_alive_ms: 1000,
    }
}

/// Reason for which the west closes a connection through which the messages come.
fn refused(messages: &[Message]) -> Option<CloseReason> {
    let mut west = end(WEST, EAST);
    west.handle_accepted(ONE, 0);
    for message in messages {
        west.handle_message(ONE, message.clone(), 0);
    }
    std::iter::from_fn(|| west.poll_event()).find_map(|event| match event {
        Event::Close { reason, .. } => Some(reason),
        _ => None,
    })
}

#[test]
fn the_special_frame_comes_once_and_first() {
    let first = Message::Special(special(1), Default::default());
    let data = Message::Frame(frame(1, 0, 8), Default::default());
    let changed = Message::Special(SpecialFrame { changed: true, ..special(1) }, Default::default());
    assert_eq!(refused(std::slice::from_ref(&first)), None);
    assert_eq!(refused(&[first.clone(), first]), Some(CloseReason::OutOfPlace));
    assert_eq!(refused(&[data]), Some(CloseReason::OutOfPlace));
    assert_eq!(refused(&[changed]), Some(CloseReason::OutOfPlace));
}

#[test]
fn a_nonce_that_comes_again_is_refused() {
    let mut west = end(WEST, EAST);
    for (connection, nonce) in [(ONE, 5), (TWO, 5), (ConnectionKey(3), 6)] {
        west.handle_accepted(connection, 0);
        west.handle_message(connection, Message::Special(special(nonce), Default::default()), 0);
    }
    assert_eq!(west.open_connections().collect::<Vec<_>>(), [ONE, ConnectionKey(3)]);
}

#[test]
fn an_echo_that_differs_closes_the_connection() {
    type Change = fn(&mut SpecialFrame);
    let changes: [(Change, CloseReason); 5] = [
        (|echo| echo.destination = Wwn(3), CloseReason::OtherName(Wwn(3))),
        (|echo| echo.destination = Wwn(0), CloseReason::NotEchoed),
        (|echo| echo.keep_alive_ms += 1, CloseReason::NotEchoed),
        (|echo| echo.nonce += 1, CloseReason::NotEchoed),
        (|echo| echo.changed = true, CloseReason::NotEchoed),
    ];
    for (change, expected) in changes {
        let mut east = end(EAST, WEST);
        east.handle_connected(ONE, 77, 0);
        let Some(Message::Special(mut echo, time)) = east.poll_message(ONE, 0) else { panic!("no special frame") };
        change(&mut echo);
        east.handle_message(ONE, Message::Special(echo, time), 0);
        assert_eq!(east.poll_event(), Some(Event::Close { connection: ONE, reason: expected }));
    }
}

#[test]
fn a_connection_without_a_special_frame_is_closed_after_90_s() {
    let mut pair = Pair::usual();
    pair.connect(ONE);
    assert_eq!(pair.ends[1].poll_timeout(), Some(90_000 * MS));
    pair.at(89_999);
    pair.note_events();
    assert!(pair.closed(0).is_empty() && pair.closed(1).is_empty());
    pair.at(90_000);
    pair.note_events();
    assert_eq!([pair.closed(0), pair.closed(1)], [[CloseReason::NoSpecialFrame], [CloseReason::NoSpecialFrame]]);
}

#[test]
fn keep_alives_hold_a_connection_and_their_absence_ends_it() {
    let mut pair = Pair::usual();
    pair.connect(ONE);
    pair.settle();
    for ms in (0..60_000).step_by(500) {
        pair.at(ms);
        pair.settle();
    }
    assert!(pair.closed(0).is_empty() && pair.closed(1).is_empty());
    let count = pair.ends[0].counters().keep_alives + pair.ends[1].counters().keep_alives;
    assert!((60..=120).contains(&count), "{count}");
    assert!(received(&mut pair.ends[1]).is_empty() && received(&mut pair.ends[0]).is_empty());
    // The network swallows everything from now on.
    for ms in (60_000..63_000).step_by(500) {
        pair.at(ms);
    }
    pair.note_events();
    assert_eq!([pair.closed(0), pair.closed(1)], [[CloseReason::Silent], [CloseReason::Silent]]);
    assert_eq!(pair.events[0].last(), Some(&Event::Down));
}

#[test]
fn a_frame_that_was_too_long_on_its_way_is_thrown_away() {
    for (sent, limit_ms) in [(frame(1, 0, 64), 5_000), (class_f(), 1_000)] {
        for (late_ms, arrives) in [(limit_ms, true), (limit_ms + 1, false)] {
            let quiet = |own, peer| Settings { keep_alive_ms: 0, ..Settings::new(own, peer) };
            let mut pair = Pair::of(quiet(EAST, WEST), quiet(WEST, EAST));
            pair.connect(ONE);
            pair.settle();
            pair.ends[0].handle_frame(sent.clone(), 0).unwrap();
            pair.send(0, ONE);
            pair.now_ns = late_ms * MS;
            pair.settle();
            assert_eq!(received(&mut pair.ends[1]).len(), usize::from(arrives));
            assert_eq!(pair.ends[1].counters().stale, u64::from(!arrives));
            // A frame that waits for so long in this end does not leave it.
            pair.ends[0].handle_frame(sent.clone(), pair.now_ns).unwrap();
            pair.now_ns += late_ms * MS;
            pair.settle();
            assert_eq!(pair.ends[0].counters().stale_here, u64::from(!arrives));
        }
    }
}

#[test]
fn without_a_clock_no_age_is_tested() {
    let mut pair = Pair::usual();
    pair.ends[1].set_clock(None);
    pair.connect(ONE);
    pair.settle();
    pair.ends[0].handle_frame(frame(1, 0, 64), 0).unwrap();
    pair.send(0, ONE);
    pair.now_ns = 60_000 * MS;
    pair.deliver(0, ONE, usize::MAX);
    assert_eq!(received(&mut pair.ends[1]).len(), 1);
}

#[test]
fn an_exchange_stays_on_its_connection_while_others_take_the_free_one() {
    let mut pair = Pair::usual();
    for connection in [ONE, TWO] {
        pair.connect(connection);
        pair.settle();
    }
    for number in 0..10 {
        pair.ends[0].handle_frame(frame(1, number, 2048), 0).unwrap();
    }
    let held = [pair.ends[0].waiting_bytes(ONE), pair.ends[0].waiting_bytes(TWO)];
    assert_eq!(held.iter().filter(|bytes| **bytes == 0).count(), 1, "{held:?}");
    pair.ends[0].handle_frame(frame(2, 0, 64), 0).unwrap();
    assert!(pair.ends[0].waiting_bytes(ONE) > 0 && pair.ends[0].waiting_bytes(TWO) > 0);
}

#[test]
fn exchanges_of_a_pair_of_ports_share_a_connection_where_that_is_wanted() {
    let spread = |own, peer| Settings { spread: Spread::Pair, ..Settings::new(own, peer) };
    let mut pair = Pair::of(spread(EAST, WEST), spread(WEST, EAST));
    for connection in (1..=4).map(ConnectionKey) {
        pair.connect(connection);
        pair.settle();
    }
    for ox_id in 0..100 {
        pair.ends[0].handle_frame(frame(ox_id, 0, 64), 0).unwrap();
    }
    assert_eq!((1..=4).filter(|number| pair.ends[0].waiting_bytes(ConnectionKey(*number)) > 0).count(), 1);
}

#[test]
fn connections_for_a_class_carry_that_class() {
    let usage = vec![SpecialFrame::CLASS_F, SpecialFrame::CLASS_3];
    let mut pair = Pair::of(Settings { usage, ..Settings::new(EAST, WEST) }, Settings::new(WEST, EAST));
    for connection in [ONE, TWO] {
        pair.connect(connection);
        pair.settle();
    }
    pair.ends[0].handle_frame(class_f(), 0).unwrap();
    assert!(pair.ends[0].waiting_bytes(ONE) > 0 && pair.ends[0].waiting_bytes(TWO) == 0);
    pair.settle();
    pair.ends[0].handle_frame(frame(1, 0, 64), 0).unwrap();
    assert!(pair.ends[0].waiting_bytes(ONE) == 0 && pair.ends[0].waiting_bytes(TWO) > 0);
    // The other end heard of the classes in the special frames.
    pair.ends[1].handle_frame(class_f(), 0).unwrap();
    assert!(pair.ends[1].waiting_bytes(ONE) > 0);
    // Class F goes on through the connection that is left.
    pair.ends[0].handle_closed(ONE, 0);
    pair.ends[0].handle_frame(class_f(), 0).unwrap();
    assert!(pair.ends[0].waiting_bytes(TWO) > 0);
}

#[test]
fn a_full_connection_gives_frames_back_and_says_when_there_is_room() {
    let small = |own, peer| Settings { held_bytes_max: 10_000, ..Settings::new(own, peer) };
    let mut pair = Pair::of(small(EAST, WEST), small(WEST, EAST));
    pair.connect(ONE);
    pair.settle();
    let taken = (0..100).take_while(|number| pair.ends[0].handle_frame(frame(1, *number, 2048), 0).is_ok()).count();
    assert_eq!(taken, 4);
    let refused = pair.ends[0].handle_frame(frame(1, 4, 2048), 0).unwrap_err();
    assert_eq!((refused.reason, refused.frame), (UnsentReason::NoRoom, frame(1, 4, 2048)));
    assert!(pair.ends[0].waiting_bytes(ONE) <= 10_000);
    pair.settle();
    assert_eq!(pair.events[0].last(), Some(&Event::Room));
    assert_eq!(pair.events[0].iter().filter(|event| **event == Event::Room).count(), 1);
    pair.ends[0].handle_frame(frame(1, 4, 2048), 0).unwrap();
}

#[test]
fn a_receiver_that_is_not_emptied_wants_no_input() {
    let small = |own, peer| Settings { received_bytes_max: 5_000, ..Settings::new(own, peer) };
    let mut pair = Pair::of(small(EAST, WEST), small(WEST, EAST));
    pair.connect(ONE);
    pair.settle();
    for number in 0..3 {
        assert!(pair.ends[1].wants_input());
        pair.ends[0].handle_frame(frame(1, number, 2048), 0).unwrap();
        pair.settle();
    }
    assert!(!pair.ends[1].wants_input());
    received(&mut pair.ends[1]);
    assert!(pair.ends[1].wants_input());
}

#[test]
fn a_lost_connection_breaks_what_was_on_its_way_and_moves_what_was_not() {
    let mut pair = Pair::usual();
    pair.connect(ONE);
    pair.settle();
    pair.ends[0].handle_frame(frame(1, 0, 64), 0).unwrap();
    pair.send(0, ONE);
    pair.ends[0].handle_frame(frame(1, 1, 64), 0).unwrap();
    pair.ends[0].handle_frame(frame(2, 0, 64), 0).unwrap();
    pair.connect(TWO);
    // The second connection opens, while nothing moves on the first.
    for from in [0, 1] {
        pair.send(from, TWO);
        pair.deliver(from, TWO, usize::MAX);
    }
    pair.wires.remove(&ONE);
    pair.ends[0].handle_closed(ONE, 0);
    pair.ends[1].handle_closed(ONE, 0);
    assert_eq!((pair.ends[0].counters().lost, pair.ends[0].counters().moved), (1, 1));
    let broken = |pair: &mut Pair| pair.ends[0].handle_frame(frame(1, 2, 64), pair.now_ns).unwrap_err().reason;
    assert_eq!(broken(&mut pair), UnsentReason::Broken);
    // Its abort goes, and others go on.
    let mut abort = frame(1, 0, 0);
    abort.header.r_ctl = routing::ABORT_SEQUENCE;
    pair.ends[0].handle_frame(abort.clone(), 0).unwrap();
    pair.ends[0].handle_frame(frame(2, 1, 64), 0).unwrap();
    pair.settle();
    assert_eq!(received(&mut pair.ends[1]), [frame(2, 0, 64), abort, frame(2, 1, 64)]);
    // Five seconds later nothing of it can be on its way.
    pair.now_ns = 4_999 * MS;
    assert_eq!(broken(&mut pair), UnsentReason::Broken);
    pair.now_ns = 5_000 * MS;
    pair.ends[0].handle_frame(frame(1, 2, 64), pair.now_ns).unwrap();
    assert!(pair.closed(0).is_empty() && !pair.events[0].contains(&Event::Down));
}

#[test]
fn exchanges_that_end_leave_nothing_behind() {
    let mut pair = Pair::usual();
    pair.connect(ONE);
    pair.settle();
    for round in 0..100_000_u32 {
        let ox_id = (round % 0xffff) as u16;
        pair.ends[0].handle_frame(frame(ox_id, 0, 32), pair.now_ns).unwrap();
        let mut reply = frame(ox_id, 0, 24);
        (reply.header.s_id, reply.header.d_id) = (reply.header.d_id, reply.header.s_id);
        reply.header.f_ctl =
            frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE;
        pair.ends[1].handle_frame(reply, pair.now_ns).unwrap();
        pair.settle();
        received(&mut pair.ends[0]);
        received(&mut pair.ends[1]);
        pair.now_ns += 1000;
    }
    for side in &pair.ends {
        assert!(side.flows_kept().0 <= 1 && side.flows_kept().1 <= 8, "{:?}", side.flows_kept());
    }
}

#[test]
fn a_host_that_ends_no_exchange_is_slowed_down_and_not_forgotten() {
    let mut pair = Pair::of(Settings { flows_max: 100, ..Settings::new(EAST, WEST) }, Settings::new(WEST, EAST));
    pair.connect(ONE);
    pair.settle();
    let taken = (0..1_000).filter(|ox_id| pair.ends[0].handle_frame(frame(*ox_id, 0, 32), 0).is_ok()).count();
    assert_eq!(taken, 100);
    pair.settle();
    pair.now_ns = 5_000 * MS;
    let taken =
        (1_000..1_100).filter(|ox_id| pair.ends[0].handle_frame(frame(*ox_id, 0, 32), pair.now_ns).is_ok()).count();
    assert_eq!(taken, 100);
    assert!(pair.ends[0].flows_kept().1 <= 300);
}

#[test]
fn a_flood_of_keep_alives_gets_one_answer_at_a_time() {
    let mut west = end(WEST, EAST);
    west.handle_accepted(ONE, 0);
    west.handle_message(ONE, Message::Special(special(1), Default::default()), 0);
    let request = super::keep_alive::frame(super::keep_alive::KeepAlive::Request);
    for _ in 0..1000 {
        west.handle_message(ONE, Message::Frame(request.clone(), Default::default()), 0);
    }
    assert!(west.waiting_bytes(ONE) < 200);
}

/// A step of the world around two ends.
#[derive(Clone, Debug)]
enum Step {
    Connect,
    /// One end hands a frame in: side, exchange, bytes.
    Frame(usize, u16, usize),
    Send(usize, usize),
    Deliver(usize, usize, usize),
    /// One side learns that a connection is gone; the other reads on what is in its buffers.
    Lose(usize, usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Connect),
        12 => (0..2_usize, 0..6_u16, 0..512_usize).prop_map(|(a, b, c)| Step::Frame(a, b, c)),
        12 => (0..2_usize, 0..8_usize).prop_map(|(side, connection)| Step::Send(side, connection)),
        16 => (0..2_usize, 0..8_usize, 0..4000_usize).prop_map(|(a, b, c)| Step::Deliver(a, b, c)),
        1 => (0..2_usize, 0..8_usize).prop_map(|(side, connection)| Step::Lose(side, connection)),
        3 => (0..3_000_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..400)
}

/// Everything that went in at one side, and how much of it came out.
#[derive(Default)]
struct SentFrames {
    next: BTreeMap<u16, u32>,
    sent: BTreeMap<(u16, u32), (u64, Frame)>,
    last: BTreeMap<u16, u32>,
}

/// Compares what came with what was sent, and what is kept with its bounds.
fn check(pair: &mut Pair, sent_by_side: &mut [SentFrames; 2]) -> Result<(), TestCaseError> {
    for side in 0..2 {
        let from = &mut sent_by_side[1 - side];
        for came in received(&mut pair.ends[side]) {
            let (exchange, number) = (came.header.ox_id, came.header.parameter);
            let (entered_ns, sent) = from.sent.remove(&(exchange, number)).expect("sent, and not come before");
            prop_assert_eq!(&came, &sent);
            prop_assert!(pair.now_ns - entered_ns <= 5_000 * MS);
            let last = from.last.insert(exchange, number);
            prop_assert!(last.is_none_or(|last| last < number), "{exchange}: {number} after {last:?}");
        }
        for connection in pair.wires.keys() {
            prop_assert!(pair.ends[side].waiting_bytes(*connection) <= 8_200);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Bytes of one side stay in its order within a connection and in no order between connections; connections end
    /// for one side while the other reads on.
    #[test]
    fn no_frame_comes_twice_changed_out_of_order_or_late(steps in steps(), pair_spread: bool) {
        let spread = if pair_spread { Spread::Pair } else { Spread::Exchange };
        let settings = |own, peer| Settings { spread, held_bytes_max: 8_000, ..Settings::new(own, peer) };
        let mut pair = Pair::of(settings(EAST, WEST), settings(WEST, EAST));
        let mut next = 0;
        let mut sent_by_side = [SentFrames::default(), SentFrames::default()];
        let named = |pair: &Pair, number: usize| pair.wires.keys().copied().nth(number);
        for step in steps {
            match step {
                Step::Connect if pair.wires.len() < 8 => {
                    next += 1;
                    pair.connect(ConnectionKey(next));
                }
                Step::Connect => {}
                Step::Frame(side, exchange, bytes) => {
                    let of_side = &mut sent_by_side[side];
                    let number = of_side.next.entry(exchange).or_default();
                    let mut sent = frame(exchange, *number, bytes);
                    if side == 1 {
                        (sent.header.s_id, sent.header.d_id) = (sent.header.d_id, sent.header.s_id);
                        sent.header.f_ctl = frame_control::EXCHANGE_RESPONDER;
                    }
                    *number += 1;
                    sent.header.f_ctl |= sent.payload.len().wrapping_neg() as u32 % 4;
                    of_side.sent.insert((exchange, *number - 1), (pair.now_ns, sent.clone()));
                    let _ = pair.ends[side].handle_frame(sent, pair.now_ns);
                }
                Step::Send(side, connection) => if let Some(connection) = named(&pair, connection) {
                    pair.send(side, connection);
                },
                Step::Deliver(side, connection, bytes) => if let Some(connection) = named(&pair, connection) {
                    pair.deliver(side, connection, bytes);
                },
                Step::Lose(side, connection) => if let Some(connection) = named(&pair, connection) {
                    pair.ends[side].handle_closed(connection, pair.now_ns);
                },
                Step::Wait(ms) => {
                    let ms = pair.now_ns / MS + ms;
                    pair.at(ms);
                }
            }
            check(&mut pair, &mut sent_by_side)?;
        }
        // Held frames go through the connections that are left.
        pair.settle();
        check(&mut pair, &mut sent_by_side)?;
    }

    #[test]
    fn any_bytes_leave_an_end_bounded(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..40),
        good: bool,
    ) {
        let mut west = end(WEST, EAST);
        west.handle_accepted(ONE, 0);
        if good {
            let mut bytes = BytesMut::new();
            Message::Special(special(1), Default::default()).encode(&mut bytes);
            Message::Frame(frame(1, 0, 64), Default::default()).encode(&mut bytes);
            west.handle_bytes(ONE, &bytes, 0);
        }
        for piece in pieces {
            west.handle_bytes(ONE, &piece, 0);
            prop_assert!(west.waiting_bytes(ONE) <= 200);
            prop_assert!(received(&mut west).len() <= 1);
        }
    }
}

#[test]
fn frames_of_the_simulator_without_bytes_cross_as_messages() {
    let (mut east, mut west) = (end(EAST, WEST), end(WEST, EAST));
    east.handle_connected(ONE, 1, 0);
    west.handle_accepted(ONE, 0);
    let mut on_the_way: VecDeque<(bool, Message)> = VecDeque::new();
    let sent = Frame { payload: wire::iscsi::Payload::Zeros(2048), ..frame(1, 0, 0) };
    for round in 0..4 {
        if round == 2 {
            east.handle_frame(sent.clone(), 0).unwrap();
        }
        while let Some(message) = east.poll_message(ONE, 0) {
            on_the_way.push_back((true, message));
        }
        while let Some(message) = west.poll_message(ONE, 0) {
            on_the_way.push_back((false, message));
        }
        while let Some((to_west, message)) = on_the_way.pop_front() {
            if to_west { &mut west } else { &mut east }.handle_message(ONE, message, 0);
        }
    }
    assert_eq!(received(&mut west), [sent]);
}
