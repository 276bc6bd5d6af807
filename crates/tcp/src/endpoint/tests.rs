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

/// A transfer over a line of 1 Gbit/s that drops each `drop`-th data segment, written in so many pieces; with more than
/// one the other end answers each. Returns the sender.
fn transfer(cfg: &Config, algorithm: &str, (drop, pieces): (u64, u64), slow_path_only: bool) -> Endpoint {
    let algorithm = congestion::find(algorithm).expect("a built-in algorithm");
    let make = || Controller::new(&algorithm, &BTreeMap::new()).expect("default parameters");
    let mut client = Endpoint::new_client(cfg.clone(), make(), Time::ZERO);
    let mut server = Endpoint::new_server(cfg.clone(), make(), Time::ZERO);
    client.slow_path_only = slow_path_only;
    server.slow_path_only = slow_path_only;
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
            let train = client.poll_train(Time(now), &mut seg, if count % 3 == 0 { 2 } else { u32::MAX });
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
                assert!(!client.poll_transmit(Time(now), &mut seg), "a train was the last, and was not");
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
    let is_paced = cfg.pacing || algorithm.name() == "bbr";
    assert_eq!(longest > 1, !slow_path_only && !is_paced, "trains where they may be");
    client
}

#[test]
fn fast_paths_and_slow_paths_agree() {
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
                let short = transfer(&cfg, algorithm, (drop, pieces), false);
                let long = transfer(&cfg, algorithm, (drop, pieces), true);
                let what = format!("{recovery:?} {algorithm} {drop} {pieces}");
                assert_eq!(short.now, long.now, "{what}");
                assert_eq!(short.stats, long.stats, "{what}");
                let (mut a, mut b) = (short.cc.sock().clone(), long.cc.sock().clone());
                // RateSample's bookkeeping has no other reader here.
                a.first_tx_mstamp_us = 0;
                b.first_tx_mstamp_us = 0;
                assert_eq!(format!("{a:?}"), format!("{b:?}"), "{what}");
                assert_eq!(format!("{:?}", short.rtt), format!("{:?}", long.rtt), "{what}");
            }
        }
    }
}

#[test]
fn memory_follows_the_data_in_flight() {
    let cfg = Config { initial_cwnd: 9_000, ..Config::default() };
    let client = transfer(&cfg, "reno", (u64::MAX, 1), false);
    assert!(client.ring.is_empty() && client.lost.peek().is_none() && client.sacked.is_empty());
    assert!(client.rack.resent.is_empty() && client.copies.is_empty());
    // Steps of loss detection: none without loss.
    assert_eq!(client.stats.scoreboard_steps, 0);
}
