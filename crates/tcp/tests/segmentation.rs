//! Bursts of a sender whose device cuts packets into segments, against Linux's rules worked out by hand.

use super::common::{at_ms, ms, Pair};
use tcp::config::{Config, Recovery};

/// Payload of a segment, bytes.
const MSS: u64 = 1448;
/// Longest packet, segments: 65,215 bytes.
const LONGEST: usize = 45;

/// Numbers of segments that left at one time between two times, ms.
fn bursts(pair: &Pair, from_ms: u64, until_ms: u64) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut last = None;
    for sent in pair.data().filter(|sent| sent.at > at_ms(from_ms) && sent.at < at_ms(until_ms)) {
        if last == Some(sent.at) {
            *lengths.last_mut().expect("a burst") += 1;
        } else {
            lengths.push(1);
        }
        last = Some(sent.at);
    }
    lengths
}

/// A sender whose window is `cwnd` segments, on a path of `rtt_ms`, over a second.
fn steady(cfg: Config, cwnd: u32, rtt_ms: u64) -> Vec<usize> {
    let cfg = Config { initial_cwnd: cwnd, initial_ssthresh: Some(cwnd), cwnd_clamp: Some(cwnd), ..cfg };
    let mut pair = Pair::with(cfg.clone(), cfg, "reno", ms(rtt_ms / 2)).bottleneck(1_000_000_000, 10_000).connect();
    pair.write(u64::from(cwnd) * MSS * 2_000 / rtt_ms);
    pair.run(at_ms(1_500));
    bursts(&pair, 400, 1_400)
}

#[test]
fn a_paced_burst_is_the_data_of_a_millisecond() {
    // 500 segments per 50 ms, and a fifth more: 12,000/s, 11 in 1/1024 s.
    let lengths = steady(Config { pacing: true, ..Config::default() }, 500, 50);
    let whole = lengths.iter().filter(|&&length| length == 11).count();
    assert!(whole * 10 > lengths.len() * 7, "{lengths:?}");
    assert!(lengths.iter().all(|&length| length <= 11), "{lengths:?}");
}

#[test]
fn a_slow_sender_sends_two_at_once() {
    // 20 segments per 100 ms: less than one in a millisecond (net.ipv4.tcp_min_tso_segs).
    let lengths = steady(Config { pacing: true, ..Config::default() }, 20, 100);
    assert!(lengths.iter().all(|&length| length <= 2), "{lengths:?}");
    assert!(lengths.iter().filter(|&&length| length == 2).count() * 10 > lengths.len() * 8, "{lengths:?}");
}

#[test]
fn a_packet_holds_64_kib_at_most() {
    // 3,600 segments per 50 ms: 84 in a millisecond.
    let lengths = steady(Config { pacing: true, ..Config::default() }, 3_600, 50);
    assert_eq!(lengths.iter().max(), Some(&LONGEST), "{lengths:?}");
}

#[test]
fn a_short_path_has_longer_bursts() {
    // RTT 4 ms, 20 segments: 5.9 in a millisecond, and 65,215 / 2^7 bytes make a third of one.
    let lengths = steady(Config { pacing: true, ..Config::default() }, 20, 4);
    assert_eq!(lengths.iter().max(), Some(&6), "{lengths:?}");
    // 20 ms, 100 segments: the same rate, and nothing beside it.
    let lengths = steady(Config { pacing: true, ..Config::default() }, 100, 20);
    assert_eq!(lengths.iter().max(), Some(&5), "{lengths:?}");
}

#[test]
fn acks_release_bursts_without_pacing() {
    // 500 segments per 50 ms, each second acknowledged: packets of 10 (11 of the pacing rate are not there after a
    // millisecond), the rest of 45 at the end of each.
    let lengths = steady(Config::default(), 500, 50);
    let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
    assert!((7.0..=11.0).contains(&mean), "{mean}: {lengths:?}");
}

#[test]
fn without_segmentation_each_segment_goes_when_there_is_room() {
    for cfg in [
        Config { tso_autosizing: false, ..Config::default() },
        Config { recovery: Recovery::Sack, ..Config::default() },
    ] {
        let lengths = steady(cfg.clone(), 500, 50);
        assert!(lengths.iter().all(|&length| length <= 2), "{lengths:?}");
        let lengths = steady(Config { pacing: true, ..cfg }, 500, 50);
        assert!(lengths.iter().all(|&length| length == 1), "{lengths:?}");
    }
}

#[test]
fn the_rest_of_a_transfer_does_not_wait() {
    // 7 segments and a bit, then nothing more: the last leave although no burst is full.
    let mut pair = Pair::new(Config { initial_cwnd: 100, ..Config::default() }).connect();
    pair.write(7 * MSS + 100);
    pair.run_for(ms(400));
    assert_eq!(pair.client.bytes_acked(), 7 * MSS + 100);
    assert_eq!(pair.client.stats().tlp_probes, 0);
}
