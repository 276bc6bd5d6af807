//! Packets that are packed, moved and unpacked, in order and out of it.

use super::*;
use link::random::Random;
use sim::{Routed as _, Train as _};

/// One packet of `source`.
fn one(pool: &mut Pool, source: u32, seq: u64) -> Packet {
    pool.pack(&Segment { seq, ..Segment::default() }, 0, source, 1)
}

#[test]
fn a_segment_survives_packing() {
    let mut pool = Pool::new(78);
    let mut sent = Segment {
        seq: 1 << 40,
        ack: 3,
        len: 1448,
        window: 1 << 30,
        ts_val: 7,
        ts_ecr: 8,
        flags: flags::ACK | flags::TIMESTAMPS,
        sack_count: 2,
        ..Segment::default()
    };
    sent.sacks[0] = SackBlock { start: 10, end: 20 };
    sent.sacks[1] = SackBlock { start: 30, end: 40 };
    let mut packet = pool.pack(&sent, 5, 77, 1);
    assert_eq!((packet.bytes(), packet.hop(), packet.source()), (sent.packet_bytes(), 5, 77));
    packet.advance();
    assert_eq!(packet.hop(), 6);
    let mut got = Segment::default();
    pool.unpack(packet, &mut got);
    assert_eq!((got.seq, got.ack, got.len, got.window), (sent.seq, sent.ack, sent.len, sent.window));
    assert_eq!((got.flags, got.ts_val, got.ts_ecr), (sent.flags, sent.ts_val, sent.ts_ecr));
    assert_eq!(got.sacks[..2], sent.sacks[..2]);
    assert_eq!((pool.flights[77].trains.len(), pool.sacks.free), (0, Slot::of(1)), "both are free again");
}

#[test]
fn segments_of_a_train_follow_one_another() {
    let mut pool = Pool::new(1);
    let first = pool.pack(&Segment { seq: 100, len: 10, ..Segment::default() }, 0, 0, 3);
    let packets = [first, first.following(), first.following().following()];
    let mut got = Segment::default();
    let seqs = packets.map(|packet| {
        pool.unpack(packet, &mut got);
        (got.seq, got.len)
    });
    assert_eq!(seqs, [(100, 10), (110, 10), (120, 10)]);
}

#[test]
fn a_train_longer_than_a_part_is_one() {
    let mut pool = Pool::new(1);
    let count = 200_000;
    let mut packet = pool.pack(&Segment { seq: 7, len: 10, ..Segment::default() }, 0, 0, count);
    let mut got = Segment::default();
    for number in 0..u64::from(count) {
        pool.unpack(packet, &mut got);
        assert_eq!(got.seq, 7 + 10 * number);
        packet = packet.following();
    }
    assert!(pool.flights[0].trains.is_empty());
}

#[test]
fn what_was_refused_leaves_no_gap() {
    let mut pool = Pool::new(1);
    let mut got = Segment::default();
    let mut arrive = |pool: &mut Pool, packet| {
        pool.unpack(packet, &mut got);
        got.seq
    };
    let mut waiting = VecDeque::new();
    for seq in 0..1_000u64 {
        let packet = one(&mut pool, 0, seq);
        if seq % 3 == 0 {
            pool.discard(packet);
        } else {
            waiting.push_back((seq, packet));
        }
        if waiting.len() > 40 {
            let (sent, packet) = waiting.pop_front().expect("40 are there");
            assert_eq!(arrive(&mut pool, packet), sent);
        }
    }
    for (sent, packet) in waiting {
        assert_eq!(arrive(&mut pool, packet), sent);
    }
    assert!(pool.flights[0].trains.is_empty(), "all are gone");
}

#[test]
fn a_packet_that_stands_still_keeps_no_others_header() {
    let mut pool = Pool::new(2);
    // Its access link is down.
    let standing = one(&mut pool, 0, 7);
    let mut got = Segment::default();
    for seq in 0..100_000 {
        let packet = one(&mut pool, 1, seq);
        pool.unpack(packet, &mut got);
    }
    let room: usize = pool.flights.iter().map(|flight| flight.trains.capacity()).sum();
    assert!(room <= 16, "room for {room} headers, for one packet");
    pool.unpack(standing, &mut got);
    assert_eq!(got.seq, 7);
}

#[test]
fn a_syn_keeps_its_options() {
    let mut pool = Pool::new(1);
    let sent = Segment { flags: flags::SYN, mss: 8960, wscale: Some(WindowScale::new(14)), ..Segment::default() };
    let mut got = Segment::default();
    let packet = pool.pack(&sent, 0, 0, 1);
    pool.unpack(packet, &mut got);
    assert_eq!((got.mss, got.wscale), (8960, Some(WindowScale::new(14))));
}

#[test]
fn congestion_experienced_is_kept() {
    let mut pool = Pool::new(1);
    let mut packet = pool.pack(&Segment { flags: flags::ECT, ..Segment::default() }, 0, 0, 1);
    assert!(packet.is_ect());
    packet.mark_ce();
    let mut got = Segment::default();
    pool.unpack(packet, &mut got);
    assert!(got.has(flags::CE | flags::ECT));
}

#[test]
fn memory_follows_what_is_in_flight_whatever_the_order_of_arrival() {
    let mut pool = Pool::new(1);
    // Beyond the wrap of the numbers.
    pool.flights[0].next = u32::MAX - 10_015;
    let mut flight = VecDeque::new();
    for seq in 0..100_000u64 {
        flight.push_back((seq, one(&mut pool, 0, seq)));
        if flight.len() > 500 {
            // One in three overtakes.
            let at = if seq % 3 == 0 { 20 } else { 0 };
            let (sent, packet) = flight.remove(at).expect("500 are there");
            let mut got = Segment::default();
            pool.unpack(packet, &mut got);
            assert_eq!(got.seq, sent);
        }
    }
    let room = pool.flights[0].trains.capacity();
    assert!(room <= 2 * 1024, "room for {room} headers, for 500 packets");
}

#[test]
fn what_was_sent_before_a_connection_began_is_not_of_it() {
    let mut pool = Pool::new(1);
    let mut segment = Segment::default();
    let old = [one(&mut pool, 0, 1), one(&mut pool, 0, 2), one(&mut pool, 0, 3)];
    pool.unpack(old[0], &mut segment);
    assert!(pool.is_current(old[0]));
    pool.begin_connection(0);
    let new = [one(&mut pool, 0, 1), one(&mut pool, 0, 2)];
    // Out of order, too.
    pool.unpack(new[0], &mut segment);
    assert!(pool.is_current(new[0]));
    pool.unpack(old[2], &mut segment);
    assert!(!pool.is_current(old[2]));
    pool.unpack(old[1], &mut segment);
    assert!(!pool.is_current(old[1]));
    pool.unpack(new[1], &mut segment);
    assert!(pool.is_current(new[1]));
    assert!(pool.flights[0].connection_from.is_none(), "nothing of an earlier connection is in flight");
}

#[test]
fn a_loss_of_an_earlier_connection_leaves_its_number_to_the_present_one() {
    let mut pool = Pool::new(1);
    let lost = one(&mut pool, 0, 1);
    pool.begin_connection(0);
    pool.discard(lost);
    let sent = one(&mut pool, 0, 1);
    pool.unpack(sent, &mut Segment::default());
    assert!(pool.is_current(sent));
}

#[test]
fn a_run_that_comes_in_any_order_leaves_the_headers_of_the_others() {
    let mut pool = Pool::new(2);
    let (mut flight, mut seq, mut random) = (vec![], 0, Random::new(1));
    let mut below = |bound: u64| random.below(bound) as usize;
    for _ in 0..20_000 {
        while flight.len() < 12 {
            let count = 1 + below(5) as u32;
            let mut packet = pool.pack(&Segment { seq, len: 10, ..Segment::default() }, 0, 0, count);
            for _ in 0..count {
                flight.push((seq, (0, packet)));
                (packet, seq) = (packet.following(), seq + 10);
            }
        }
        let run: Vec<_> = (0..1 + below(6)).map(|_| flight.remove(below(4))).collect();
        let packets: Vec<_> = run.iter().map(|&(_, packet)| packet).collect();
        let taken = pool.take_run(&packets, 0, |arrivals, _| {
            let seqs: Vec<u64> = arrivals.map(|arrival| arrival.seq).collect();
            assert_eq!(seqs, run.iter().map(|&(seq, _)| seq).collect::<Vec<_>>());
            packets.len() - below(2)
        });
        let mut got = Segment::default();
        for &(seq, (_, packet)) in &run[taken..] {
            pool.unpack(packet, &mut got);
            assert_eq!(got.seq, seq);
        }
    }
    assert!(pool.flights[0].trains.len() <= flight.len(), "headers of packets in flight are left");
}
