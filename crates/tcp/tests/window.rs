//! Windows: slow start, the receiver's limit, zero windows, validation, restart, pacing.
use crate::common::*;
use tcp::config::{Config, Reader, ReceiveBuffers};
use tcp::segment::WindowScale;
use units::{Rate, Size, Span, Time};

const MSS: u64 = 1448;

fn late() -> Time {
    Time::ZERO + Span::from_secs(300)
}

/// Data segments sent in each round trip from the first on.
fn per_round(pair: &Pair, rounds: u64) -> Vec<usize> {
    (1..=rounds)
        .map(|r| pair.data().filter(|s| s.at >= at_ms(100 * r) && s.at < at_ms(100 * r + 100)).count())
        .collect()
}

#[test]
fn slow_start_doubles_from_one_segment() {
    let cfg = Config { initial_cwnd: 1, delayed_ack: false, ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    pair.write(1_000 * MSS);
    pair.run(at_ms(750));
    assert_eq!(per_round(&pair, 6), [1, 2, 4, 8, 16, 32]);
}

#[test]
fn delayed_acks_do_not_slow_slow_start_since_bytes_are_counted() {
    let cfg = Config { initial_cwnd: 10, quickack_segments: 0, ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    pair.write(10_000 * MSS);
    pair.run(at_ms(550));
    assert_eq!(per_round(&pair, 4), [10, 20, 40, 80]);
}

#[test]
fn the_window_limit_gives_window_per_rtt() {
    for bytes in [65_536u64, 500_000, 8_000_000] {
        let cfg = Config { receive_window: Size(bytes), ..Config::default() };
        let mut pair = Pair::new(cfg).connect();
        pair.record = false;
        pair.write(u64::MAX / 4);
        pair.run(at_ms(5_000));
        let before = pair.server.bytes_received();
        pair.run(at_ms(15_000));
        let per_rtt = (pair.server.bytes_received() - before) / 100;
        assert!(per_rtt <= bytes && per_rtt >= bytes - 2 * MSS, "{bytes}: {per_rtt} per RTT");
    }
}

#[test]
fn without_scaling_64_kib_is_the_most() {
    let cfg = Config { window_scaling: false, receive_window: Size(8_000_000), ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    assert_eq!(pair.sent[0].seg.wscale, None);
    pair.write(10_000_000);
    pair.run(at_ms(5_000));
    assert!(pair.client.in_flight_bytes() <= 65_535 && pair.client.in_flight_bytes() >= 65_535 - MSS);
    assert!(pair.acks.iter().all(|a| a.seg.window <= 65_535));
}

#[test]
fn a_forced_shift_is_used_and_the_limit_is_kept() {
    let cfg = Config { window_scale: Some(10), receive_window: Size(8_000_000), ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    assert_eq!(pair.acks[0].seg.wscale, Some(WindowScale::new(10)));
    pair.write(20_000_000);
    pair.run(at_ms(1_000));
    let offered: Vec<u32> = pair.acks.iter().skip(1).map(|a| a.seg.window).collect();
    assert!(offered.iter().all(|w| w % 1024 == 0 && *w <= 8_000_000 && *w > 8_000_000 - 1024), "{offered:?}");
}

#[test]
fn a_closed_window_is_probed_with_backoff_and_opens() {
    let server = manual(Config { receive_window: Size(100_000), ..Config::default() });
    let mut pair = Pair::with(Config::default(), server, "reno", ms(50)).connect();
    pair.write(300_000);
    pair.run(at_ms(20_000));
    assert!(pair.server.bytes_readable() > 90_000 && pair.server.bytes_readable() <= 100_000);
    let stats = *pair.client.stats();
    assert!(stats.zero_window_probes >= 4 && stats.zero_window_probes < 12, "{stats:?}");
    assert_eq!(stats.timeouts, 0);
    let probes: Vec<u64> =
        pair.sent.iter().filter(|s| s.at > at_ms(1_500) && s.seg.len == 0).map(|s| s.at.0 / 1_000_000).collect();
    let gaps: Vec<u64> = probes.windows(2).map(|w| w[1] - w[0]).collect();
    // Each wait begins with the answer to the last probe, an RTT of 100 ms after it, and doubles.
    assert!(gaps.windows(2).all(|g| g[1] - 100 >= 2 * (g[0] - 100) - 2), "{gaps:?}");
    let mut read = 0;
    while read < 300_000 {
        read += pair.server.read(pair.now, u64::MAX);
        pair.flush();
        pair.run_for(ms(100));
        assert!(pair.now < late());
    }
    assert_eq!(read, 300_000);
}

#[test]
fn a_slow_reader_sees_no_silly_windows() {
    let server = manual(Config { receive_window: Size(100_000), ..Config::default() });
    let mut pair = Pair::with(Config::default(), server, "reno", ms(5)).connect();
    pair.write(400_000);
    let mut read = 0;
    while read < 400_000 {
        pair.run_for(ms(10));
        read += pair.server.read(pair.now, 1_000);
        pair.flush();
        assert!(pair.now < late(), "{read}");
    }
    let small = pair.data().filter(|s| u64::from(s.seg.len) < MSS).count();
    let all = pair.data().count();
    assert!(small * 10 < all, "{small} of {all} segments are small");
}

#[test]
fn the_window_does_not_grow_while_the_application_is_the_limit() {
    let cfg = Config { initial_ssthresh: Some(20), initial_cwnd: 20, ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    // Five segments per RTT: a quarter of the window.
    for _ in 0..100 {
        pair.write(5 * MSS);
        pair.run_for(ms(100));
    }
    assert!(pair.cwnd() <= 20, "cwnd {}", pair.cwnd());
}

#[test]
fn an_unused_window_decays_towards_what_is_used() {
    let mut pair = Pair::new(Config::default()).connect();
    pair.write(500 * MSS);
    pair.run(at_ms(1_500));
    let full = pair.cwnd();
    assert!(full > 200);
    for _ in 0..100 {
        pair.write(2 * MSS);
        pair.run_for(ms(50));
    }
    assert!(pair.cwnd() < full / 4, "from {full} to {}", pair.cwnd());
    assert!(pair.cwnd() >= 10);
}

#[test]
fn idleness_restarts_from_the_initial_window() {
    for (restart, least, most) in [(true, 10, 10), (false, 300, 2_000)] {
        let mut pair = Pair::new(Config { slow_start_after_idle: restart, ..Config::default() }).connect();
        pair.write(500 * MSS);
        pair.run(at_ms(20_000));
        pair.write(500 * MSS);
        let burst = pair.data().filter(|s| s.at == pair.now).count() as u32;
        assert!(burst >= least && burst <= most, "{burst}");
    }
}

#[test]
fn autotuning_makes_room_for_what_waits_behind_a_hole() {
    let cfg = Config { receive_autotuning: true, receive_window: Size(64 << 20), ..Config::default() };
    let server = cfg.clone();
    // A hole that stays for seven round trips while the sender, which takes losses for chance, goes on.
    let mut left = 0;
    let mut pair = Pair::with(cfg, server, "bbr", ms(20)).bottleneck(100_000_000, 400).on_data(move |n, seg| {
        if n == 3_000 {
            left = seg.seq;
        }
        if seg.seq == left && n < 3_000 + 7 * 333 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair = pair.connect();
    pair.write(30_000_000);
    pair.run_for(ms(400));
    let before = pair.acks.iter().map(|ack| ack.seg.window).max().expect("acks");
    pair.run_for(ms(600));
    let held: Vec<u32> = pair.acks.iter().filter(|ack| ack.seg.sack_count > 0).map(|ack| ack.seg.window).collect();
    let most = held.iter().copied().max().expect("a hole");
    // Five round trips of 100 Mbit/s and 40 ms lie behind it at least, beside twice what a round trip carries.
    assert!(most > 3_500_000 && most > before + 1_000_000, "{most} after {before}");
}

#[test]
fn autotuning_before_linux_6_16_makes_no_room_behind_a_hole() {
    let offered = |receive_buffers| {
        let cfg = Config { receive_autotuning: true, receive_buffers, ..Config::default() };
        let mut left = 0;
        let server = cfg.clone();
        let mut pair = Pair::with(cfg, server, "bbr", ms(20)).bottleneck(100_000_000, 400).on_data(move |n, seg| {
            if n == 3_000 {
                left = seg.seq;
            }
            if seg.seq == left && n < 3_000 + 14 * 333 {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair = pair.connect();
        pair.write(30_000_000);
        pair.run_for(ms(1_400));
        pair.acks.iter().filter(|ack| ack.seg.sack_count > 0).map(|ack| ack.seg.window).max().expect("a hole")
    };
    let (now, before) = (offered(ReceiveBuffers::Linux6_16), offered(ReceiveBuffers::Linux6_15));
    assert!(now > before + 2_000_000, "{now} and {before}");
}

#[test]
fn a_slow_reader_neither_lengthens_the_rtt_nor_widens_the_window() {
    // Linux 6.16: data that waits to be read is none that a round trip has carried, and its RTTs are the reader's. Of a
    // reader of 8 MB/s behind 100 Mbit/s and 40 ms the buffer holds what the window has grown to.
    let waits = |receive_buffers| {
        let cfg = Config {
            receive_autotuning: true,
            receive_buffers,
            receive_window: Size(64 << 20),
            reader: Reader::Manual,
            ..Config::default()
        };
        let mut pair = Pair::with(cfg.clone(), cfg, "cubic", ms(20)).bottleneck(100_000_000, 400).connect();
        pair.write(60_000_000);
        for _ in 0..500 {
            pair.run_for(ms(10));
            pair.server.read(pair.now, 80_000);
        }
        pair.server.read(pair.now, u64::MAX)
    };
    let (now, before) = (waits(ReceiveBuffers::Linux6_16), waits(ReceiveBuffers::Linux6_15));
    assert!(2 * now < before, "{now} and {before}");
}

#[test]
fn autotuning_opens_the_window_as_the_application_reads() {
    let cfg = Config { receive_autotuning: true, receive_window: Size(6 << 20), ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    assert!(pair.client.snd_wnd() <= 65_535);
    pair.write(200_000_000);
    pair.run(at_ms(6_000));
    let window = pair.client.snd_wnd();
    assert!(window > 5 << 20 && window <= 6 << 20, "{window}");
}

#[test]
fn pacing_spreads_the_window_over_the_round_trip() {
    let cfg = Config {
        pacing: true,
        tso_autosizing: false,
        initial_cwnd: 100,
        initial_ssthresh: Some(100),
        ..Config::default()
    };
    let mut pair = Pair::new(cfg).connect();
    pair.write(3_000 * MSS);
    pair.run(at_ms(1_500));
    let times: Vec<u64> = pair.data().filter(|s| s.at > at_ms(1_000) && s.at < at_ms(1_400)).map(|s| s.at.0).collect();
    let mean = (times[times.len() - 1] - times[0]) / (times.len() as u64 - 1);
    let least = times.windows(2).map(|w| w[1] - w[0]).min().expect("gaps");
    // 120 % of the window per RTT: 0.83 ms between segments of a window of 100; half of that when late.
    assert!(mean > 700_000 && mean < 1_100_000, "mean gap {mean} ns");
    assert!(least > 300_000, "least gap {least} ns");
}

#[test]
fn a_largest_pacing_rate_bounds_what_the_window_would_let_through() {
    // A segment a ms; the path holds a hundred times as many.
    let most = Rate(8 * MSS * 1000);
    for algorithm in ["cubic", "bbr"] {
        let cfg = Config { max_pacing: Some(most), ..Config::default() };
        let mut pair = Pair::with(cfg.clone(), cfg, algorithm, Span::from_millis(50)).connect();
        pair.write(20_000 * MSS);
        pair.run(at_ms(6_000));
        let sent = pair.data().filter(|s| s.at > at_ms(2_000) && s.at <= at_ms(6_000)).count();
        let least = if algorithm == "bbr" { 3_000 } else { 3_960 };
        assert!((least..=4_010).contains(&sent), "{algorithm}: {sent} segments in 4 s");
    }
}

#[test]
fn the_send_buffer_bounds_what_is_taken() {
    let cfg = Config { send_buffer: Some(Size(100_000)), ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    assert_eq!(pair.write(150_000), 100_000);
    assert_eq!(pair.write(1), 0);
    pair.run(at_ms(1_000));
    assert_eq!(pair.client.send_queue_free(), 100_000);
    assert_eq!(pair.client.bytes_acked(), 100_000);
}

#[test]
fn congestion_window_limits_and_clamp() {
    let cfg = Config { cwnd_clamp: Some(50), ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    pair.write(5_000 * MSS);
    pair.run(at_ms(3_000));
    assert_eq!(pair.cwnd(), 50);
    assert!(pair.client.in_flight_packets() <= 50);
}
