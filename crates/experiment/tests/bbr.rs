//! BBR on a line: full, with a short queue, whatever the line loses; and beside others.

use crate::common::*;
use experiment::{Metric, Outcome};
use serde_json::json;

/// Share of the line's capacity in full segments.
fn share(outcome: &Outcome, flow: usize) -> f64 {
    match outcome.flows[flow].get("goodput_bps") {
        Some(Metric::Real(bps)) => bps / (100e6 * 1448.0 / 1500.0),
        other => panic!("goodput is {other:?}"),
    }
}

/// 100 Mbit/s, 40 ms, a queue of one product, `loss` in 10^12.
fn line(loss: u64) -> Dumbbell {
    let loss = json!({"kind": "independent", "probability_e12": loss});
    let run = Dumbbell::new(100_000_000, 40 * MS);
    Dumbbell { loss, warmup_ns: 5 * S, duration_ns: 35 * S, series_interval_ns: Some(5 * MS), ..run }
}

fn bbr() -> serde_json::Value {
    transport("bbr", json!({}))
}

/// Waiting bytes from 5 s on, in order of size.
fn queue(outcome: &Outcome) -> Vec<u64> {
    let series = &outcome.link_series;
    let mut bytes: Vec<u64> = (0..series.link.len())
        .filter(|&i| series.link[i] == 0 && series.time_s[i] > 5.0)
        .map(|i| series.queue_bytes[i])
        .collect();
    bytes.sort_unstable();
    bytes
}

#[test]
fn losses_of_the_line_do_not_matter() {
    // Pacing leaves 1 %; 200 ms and a round trip of every 10 s go to probe_rtt; lost segments are sent again.
    for (loss, least) in [(0, 0.96), (100_000_000, 0.96), (10_000_000_000, 0.94), (50_000_000_000, 0.87)] {
        let outcome = line(loss).flow("f", bbr(), bulk()).run();
        let got = share(&outcome, 0);
        assert!(got > least, "{got} at {loss}e-12");
        assert_eq!(integer(&outcome, "timeouts"), 0);
    }
}

#[test]
fn the_queue_is_what_one_phase_of_eight_puts_there() {
    let outcome = line(0).flow("f", bbr(), bulk()).run();
    let bytes = queue(&outcome);
    let product = 500_000;
    let mean = bytes.iter().sum::<u64>() / bytes.len() as u64;
    // A quarter more for an RTT: a quarter of the product at its height, gone an RTT later; else nothing but a few
    // packets.
    let top = bytes[bytes.len() * 99 / 100];
    assert!(mean < product / 16, "{mean}");
    assert!((product / 5..product * 3 / 10).contains(&top), "{top}");
    assert!(bytes[bytes.len() / 2] < 4_500, "{}", bytes[bytes.len() / 2]);
    // It is 4 segments that probe_rtt leaves in flight.
    let least = outcome.flow_series.cwnd_packets.iter().min();
    assert_eq!(least, Some(&4));
}

#[test]
fn two_of_them_share_the_line() {
    let mut run = line(0).flow("a", bbr(), bulk()).flow("b", bbr(), bulk());
    run.flows[1]["start_ns"] = json!(3 * S);
    let outcome = Dumbbell { warmup_ns: 20 * S, duration_ns: 80 * S, ..run }.run();
    assert!(real(&outcome, "jain_index") > 0.98, "{}", real(&outcome, "jain_index"));
    assert!(share(&outcome, 0) + share(&outcome, 1) > 0.95);
    // Each overrates its share, so that the window and not the pace is what bounds them: two products in flight.
    let bytes = queue(&outcome);
    let median = bytes[bytes.len() / 2];
    assert!((350_000..=500_000).contains(&median), "{median}");
}

#[test]
fn an_interactive_flow_keeps_its_estimate() {
    // Bursts of 100 segments with pauses: rate samples of the bursts' ends are the application's, and must not lower
    // it.
    let work = json!({"kind": "constant_rate", "frame_bytes": 144_800, "rate_bps": 20_000_000, "credits": null});
    let outcome = Dumbbell { duration_ns: 20 * S, ..line(0).flow("f", bbr(), work) }.run();
    // 2 products of 333 segments, and what comes ahead of the rate, although a fifth of that is used.
    let series = &outcome.flow_series;
    let settled: Vec<u32> = (0..series.time_s.len())
        .filter(|&i| (5.0..18.0).contains(&series.time_s[i]))
        .map(|i| series.cwnd_packets[i])
        .collect();
    assert!(settled.iter().all(|&cwnd| (650..800).contains(&cwnd)), "{settled:?}");
    let goodput = real(&outcome, "goodput_bps");
    assert!((goodput / 20e6 - 1.0).abs() < 0.01, "{goodput}");
    // 100 segments at the line's rate are 12 ms; half of the 40 ms of the path.
    let latency = real(&outcome, "latency_p50_s");
    assert!((0.032..0.034).contains(&latency), "{latency}");
}

#[test]
fn beside_cubic_the_queue_decides() {
    // As is known of version 1: with a short queue cubic is driven out, with a long one it takes its part.
    let beside = |products: u64| {
        let queue = json!({"kind": "drop_tail", "limit_bytes": 500_000 * products, "limit_packets": null});
        let run = line(0).flow("bbr", bbr(), bulk()).flow("cubic", transport("cubic", json!({})), bulk());
        let outcome = Dumbbell { queue, warmup_ns: 20 * S, duration_ns: 80 * S, ..run }.run();
        share(&outcome, 0)
    };
    let (short, long) = (beside(1), beside(4));
    assert!(short > 0.75 && (0.25..0.6).contains(&long), "{short} and {long}");
}
