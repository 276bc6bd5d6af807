//! Over any network all bytes arrive once and the counters stay true; and cost does not grow with the window.
use crate::common::*;
use proptest::prelude::*;
use tcp::config::{Config, Count, LostRetransmissions, Recovery};
use units::{Size, Span, Time};

const MSS: u64 = 1448;

fn late() -> Time {
    Time::ZERO + Span::from_secs(100_000)
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Pass),
        3 => Just(Fate::Drop),
        2 => (0u64..200).prop_map(|n| Fate::Delay(ms(n))),
        1 => Just(Fate::Duplicate),
        1 => Just(Fate::Mark),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    (
        prop_oneof![Just(Recovery::Reno), Just(Recovery::NewReno), Just(Recovery::Sack), Just(Recovery::Rack)],
        any::<[bool; 8]>(),
        1u32..40,
        prop_oneof![Just(3_000u64), Just(65_535), Just(200_000), Just(8_000_000)],
    )
        .prop_map(|(recovery, b, initial_cwnd, window)| Config {
            recovery,
            timestamps: b[0],
            delayed_ack: b[1],
            ecn: b[2],
            pacing: b[3],
            frto: b[4],
            limited_transmit: b[5],
            receive_autotuning: b[6],
            fast_retransmit: b[7] || initial_cwnd % 3 > 0,
            sack_compression: initial_cwnd % 4 > 0,
            lost_retransmissions: match initial_cwnd % 3 {
                0 => LostRetransmissions::Never,
                1 => LostRetransmissions::Era,
                _ => LostRetransmissions::Repeatedly,
            },
            cwnd_validation: initial_cwnd % 5 > 0,
            count: if initial_cwnd % 7 > 0 { Count::Segments } else { Count::Acks },
            nagle: initial_cwnd % 2 > 0,
            initial_cwnd,
            receive_window: Size(window),
            ..Config::default()
        })
}

fn scripted(script: Vec<Fate>) -> Hook {
    Box::new(move |n, _| script.get(n as usize - 1).copied().unwrap_or(Fate::Pass))
}

proptest! {
    // The same cases everywhere; PROPTEST_CASES and PROPTEST_RNG_SEED search further.
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300),
        failure_persistence: None,
        rng_seed: std::env::var("PROPTEST_RNG_SEED").ok().and_then(|n| n.parse().ok()).map_or(
            proptest::test_runner::RngSeed::Fixed(1988),
            proptest::test_runner::RngSeed::Fixed,
        ),
        ..ProptestConfig::default()
    })]

    #[test]
    fn all_bytes_arrive_once(
        cfg in config(),
        forward in prop::collection::vec(fate(), 0..250),
        back in prop::collection::vec(fate(), 0..250),
        bytes in 1u64..400_000,
        slow in any::<bool>(),
    ) {
        let mut pair = Pair::new(cfg);
        pair.record = false;
        if slow {
            pair = pair.bottleneck(5_000_000, 30);
        }
        // The handshake has its own tests: SYN retries are finite.
        pair = pair.connect();
        let (f, b) = (pair.forward.count, pair.back.count);
        let pad = |n: u64, s: Vec<Fate>| (0..n).map(|_| Fate::Pass).chain(s).collect::<Vec<_>>();
        pair.forward.hook = Some(scripted(pad(f, forward)));
        pair.back.hook = Some(scripted(pad(b, back)));
        prop_assert_eq!(pair.write(bytes), bytes);
        pair.close();
        pair.run_until_received(bytes, late());
        pair.run_for(Span::from_secs(2_000));
        prop_assert_eq!(pair.server.bytes_received(), bytes);
        prop_assert_eq!(pair.client.bytes_acked(), bytes);
        prop_assert_eq!(pair.client.state(), tcp::State::FinWait2);
        let s = pair.client.controller().sock();
        prop_assert_eq!((s.packets_out, s.lost_out, s.retrans_out), (0, 0, 0));
        let stats = pair.client.stats();
        prop_assert!(stats.data_segments_sent >= stats.retransmitted_segments);
        prop_assert!(pair.server.stats().data_segments_received >= bytes.div_ceil(MSS + 12));
    }

    #[test]
    fn both_directions_at_once(
        cfg in config(),
        forward in prop::collection::vec(fate(), 0..250),
        back in prop::collection::vec(fate(), 0..250),
        bytes in 1u64..200_000,
        other in 1u64..200_000,
    ) {
        let mut pair = Pair::new(cfg).bottleneck(20_000_000, 50).connect();
        pair.record = false;
        let (f, b) = (pair.forward.count, pair.back.count);
        let pad = |n: u64, s: Vec<Fate>| (0..n).map(|_| Fate::Pass).chain(s).collect::<Vec<_>>();
        pair.forward.hook = Some(scripted(pad(f, forward)));
        pair.back.hook = Some(scripted(pad(b, back)));
        pair.server.write(pair.now, other);
        pair.write(bytes);
        pair.close();
        pair.server.close(pair.now);
        pair.flush();
        pair.run_for(Span::from_secs(5_000));
        prop_assert_eq!(pair.server.bytes_received(), bytes);
        prop_assert_eq!(pair.client.bytes_received(), other);
        prop_assert!(pair.client.is_closed() && pair.server.is_closed());
    }
}

/// Steps of loss detection and memory per packet with a window of `segments` and some losses.
fn steps(segments: u64, recovery: Recovery) -> f64 {
    let cfg = Config {
        recovery,
        initial_cwnd: segments as u32,
        initial_ssthresh: Some(segments as u32),
        receive_window: Size(1 << 30),
        ..Config::default()
    };
    let mut pair = Pair::new(cfg)
        .bottleneck(segments * 1_500 * 8 * 10, u64::MAX)
        .on_data(move |n, _| if n > segments && n % 997 == 0 { Fate::Drop } else { Fate::Pass })
        .connect();
    pair.record = false;
    let packets = 3 * segments;
    pair.write(packets * MSS);
    pair.run_until_received(packets * MSS, late());
    let stats = pair.client.stats();
    assert!(stats.retransmitted_segments > 0);
    stats.scoreboard_steps as f64 / packets as f64
}

/// The largest window that RFC 7323 allows. Every segment is looked at a fixed number of times, whatever the window.
#[test]
fn the_cost_of_a_loss_does_not_grow_with_the_window() {
    for recovery in [Recovery::Sack, Recovery::Rack] {
        let small = steps(7_000, recovery);
        let large = steps(700_000, recovery);
        println!("{recovery:?}: {small} steps per packet at 7,000 segments, {large} at 700,000");
        assert!(large < 4.0 && large < 2.0 * small + 0.5, "{recovery:?}: {small} against {large}");
    }
}
