//! Windows of a measurement: what flows did between two times.

use crate::common::{bulk, integer, of_flow, transport, Dumbbell, MS, S};
use experiment::{simulate, Metric, Metrics, Outcome};
use serde_json::{json, Value};
use std::ops::ControlFlow;

/// Runs `run` with these windows.
fn measured(run: &Dumbbell, windows: &Value) -> Outcome {
    let mut spec = run.spec();
    spec.measure.windows = serde_json::from_value(windows.clone()).unwrap();
    simulate(&spec, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn number(row: &Metrics, name: &str) -> f64 {
    match row.get(name) {
        Some(Metric::Integer(value)) => *value as f64,
        Some(Metric::Real(value)) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

/// Two flows that lose packets at random.
fn lossy() -> Dumbbell {
    let run = Dumbbell::new(50_000_000, 20 * MS).flow("a", transport("cubic", json!({})), bulk()).flow(
        "b",
        transport("reno", json!({"ecn": true})),
        bulk(),
    );
    Dumbbell { loss: json!({"kind": "independent", "probability_e12": 1_000_000_000u64}), ..run }
}

#[test]
fn windows_side_by_side_add_up_to_the_run_and_change_nothing() {
    let windows =
        json!([{"name": "early", "from_ns": 0, "to_ns": 4 * S}, {"name": "late", "from_ns": 4 * S, "to_ns": 10 * S}]);
    let (plain, outcome) = (lossy().run(), measured(&lossy(), &windows));
    assert_eq!(plain.flows, outcome.flows);
    assert!(plain.windows.is_empty());
    let [early, early_a, _, late, late_a, late_b] = &outcome.windows[..] else {
        panic!("a row for each and its flows")
    };
    assert_eq!((early.get("flow"), late_b.get("flow")), (None, Some(&Metric::Text("b".to_owned()))));
    for name in ["delivered_bytes", "retransmitted_segments", "dropped_packets", "timeouts", "cwnd_reductions"] {
        let sum = number(early, name) + number(late, name);
        assert_eq!(sum, integer(&outcome, name) as f64, "{name} of the run");
        let sum = number(early_a, name) + number(late_a, name);
        assert_eq!(sum, of_flow(&outcome, 0, name) as f64, "{name} of a flow");
    }
    assert_eq!(number(late, "goodput_bps"), number(late, "delivered_bytes") * 8.0 / 6.0);
    assert!(number(early, "cwnd_reductions") > 0.0);
}

#[test]
fn a_window_counts_from_an_event() {
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("cubic", json!({})), bulk());
    let when = json!({"kind": "flow_reaches", "flow": 0, "rate_bps": 80_000_000, "window_ns": 100 * MS});
    let never = json!({"kind": "flow_reaches", "flow": 0, "rate_bps": 200_000_000, "window_ns": 100 * MS});
    let events = vec![
        json!({"when": when, "action": {"kind": "rate", "link": 0, "rate_bps": 20_000_000}}),
        json!({"when": never, "action": {"kind": "link_down", "link": 0}}),
    ];
    let windows = json!([{"name": "wake", "event": 0, "from_ns": S, "to_ns": 3 * S},
                         {"name": "never", "event": 1, "from_ns": 0, "to_ns": S}]);
    let outcome = measured(&Dumbbell { events, ..run }, &windows);
    let at = outcome.event_times_s[0].unwrap();
    let wake = &outcome.windows[0];
    assert!((number(wake, "from_s") - (at + 1.0)).abs() < 1e-9 && (number(wake, "to_s") - (at + 3.0)).abs() < 1e-9);
    let goodput = number(wake, "goodput_bps");
    assert!((goodput / (20e6 * 1448.0 / 1500.0) - 1.0).abs() < 0.02, "{goodput}");
    assert_eq!(outcome.windows[2].keys().collect::<Vec<_>>(), [&"name"]);
}

#[test]
fn the_mean_window_is_that_of_the_time_and_a_run_that_ends_ends_its_windows() {
    let transport = transport("reno", json!({"cwnd_clamp": 50}));
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport, json!({"kind": "bulk", "bytes": 10_000_000}));
    let windows =
        json!([{"name": "steady", "from_ns": S, "to_ns": 2 * S}, {"name": "rest", "from_ns": 2 * S, "to_ns": 9 * S}]);
    let outcome = measured(&Dumbbell { stop_when_done: true, ..run }, &windows);
    assert_eq!(number(&outcome.windows[0], "cwnd_mean_packets"), 50.0);
    let end = number(&outcome.windows[2], "to_s");
    assert!((2.0..4.0).contains(&end), "50 packets each 20 ms carry 10 MB in 2.8 s, {end}");
}
