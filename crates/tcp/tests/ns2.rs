//! The eras beside ns-2 2.35, which sent what ns2/golden.txt has (recorded by evaluation/fidelity/eras.py).
use crate::common::*;
use tcp::config::{Config, Count, LostRetransmissions, Recovery};
use units::{Size, Span, Time};

const MSS: u64 = 1000;
const WINDOW: u32 = 20;
const SEGMENTS: u64 = 100;

/// The settings of the agent that are the same in all, and those of its own.
fn agent(name: &str) -> Config {
    let common = Config {
        mtu: 1040,
        initial_cwnd: 2,
        initial_ssthresh: Some(WINDOW),
        receive_window: Size(u64::from(WINDOW) * MSS),
        timestamps: false,
        delayed_ack: false,
        sack_compression: false,
        undo: false,
        frto: false,
        reordering: 3,
        max_reordering: 3,
        count: Count::Acks,
        cwnd_validation: false,
        // The agents take RTO = max(srtt + 4 rttvar, 1 s), the endpoint srtt + max(4 rttvar, 0.9 s).
        rto_min: Span::from_millis(900),
        ..Config::default()
    };
    match name {
        "FullTcp" => Config { recovery: Recovery::Reno, limited_transmit: false, ..common },
        "Reno" => Config { recovery: Recovery::Reno, ..common },
        "Newreno" => Config { recovery: Recovery::NewReno, ..common },
        "FullTcp/Sack" => Config {
            recovery: Recovery::Sack,
            limited_transmit: false,
            lost_retransmissions: LostRetransmissions::Never,
            ..common
        },
        "Sack1" => Config { recovery: Recovery::Sack, lost_retransmissions: LostRetransmissions::Never, ..common },
        "Linux" => Config { recovery: Recovery::Sack, lost_retransmissions: LostRetransmissions::Repeatedly, ..common },
        _ => panic!("unknown agent {name}"),
    }
}

/// Milliseconds and number of each segment sent, from the first on.
fn sent(name: &str, drops: &[u64]) -> (Vec<(f64, u64)>, tcp::Stats) {
    let cfg = agent(name);
    let mut pair =
        Pair::with(cfg.clone(), cfg, "reno", ms(50)).bottleneck(10_000_000, 10_000).drop_data(drops).connect();
    pair.write(SEGMENTS * MSS);
    pair.run_until_received(SEGMENTS * MSS, Time::ZERO + Span::from_secs(60));
    let start = pair.data().next().expect("data").at;
    let packets = pair.data().map(|s| ((s.at.0 - start.0) as f64 / 1e6, (s.seg.seq - 1) / MSS + 1)).collect();
    (packets, *pair.client.stats())
}

/// Patterns in which the order of segments is another one, with the cause.
const OTHERWISE: [(&str, &str, &str); 13] = [
    ("Reno", "four apart", EXTRA),
    ("Reno", "the first", FIRST_ACK),
    ("Newreno", "the first", FIRST_ACK),
    ("Newreno", "three apart", DEFLATION),
    ("Newreno", "four apart", DEFLATION),
    (
        "Sack1",
        "the first",
        "Sack1 takes no RTT from a SYN, so that its first RTO is 3 s, and the third duplicate is late",
    ),
    ("Linux", "one", HALVING),
    ("Linux", "two", HALVING),
    ("Linux", "two apart", HALVING),
    ("Linux", "three apart", HALVING),
    ("Linux", "four apart", HALVING),
    ("Linux", "a copy", HALVING),
    ("Linux", "two copies", HALVING),
];
const EXTRA: &str = "Agent/TCP/Reno sends one segment more at a duplicate ACK after a time-out, too (send_one)";
const FIRST_ACK: &str = "the first ACK after the handshake updates the window, so that Linux counts it as no duplicate";
const DEFLATION: &str = "Agent/TCP/Newreno deflates its window at a partial ACK and sends new data an RTT later";
const HALVING: &str =
    "TCP-Linux halves its rate over a round trip (next_pkts_in_flight_), the endpoint its window at once";

/// Longest that the end of a transfer may lie apart, ms: a round trip, and the reasons for more.
///
/// A round trip: ns-2 adds 1/W to a real W, which takes half an ACK more for each segment than Linux's count of ACKs.
fn apart_ms(name: &str, pattern: &str) -> f64 {
    match (name, pattern) {
        // Its pipe counts lost packets as in flight (Fall and Floyd 1996); RFC 6675's does not.
        (_, "half a window") if name.contains("Sack") => 310.0,
        // Its first RTO is 3 s; that of the endpoint 1 s (RFC 6298).
        ("Reno" | "Newreno" | "Sack1", "the first") => 3_000.0,
        // Least RTO: minrto_ does not hold for TCP-Linux (tcp-linux.cc, rtt_update).
        ("Linux", "the last") => 810.0,
        // A second time-out halves what is left: 2 segments, from which the window grows by whole or real segments.
        (_, "two copies") => 300.0,
        _ => 210.0,
    }
}

#[test]
fn senders_of_the_era_send_what_those_of_ns2_send() {
    for line in include_str!("ns2/golden.txt").lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [name, pattern, drops, packets] = fields[..] else { panic!("{line}") };
        let drops: Vec<u64> = drops.split_whitespace().map(|n| n.parse().expect("a number")).collect();
        let theirs: Vec<(f64, u64)> = packets
            .split_whitespace()
            .map(|word| {
                let (time, segment) = word.split_once(':').expect("ms:segment");
                (time.parse().expect("ms"), segment.parse().expect("a number"))
            })
            .collect();
        let (ours, stats) = sent(name, &drops);
        let same = ours.iter().zip(&theirs).take_while(|(a, b)| a.1 == b.1).count();
        let end = |packets: &[(f64, u64)]| packets.last().map_or(0.0, |packet| packet.0);
        println!(
            "{name:12} {pattern:13} the first {same:3} alike of {:3} and {:3}, end {:5.0} and {:5.0} ms, time-outs {}",
            ours.len(),
            theirs.len(),
            end(&ours),
            end(&theirs),
            stats.timeouts
        );
        let otherwise = OTHERWISE.iter().any(|&(agent, what, _)| agent == name && what == pattern);
        let alike = same == ours.len() && same == theirs.len();
        assert_eq!(alike, !otherwise, "{name} {pattern}: ours {ours:?}, theirs {theirs:?}");
        let apart = (end(&ours) - end(&theirs)).abs();
        assert!(apart <= apart_ms(name, pattern), "{name} {pattern}: {apart} ms apart");
    }
}
