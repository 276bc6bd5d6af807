//! Delay-based congestion controls on a path: what they keep queued, against what their equations say.

mod common;

use common::*;
use lab::Outcome;
use serde_json::{json, Value};

const RATE: u64 = 100_000_000;

/// `flows` of one stack from the start over 100 Mbit/s and `rtt_ms`, with a buffer that holds them. They begin gently, so
/// that each sees the path's own RTT before there is a queue: what all of them add to it is all that is looked at.
fn run(congestion: &str, parameters: Value, flows: usize, rtt_ms: u64) -> Outcome {
    let mut run = Dumbbell::new(RATE, rtt_ms * MS);
    for i in 0..flows {
        let gently = json!({"parameters": parameters, "initial_cwnd": 2, "initial_ssthresh": 20});
        run = run.flow(&format!("f{i}"), stack(congestion, gently), bulk());
    }
    let queue = json!({"kind": "drop_tail", "limit_bytes": 3_000_000, "limit_packets": null});
    Dumbbell { queue, duration_ns: 60 * S, warmup_ns: 30 * S, series_interval_ns: Some(7 * MS), ..run }.run()
}

/// Mean queue of the bottleneck over the second half, packets; the one being sent counts.
fn queued(outcome: &Outcome) -> f64 {
    let series = &outcome.link_series;
    let bottleneck = (0..series.time_s.len()).filter(|&i| series.link[i] == 0 && series.time_s[i] > 30.0);
    let packets: Vec<f64> = bottleneck.map(|i| series.queue_packets[i] as f64).collect();
    assert!(packets.len() > 1000);
    packets.iter().sum::<f64>() / packets.len() as f64
}

/// Greatest difference between two windows of flow 0 in the second half.
fn swing(outcome: &Outcome) -> u32 {
    let series = &outcome.flow_series;
    let mine = (0..series.time_s.len()).filter(|&i| series.flow[i] == 0 && series.time_s[i] > 30.0);
    let windows: Vec<u32> = mine.map(|i| series.cwnd_packets[i]).collect();
    windows.iter().max().expect("samples") - windows.iter().min().expect("samples")
}

#[test]
fn fast_keeps_alpha_segments_queued_per_flow() {
    // Jin, Wei, Low: at equilibrium each flow has alpha segments in the queue, whatever the RTT. What is in the queue
    // besides: the second segment of each pair that a delayed ACK releases.
    for (alpha, flows, rtt_ms) in [(20, 1, 40), (100, 1, 40), (100, 1, 10), (400, 1, 40), (50, 2, 40), (50, 4, 40)] {
        let outcome = run("fast", json!({"alpha": alpha}), flows, rtt_ms);
        let (queue, expected) = (queued(&outcome), alpha as f64 * flows as f64);
        assert!(
            (queue - expected).abs() <= 2.0 + 0.05 * expected,
            "{flows} flows with alpha {alpha} at {rtt_ms} ms: {queue} packets queued"
        );
        assert!(swing(&outcome) <= 4, "the window rests: {}", swing(&outcome));
        assert!(real(&outcome, "goodput_bps") > 0.995 * 100e6 * 1448.0 / 1500.0);
    }
}

#[test]
fn fast_shares_alike() {
    let outcome = run("fast", json!({"alpha": 50}), 4, 40);
    let jain = real(&outcome, "jain_index");
    assert!(jain > 0.99, "{jain}");
}

#[test]
fn vegas_keeps_alpha_to_beta_segments_queued() {
    // Linux's diff is W (RTT - base) / base: at 2 .. 4 segments of 333 the same as the paper's.
    for (alpha, beta) in [(2, 4), (20, 30), (100, 110)] {
        let outcome = run("vegas", json!({"alpha": alpha, "beta": beta}), 1, 40);
        let queue = queued(&outcome);
        // diff = q (1 + q / 333) lies between alpha and beta; two more stand there for the delayed ACK.
        let q = |diff: f64| 333.0 / 2.0 * ((1.0 + 4.0 * diff / 333.0).sqrt() - 1.0);
        let (low, high) = (q(f64::from(alpha)), q(f64::from(beta)));
        assert!((low - 1.0..=high + 2.0).contains(&queue), "{queue} outside {low} .. {high}");
        assert!(swing(&outcome) <= 1, "the window rests: {}", swing(&outcome));
    }
}

#[test]
fn compound_fills_an_empty_path_far_faster_than_reno() {
    // Tan et al.: on average 0.25 / p^0.8 segments, 404 at 1e-4, while there is no queue; Reno has sqrt(1.5 / p) = 122.
    // Delayed ACKs cost Reno nothing here: bytes are counted.
    let mean = |congestion: &str| {
        let run = Dumbbell::new(1_000_000_000, 50 * MS).flow("f", stack(congestion, json!({})), bulk());
        let loss = json!({"kind": "independent", "probability_e12": 100_000_000u64});
        let outcome = Dumbbell { loss, duration_ns: 230 * S, warmup_ns: 30 * S, ..run }.run();
        real(&outcome, "goodput_bps") * 0.05 / (1448.0 * 8.0)
    };
    let (compound, reno) = (mean("compound"), mean("reno"));
    assert!((compound / 404.7 - 1.0).abs() < 0.12, "{compound} segments");
    assert!((reno / 122.5 - 1.0).abs() < 0.12, "{reno} segments");
}

#[test]
fn compound_leaves_reno_its_share() {
    let run = Dumbbell::new(RATE, 40 * MS).flow("c", stack("compound", json!({})), bulk()).flow(
        "r",
        stack("reno", json!({})),
        bulk(),
    );
    let outcome = Dumbbell { duration_ns: 120 * S, warmup_ns: 20 * S, ..run }.run();
    let jain = real(&outcome, "jain_index");
    assert!(jain > 0.97, "{jain}");
}
