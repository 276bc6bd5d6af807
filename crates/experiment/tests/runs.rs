//! Whole runs: limits by the line, the window and the loss; a run is a function of its spec.

use crate::common::*;
use experiment::Metric;
use serde_json::json;

/// Payload of a full packet with timestamps at MTU 1500.
const MSS: f64 = 1448.0;

#[test]
fn a_clean_line_is_filled_to_the_header_overhead() {
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("cubic", json!({})), bulk());
    let outcome = Dumbbell { warmup_ns: 2 * S, ..run }.run();
    let expected = 100e6 * MSS / 1500.0;
    let goodput = real(&outcome, "goodput_bps");
    assert!((goodput / expected - 1.0).abs() < 0.002, "{goodput} instead of {expected}");
}

#[test]
fn a_window_below_the_pipe_gives_window_per_rtt() {
    let small = json!({"window_bytes": 1_000_000});
    let run = Dumbbell::new(1_000_000_000, 100 * MS).flow("f", transport("reno", small), bulk());
    let outcome = Dumbbell { warmup_ns: 5 * S, duration_ns: 25 * S, ..run }.run();
    // The window counts whole segments: 690 of 1448 B fit 1 MB; a delayed ACK's partner waits one serialisation.
    let goodput = real(&outcome, "goodput_bps");
    let expected = 1_000_000.0 * 8.0 / 0.1;
    assert!((goodput / expected - 1.0).abs() < 0.005, "{goodput} instead of {expected}");
    assert_eq!(integer(&outcome, "retransmitted_segments"), 0);
}

#[test]
fn without_window_scaling_64_kib_is_all() {
    let off = json!({"window_scaling": false, "window_bytes": 8_000_000});
    let run = Dumbbell::new(1_000_000_000, 50 * MS).flow("f", transport("reno", off), bulk());
    let outcome = Dumbbell { warmup_ns: 2 * S, ..run }.run();
    let goodput = real(&outcome, "goodput_bps");
    let expected = 65_535.0 * 8.0 / 0.05;
    assert!((goodput / expected - 1.0).abs() < 0.02, "{goodput} instead of {expected}");
}

#[test]
fn a_finite_transfer_delivers_every_byte_once_and_ends() {
    let work = json!({"kind": "bulk", "bytes": 10_000_000});
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("reno", json!({})), work);
    let loss = json!({"kind": "independent", "probability_e12": 10_000_000_000u64});
    let outcome = Dumbbell { loss, duration_ns: 600 * S, stop_when_done: true, ..run }.run();
    assert_eq!(integer(&outcome, "delivered_bytes"), 10_000_000);
    assert!(real(&outcome, "simulated_s") < 60.0);
    assert!(integer(&outcome, "dropped_packets") > 20, "the loss model was at work");
    assert!(matches!(outcome.flows[0].get("completion_s"), Some(Metric::Real(_))));
}

#[test]
fn the_same_spec_gives_the_same_outcome() {
    let run = || {
        let run = Dumbbell::new(100_000_000, 20 * MS).flow("a", transport("cubic", json!({})), bulk()).flow(
            "b",
            transport("reno", json!({})),
            bulk(),
        );
        let loss = json!({"kind": "independent", "probability_e12": 1_000_000_000u64});
        Dumbbell { loss, series_interval_ns: Some(10 * MS), ..run }.run()
    };
    let (first, second) = (run(), run());
    assert_eq!(first.metrics, second.metrics);
    assert_eq!(first.flows, second.flows);
    assert_eq!(first.flow_series.cwnd_packets, second.flow_series.cwnd_packets);
    assert_eq!(first.link_series.queue_bytes, second.link_series.queue_bytes);
}

#[test]
fn another_seed_gives_other_losses() {
    let run = |seed| {
        let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("reno", json!({})), bulk());
        let loss = json!({"kind": "independent", "probability_e12": 1_000_000_000u64});
        Dumbbell { loss, seed, ..run }.run().metrics
    };
    assert_ne!(run(1), run(2));
}

#[test]
fn adding_a_flow_does_not_change_the_losses_of_another() {
    // Both flows are limited by small windows on a wide line, so they meet only in the loss model.
    let small = || transport("reno", json!({"window_bytes": 30_000}));
    let lossy = |run: Dumbbell| {
        let loss = json!({"kind": "independent", "probability_e12": 10_000_000_000u64});
        let queue = json!({"kind": "drop_tail", "limit_bytes": 10_000_000, "limit_packets": null});
        Dumbbell { loss, queue, ..run }.run()
    };
    let alone = lossy(Dumbbell::new(100_000_000_000, 20 * MS).flow("a", small(), bulk()));
    let both = lossy(Dumbbell::new(100_000_000_000, 20 * MS).flow("a", small(), bulk()).flow("b", small(), bulk()));
    let drops = of_flow(&alone, 0, "dropped_packets");
    assert!(drops > 30, "{drops}");
    // Packets of the two may share a ns on the line, which shifts times a little; the losses do not change.
    assert!(of_flow(&both, 0, "dropped_packets").abs_diff(drops) <= 2);
}

#[test]
fn offered_frames_below_the_line_arrive_at_the_offered_rate_with_path_latency() {
    let work = json!({"kind": "constant_rate", "frame_bytes": 2112, "rate_bps": 50_000_000, "credits": null});
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("reno", json!({})), work);
    let outcome = Dumbbell { warmup_ns: 2 * S, ..run }.run();
    let goodput = real(&outcome, "goodput_bps");
    assert!((goodput / 50e6 - 1.0).abs() < 0.01, "{goodput}");
    let p50 = real(&outcome, "latency_p50_s");
    assert!((0.010..0.013).contains(&p50), "one way is 10 ms, p50 is {p50}");
}

#[test]
fn changes_of_the_path_take_effect_at_their_time() {
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("cubic", json!({})), bulk());
    let events = vec![json!({"when": {"kind": "at", "time_ns": 5 * S},
               "action": {"kind": "rate", "link": 0, "rate_bps": 20_000_000}})];
    let outcome = Dumbbell { events, warmup_ns: 8 * S, duration_ns: 18 * S, ..run }.run();
    let goodput = real(&outcome, "goodput_bps");
    assert!((goodput / (20e6 * MSS / 1500.0) - 1.0).abs() < 0.02, "{goodput}");
}

#[test]
fn a_link_that_comes_back_is_used_again() {
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("cubic", json!({})), bulk());
    let at =
        |time: u64, kind: &str| json!({"when": {"kind": "at", "time_ns": time}, "action": {"kind": kind, "link": 0}});
    let events = vec![at(3 * S, "link_down"), at(4 * S, "link_up")];
    let outcome = Dumbbell { events, warmup_ns: 8 * S, duration_ns: 20 * S, ..run }.run();
    assert!(real(&outcome, "goodput_bps") > 90e6);
    assert!(integer(&outcome, "timeouts") > 0, "a second of silence is a time-out");
}

#[test]
fn an_event_waits_for_the_rate_of_a_flow() {
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("cubic", json!({})), bulk());
    let when = json!({"kind": "flow_reaches", "flow": 0, "rate_bps": 80_000_000, "window_ns": 100 * MS});
    let events = vec![json!({"when": when, "action": {"kind": "rate", "link": 0, "rate_bps": 10_000_000}})];
    let outcome = Dumbbell { events, warmup_ns: 5 * S, ..run }.run();
    assert!(real(&outcome, "goodput_bps") < 11e6);
}

#[test]
fn constant_background_takes_its_share() {
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("cubic", json!({})), bulk());
    let background =
        vec![json!({"name": "bg", "route": [0], "rate_bps": 40_000_000, "packet_bytes": 1500, "start_ns": 0,
        "stop_ns": null, "on_off_ns": null, "enabled": true})];
    let outcome = Dumbbell { background, warmup_ns: 4 * S, duration_ns: 24 * S, ..run }.run();
    let goodput = real(&outcome, "goodput_bps");
    assert!((50e6..60e6).contains(&goodput), "{goodput}");
}

#[test]
fn two_flows_of_one_stack_share_a_line() {
    let run = Dumbbell::new(100_000_000, 10 * MS).flow("a", transport("reno", json!({})), bulk()).flow(
        "b",
        transport("reno", json!({})),
        bulk(),
    );
    let outcome = Dumbbell { duration_ns: 60 * S, ..run }.run();
    assert!(real(&outcome, "jain_index") > 0.9, "{}", real(&outcome, "jain_index"));
    assert!(real(&outcome, "line_share") > 0.9);
}

#[test]
fn a_wrong_spec_is_one_clear_error() {
    let run = Dumbbell::new(100_000_000, 10 * MS).flow("a", transport("nonesuch", json!({})), bulk());
    let error = experiment::simulate(&run.spec(), &mut |_| std::ops::ControlFlow::Continue(()))
        .expect_err("an unknown transport is refused");
    let text = error.to_string();
    assert!(text.contains("nonesuch") && text.contains("cubic"), "{text}");
}

#[test]
fn the_warm_up_counts_for_latency_lag_and_data_at_risk_and_stands_apart() {
    // The lost packets are of the first second; a round trip later all is as before.
    let loss = json!({"kind": "list", "packets": [5, 15, 25]});
    let writes = json!({"kind": "replicate", "writes": {"rate_bps": 2_000_000, "header_bytes": 0,
        "sizes": {"kind": "fixed", "bytes": 8192}, "arrivals": {"process": "constant"}}});
    let frames = json!({"kind": "constant_rate", "frame_bytes": 8192, "rate_bps": 2_000_000, "credits": null});
    for (work, what) in [(writes, "lag"), (frames, "latency")] {
        let run = |warmup_ns| {
            let run = Dumbbell::new(100_000_000, 40 * MS).flow("f", transport("reno", json!({})), work.clone());
            Dumbbell { loss: loss.clone(), warmup_ns, duration_ns: 4 * S, ..run }.run()
        };
        let (all, steady) = (run(0), run(S));
        let [p99, max] = [format!("{what}_p99_s"), format!("{what}_max_s")];
        let of_start_up = |name: &str| real(&steady, &format!("startup_{name}"));
        assert!(real(&steady, &max) < 0.03 && of_start_up(&max) > 0.06, "{}", of_start_up(&max));
        assert_eq!(real(&all, &max), of_start_up(&max));
        assert!(of_start_up(&p99) > real(&steady, &p99));
        assert!(!all.metrics.contains_key(format!("startup_{max}").as_str()), "no warm-up, nothing apart");
        if what == "lag" {
            assert_eq!(integer(&all, "lag_max_bytes"), integer(&steady, "startup_lag_max_bytes"));
            assert!(integer(&steady, "lag_max_bytes") < integer(&all, "lag_max_bytes") / 2);
        }
        // Without a warm-up the note explains the longest one.
        assert!(all.notes.iter().any(|note| note.contains("measure.warmup")), "{:?}", all.notes);
        assert!(steady.notes.is_empty(), "{:?}", steady.notes);
    }
}
