//! Tests on internal state.

use super::*;
use crate::config::Config;
use std::collections::{BTreeMap, VecDeque};

const RTT_NS: u64 = 20_000_000;
const MSS: u64 = 1448;

/// Time at which piece `nth` of a transfer is written, ns: some within a round trip, then a pause longer than timeouts.
fn piece_at(nth: u64) -> u64 {
    15_000_000 * (nth + nth / 8 * 40)
}

/// Ways to ask a sender for its segments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Trains,
    /// By the same calls, but without any path for the common case.
    SlowPath,
    /// By `poll_transmit`.
    OneByOne,
}

/// The next segments of `sender`, `most` at most.
fn next(sender: &mut Endpoint, now: Time, seg: &mut Segment, most: u32, way: Way) -> Train {
    if way != Way::OneByOne {
        return sender.poll_train(now, seg, most);
    }
    let sent = sender.poll_transmit(now, seg);
    Train { segments: u32::from(sent), more: sent }
}

/// A transfer over a line of 1 Gbit/s that drops each `drop`-th data segment, written in so many pieces; with more than
/// one the other end answers each. Returns the sender.
fn transfer(cfg: &Config, algorithm: &str, (drop, pieces): (u64, u64), way: Way) -> Endpoint {
    let algorithm = congestion::find(algorithm).expect("a built-in algorithm");
    let make = || Controller::new(&algorithm, &BTreeMap::new()).expect("default parameters");
    let mut client = Endpoint::new_client(cfg.clone(), make(), Time::ZERO);
    let mut server = Endpoint::new_server(cfg.clone(), make(), Time::ZERO);
    client.slow_path_only = way == Way::SlowPath;
    server.slow_path_only = way == Way::SlowPath;
    let (mut forward, mut back) = (VecDeque::new(), VecDeque::new());
    let (mut seg, mut free, mut count) = (Segment::default(), 0u64, 0u64);
    let mut longest = 0;
    client.connect(Time::ZERO);
    let (mut now, mut written) = (0, 0);
    while !client.fin_acked {
        if written < pieces && now == piece_at(written) {
            written += 1;
            client.write(Time(now), 10_000 * MSS / pieces + 77);
            if pieces > 1 {
                server.write(Time(now), 2 * MSS + written);
            }
            if written == pieces {
                client.close(Time(now));
            }
        }
        loop {
            // Trains are cut at odd places, too.
            let train = next(&mut client, Time(now), &mut seg, if count % 3 == 0 { 2 } else { u32::MAX }, way);
            for _ in 0..train.segments {
                count += u64::from(seg.len > 0);
                if seg.len == 0 || count % drop != 0 {
                    free = free.max(now) + 12_000;
                    forward.push_back((free + RTT_NS / 2, seg));
                }
                seg.seq += u64::from(seg.len);
                longest = longest.max(train.segments);
            }
            if !train.more || train.segments == 0 {
                assert!(!client.has_to_transmit(Time(now)), "a train was the last, and was not");
                break;
            }
        }
        while server.poll_transmit(Time(now), &mut seg) {
            back.push_back((now + RTT_NS / 2, seg));
        }
        let (f, b) = (forward.front().map_or(u64::MAX, |x| x.0), back.front().map_or(u64::MAX, |x| x.0));
        let (c, s) = (client.poll_timeout().0, server.poll_timeout().0);
        let next_piece = if written < pieces { piece_at(written) } else { u64::MAX };
        now = f.min(b).min(c).min(s).min(next_piece);
        assert_ne!(now, u64::MAX, "nothing more happens");
        if now == next_piece {
            continue;
        }
        if now == f {
            server.handle_segment(Time(now), &forward.pop_front().expect("a segment").1);
        } else if now == b {
            client.handle_segment(Time(now), &back.pop_front().expect("a segment").1);
        } else if now == c {
            client.handle_timeout(Time(now));
        } else {
            server.handle_timeout(Time(now));
        }
    }
    // Without segmentation pacing spaces each.
    let is_spaced =
        (cfg.pacing || cfg.max_pacing.is_some() || algorithm.name() == "bbr") && cfg.recovery != Recovery::Rack;
    assert_eq!(longest > 1, way == Way::Trains && !is_spaced, "trains where they may be");
    client
}

#[test]
fn all_ways_to_ask_agree() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Rack] {
        for algorithm in ["reno", "cubic", "bbr"] {
            for (drop, pieces, timestamps, pacing) in [
                (u64::MAX, 1, true, false),
                (u64::MAX, 250, true, false),
                (700, 1, true, false),
                (700, 90, true, false),
                (700, 1, false, true),
                (43, 1, true, false),
                (43, 1, true, true),
                (43, 40, true, false),
                (43, 250, false, true),
                (7, 250, true, false),
                (7, 2_000, true, false),
            ] {
                // Growth as in ns-2, too.
                let count = if timestamps { Count::Segments } else { Count::Acks };
                let cfg = Config { recovery, timestamps, pacing, count, cwnd_validation: !pacing, ..Config::default() };
                let trains = transfer(&cfg, algorithm, (drop, pieces), Way::Trains);
                for (way, name) in [(Way::SlowPath, "slow path"), (Way::OneByOne, "one by one")] {
                    let other = transfer(&cfg, algorithm, (drop, pieces), way);
                    assert_same(&trains, &other, &format!("{name}: {recovery:?} {algorithm} {drop} {pieces}"));
                }
            }
        }
    }
}

fn assert_same(one: &Endpoint, other: &Endpoint, what: &str) {
    assert_eq!(one.now, other.now, "{what}");
    assert_eq!(one.stats, other.stats, "{what}");
    let (mut a, mut b) = (one.cc.sock().clone(), other.cc.sock().clone());
    // RateSample's bookkeeping has no other reader here.
    a.first_tx_mstamp_us = 0;
    b.first_tx_mstamp_us = 0;
    assert_eq!(format!("{a:?}"), format!("{b:?}"), "{what}");
    assert_eq!(format!("{:?}", one.rtt), format!("{:?}", other.rtt), "{what}");
}

/// RFC 2861's halving comes with the end of a burst. Where it leaves just what is in flight, a second end of the same
/// burst would find that the window is the limit.
#[test]
fn a_burst_ends_once_whoever_asks() {
    let windows = [Way::Trains, Way::SlowPath, Way::OneByOne].map(|way| {
        let reno = congestion::find("reno").expect("a built-in algorithm");
        let make = || Controller::new(&reno, &BTreeMap::new()).expect("default parameters");
        let cfg = Config { initial_cwnd: 2, ..Config::default() };
        let mut client = Endpoint::new_client(cfg.clone(), make(), Time::ZERO);
        let mut server = Endpoint::new_server(cfg, make(), Time::ZERO);
        client.slow_path_only = way == Way::SlowPath;
        client.connect(Time::ZERO);
        let mut seg = Segment::default();
        while client.poll_transmit(Time::ZERO, &mut seg) {
            server.handle_segment(Time::ZERO, &seg);
            if server.poll_transmit(Time::ZERO, &mut seg) {
                client.handle_segment(Time::ZERO, &seg);
            }
        }
        assert_eq!(client.phase, Phase::Open);
        // Longer than a timeout nobody has used the ninth segment of the window.
        let now = Time(5_000_000_000);
        let s = client.sock();
        (s.snd_cwnd, s.snd_ssthresh, s.is_cwnd_limited, s.max_packets_out) = (9, 5, 0, 8);
        client.cwnd_usage_seq = client.nxt + 100 * MSS;
        client.write(now, 8 * MSS);
        while next(&mut client, now, &mut seg, u32::MAX, way).more {}
        let s = client.cc.sock();
        (s.in_flight(), s.snd_cwnd, s.is_cwnd_limited, client.stats.cwnd_restarts)
    });
    assert_eq!(windows, [(8, 8, 0, 1); 3]);
}

#[test]
fn memory_follows_the_data_in_flight() {
    let cfg = Config { initial_cwnd: 9_000, ..Config::default() };
    let client = transfer(&cfg, "reno", (u64::MAX, 1), Way::Trains);
    assert!(client.ring.is_empty() && client.lost.peek().is_none() && client.sacked.is_empty());
    assert!(client.rack.resent.is_empty() && client.copies.is_empty());
    // Steps of loss detection: none without loss.
    assert_eq!(client.stats.scoreboard_steps, 0);
}
