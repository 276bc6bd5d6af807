//! Loss-based congestion controls on a path: the window that a loss rate leaves, and what an overflow costs.

use crate::common::*;
use experiment::Outcome;
use serde_json::{json, Value};

/// Payload of a full packet with timestamps at MTU 1500.
const MSS: f64 = 1448.0;

/// One flow that loses every `period`-th packet over a line that stays empty: its mean window, rate x RTT, is
/// `expected` segments or up to `less` percent below, since nothing is gained in the round trip that a recovery takes.
#[track_caller]
fn holds(congestion: &str, parameters: Value, period: u64, expected: f64, less: f64) {
    let near = json!({"parameters": parameters, "initial_ssthresh": expected as u32});
    let run = Dumbbell::new(10_000_000_000, 20 * MS).flow("f", transport(congestion, near), bulk());
    let loss = json!({"kind": "every_nth", "n": period});
    let outcome = Dumbbell { loss, duration_ns: 25 * S, warmup_ns: 5 * S, ..run }.run();
    assert_eq!(integer(&outcome, "timeouts"), 0);
    let window = real(&outcome, "goodput_bps") * 0.02 / 8.0 / MSS;
    let off = (window / expected - 1.0) * 100.0;
    assert!(off < 3.0 && off > -less, "{window}, {off:.1} % off {expected}");
}

#[test]
fn highspeed_holds_the_rfcs_windows() {
    // RFC 3649's table: 263 segments at a loss rate of 1e-4, 1795 at 1e-5.
    holds("highspeed", json!({}), 10_000, 263.0, 6.0);
    holds("highspeed", json!({}), 100_000, 1795.0, 6.0);
}

#[test]
fn scalable_holds_a_over_b_p() {
    // Mean of an exponential between 1 - b and 1 of a / (b p). A loss costs two of its 14 round trips per cycle here.
    let mean = |b: f64, p: f64| 0.01 / p / -(1.0 - b).ln();
    holds("scalable", json!({}), 10_000, mean(0.125, 1e-4), 12.0);
    holds("scalable", json!({"b": 250_000}), 5_000, mean(0.25, 2e-4), 12.0);
}

#[test]
fn storage_friendly_holds_the_root_of_its_cap() {
    let capped = |cap: u32| json!({"congestion_avoidance": 0, "cap": cap});
    holds("storage_friendly", capped(10), 20_000, (10.0 * 7.5 / 5e-5_f64).sqrt(), 8.0);
    holds("storage_friendly", capped(1), 100_000, (7.5 / 1e-5_f64).sqrt(), 8.0);
}

/// One flow of storage_friendly without congestion avoidance against a queue of one BDP, begun near its limit.
fn overflows(cap: u32) -> Outcome {
    let change = json!({"parameters": {"congestion_avoidance": 0, "cap": cap}, "initial_ssthresh": 800});
    let run = Dumbbell::new(100_000_000, 100 * MS).flow("f", transport("storage_friendly", change), bulk());
    Dumbbell { duration_ns: 30 * S, warmup_ns: 5 * S, ..run }.run()
}

#[test]
fn a_cap_bounds_what_an_overflow_loses() {
    let mut last = u64::MAX;
    for cap in [200, 50, 10] {
        let outcome = overflows(u32::try_from(cap).expect("small"));
        let (dropped, times) = (integer(&outcome, "dropped_packets"), integer(&outcome, "fast_retransmits"));
        assert!(times >= 3, "{times} overflows under a cap of {cap}");
        // A round trip adds this much, and a quarter more while RACK waits for reordering.
        assert!(dropped <= times * (cap + cap / 4 + 2), "{dropped} packets in {times} overflows under a cap of {cap}");
        assert!(dropped < last);
        last = dropped;
        assert!(real(&outcome, "goodput_bps") > 0.99 * 1e8 * MSS / 1500.0);
    }
    // Without one an overflow loses hundreds of the 1660 packets that the path and its queue hold.
    let (free, last) = (overflows(0), last);
    let dropped = integer(&free, "dropped_packets");
    assert!(dropped > 200 * integer(&free, "fast_retransmits") && dropped > 50 * last, "{dropped}");
}

#[test]
fn highspeed_shares_evenly_and_scalable_keeps_what_it_has() {
    // A latecomer, 20 s behind; both lose when the queue overflows.
    let late = |congestion: &str| {
        let mut run = Dumbbell::new(100_000_000, 40 * MS).flow("f", transport(congestion, json!({})), bulk());
        run.flows.push(flow("late", 1, transport(congestion, json!({})), bulk(), 20 * S));
        let outcome = Dumbbell { duration_ns: 120 * S, ..run }.run();
        let [first, second] = [0, 1].map(|f| of_flow(&outcome, f, "delivered_bytes") as f64);
        // The first had the line, 96.5 Mbit/s, for 20 s.
        (first - 20.0 * 96.5e6 / 8.0) / second
    };
    let (highspeed, scalable) = (late("highspeed"), late("scalable"));
    assert!(highspeed < 1.15, "{highspeed}");
    assert!(scalable > 2.0, "{scalable}");
}
