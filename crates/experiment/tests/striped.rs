//! A workload over several connections: the load is the flow's, and a mirror applies its writes in order.

use crate::common::*;
use experiment::{Metric, Metrics, Outcome};
use serde_json::{json, Value};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/tpcc-small.trace");

fn replicate() -> Value {
    slowed(1)
}

fn slowed(factor: u64) -> Value {
    json!({"kind": "replicate", "trace": {"path": TRACE, "format": "auto", "time_scale_e6": factor * 1_000_000,
           "looped": true, "header_bytes": 48}})
}

fn offered(credits: Option<u64>) -> Value {
    json!({"kind": "constant_rate", "frame_bytes": 2112, "rate_bps": 50_000_000, "credits": credits})
}

/// `run` with one flow over `connections`, which share `workload`, opened `stagger_ns` after one another.
fn striped(run: Dumbbell, connections: u64, workload: &Value, stagger_ns: u64, change: &Value) -> Dumbbell {
    let flows = (0..connections).map(|index| {
        let name = if connections == 1 { "f".to_owned() } else { format!("f.{}", index + 1) };
        let mut flow = flow(&name, 0, transport("reno", change.clone()), workload.clone(), index * stagger_ns);
        flow["distribution"] = json!("striped");
        flow
    });
    Dumbbell { flows: flows.collect(), ..run }
}

fn lossy(per_million: u64) -> Value {
    json!({"kind": "independent", "probability_e12": per_million * 1_000_000})
}

fn value(metrics: &Metrics, name: &str) -> f64 {
    match metrics.get(name) {
        Some(Metric::Real(value)) => *value,
        Some(Metric::Integer(value)) => *value as f64,
        other => panic!("{name} is {other:?}"),
    }
}

fn of_entry(outcome: &Outcome, name: &str) -> f64 {
    value(&outcome.entries[0], name)
}

#[test]
fn the_load_does_not_grow_with_the_connections() {
    for work in [offered(None), replicate()] {
        let runs: Vec<_> = [1, 2, 8]
            .map(|n| striped(Dumbbell::new(1_000_000_000, 20 * MS), n, &work, 0, &json!({})).run())
            .into_iter()
            .collect();
        for run in &runs {
            assert_eq!(integer(run, "offered_bytes"), integer(&runs[0], "offered_bytes"));
            assert_eq!(integer(run, "messages"), integer(&runs[0], "messages"));
        }
    }
}

#[test]
fn one_connection_that_shares_with_nobody_is_as_one_that_has_the_workload_for_itself() {
    for work in [offered(None), offered(Some(40)), replicate()] {
        let run = || Dumbbell { loss: lossy(300), ..Dumbbell::new(100_000_000, 20 * MS) };
        let shared = striped(run(), 1, &work, 0, &json!({})).run();
        let own = run().flow("f", transport("reno", json!({})), work).run();
        let differs = |name: &&&str| own.metrics.get(**name) != shared.metrics.get(**name);
        let different: Vec<_> = own.metrics.keys().collect::<Vec<_>>().into_iter().filter(|n| differs(n)).collect();
        assert!(different.is_empty(), "{different:?}");
    }
}

#[test]
fn every_write_arrives_and_counts_once_whichever_connection_carried_it() {
    let run = Dumbbell { loss: lossy(1000), duration_ns: 5 * S, ..Dumbbell::new(1_000_000_000, 40 * MS) };
    let outcome = striped(run, 4, &replicate(), 0, &json!({})).run();
    let messages: u64 = (0..4).map(|lane| of_flow(&outcome, lane, "messages")).sum();
    assert_eq!(messages, integer(&outcome, "messages"));
    assert!((0..4).all(|lane| of_flow(&outcome, lane, "messages") > messages / 10), "no connection is left out");
    assert_eq!(outcome.entries.len(), 1);
    assert_eq!(outcome.entries[0].get("name"), Some(&Metric::Text("f".into())));
    assert!(real(&outcome, "drain_s") > 0.0 && outcome.notes.is_empty(), "{:?}", outcome.notes);
    for name in ["lag_p50_s", "lag_p99_s", "lag_max_s", "lag_max_bytes", "drain_s"] {
        assert_eq!(of_entry(&outcome, name), value(&outcome.metrics, name), "{name}");
    }
}

#[test]
fn a_write_waits_for_an_earlier_one_on_another_connection() {
    // The first data packets of the connections are in flight at the same time; one of them is lost.
    let loss = json!({"kind": "list", "packets": [400]});
    let run = || Dumbbell { duration_ns: 2 * S, loss: loss.clone(), ..Dumbbell::new(1_000_000_000, 100 * MS) };
    let outcome = striped(run(), 8, &slowed(20), 0, &json!({})).run();
    let clean = striped(Dumbbell { loss: json!({"kind": "none"}), ..run() }, 8, &slowed(20), 0, &json!({})).run();
    assert_eq!(integer(&outcome, "retransmitted_segments"), 1);
    // One connection in eight repairs for a round trip, and the mirror stands still meanwhile.
    let (with, without) = (real(&outcome, "lag_max_s"), real(&clean, "lag_max_s"));
    assert!(with > without + 0.09, "{with}, without the loss {without}");
    assert!(integer(&outcome, "lag_max_bytes") > integer(&clean, "lag_max_bytes"));
}

#[test]
fn frames_do_not_wait_for_those_of_other_connections() {
    let lost: Vec<u64> = (1..=20).map(|n| 1500 * n).collect();
    let loss = json!({"kind": "list", "packets": lost});
    let run = Dumbbell { duration_ns: 120 * S, loss, ..Dumbbell::new(1_000_000_000, 100 * MS) };
    let work = json!({"kind": "constant_rate", "frame_bytes": 2112, "rate_bps": 5_000_000, "credits": null});
    let outcome = striped(run, 8, &work, 0, &json!({})).run();
    // 35,400 frames, 30 of them before the connections are made. A loss makes those of one connection in eight late for
    // a round trip or two, 160 at most; did the others wait for them, it would be 600 at least.
    let late = real(&outcome, "latency_max_s");
    assert_eq!(integer(&outcome, "dropped_packets"), 20);
    assert!(late > 0.14 && real(&outcome, "latency_p99_s") < 0.06, "{late}");
}

#[test]
fn data_at_risk_over_time_adds_up_over_connections() {
    let run = Dumbbell { loss: lossy(1000), series_interval_ns: Some(MS), ..Dumbbell::new(1_000_000_000, 40 * MS) };
    let outcome = striped(Dumbbell { duration_ns: 3 * S, ..run }, 4, &replicate(), 0, &json!({})).run();
    let series = &outcome.flow_series;
    let most = series.lag_bytes.chunks(4).map(|lanes| lanes.iter().sum::<u64>()).max().unwrap();
    let largest = integer(&outcome, "lag_max_bytes");
    assert!(most <= largest && most > largest * 8 / 10, "{most} of {largest}");
    let longest = series.lag_s.iter().copied().fold(0.0, f64::max);
    assert!(longest <= real(&outcome, "lag_max_s") && longest > 0.8 * real(&outcome, "lag_max_s"), "{longest}");
}

#[test]
fn a_copy_is_delivered_once_over_all_connections_and_ends_with_its_last_byte() {
    let bytes = 30_000_001u64;
    let work = json!({"kind": "bulk", "bytes": bytes});
    for (connections, stagger_ns) in [(1, 0), (3, 0), (8, 10 * MS), (4, 2 * S)] {
        let run = Dumbbell {
            loss: lossy(300),
            duration_ns: 60 * S,
            stop_when_done: true,
            ..Dumbbell::new(100_000_000, 20 * MS)
        };
        let outcome = striped(run, connections, &work, stagger_ns, &json!({})).run();
        assert_eq!(integer(&outcome, "delivered_bytes"), bytes);
        let completion = of_entry(&outcome, "completion_s");
        assert!((completion - real(&outcome, "simulated_s")).abs() < 1e-9, "{completion}");
        assert!((of_entry(&outcome, "goodput_bps") - bytes as f64 * 8.0 / completion).abs() < 1.0);
        assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    }
}

#[test]
fn a_connection_that_gets_on_faster_takes_more_of_a_copy() {
    let work = json!({"kind": "bulk", "bytes": 40_000_000});
    let run = striped(
        Dumbbell { duration_ns: 60 * S, stop_when_done: true, ..Dumbbell::new(1_000_000_000, 20 * MS) },
        2,
        &work,
        0,
        &json!({}),
    );
    let mut flows = run.flows.clone();
    flows[1]["transport"]["window_bytes"] = json!(100_000);
    let outcome = Dumbbell { flows, ..run }.run();
    let [fast, slow] = [0, 1].map(|lane| of_flow(&outcome, lane, "delivered_bytes"));
    assert!(fast > 4 * slow, "{fast} and {slow}");
    // Both end at about the same time: two blocks of 256 KiB are all that the slower one may have left.
    let [first, second] = [0, 1].map(|lane| value(&outcome.flows[lane], "completion_s"));
    assert!((first - second).abs() < 0.11, "{first} and {second}");
}

#[test]
fn a_copy_keeps_its_connections_as_full_as_one_that_is_all_written_at_once() {
    let run = || Dumbbell { duration_ns: 60 * S, stop_when_done: true, ..Dumbbell::new(1_000_000_000, 50 * MS) };
    let own = run().flow("f", transport("cubic", json!({})), json!({"kind": "bulk", "bytes": 500_000_000})).run();
    let mut shared = striped(run(), 1, &json!({"kind": "bulk", "bytes": 500_000_000}), 0, &json!({}));
    shared.flows[0]["transport"]["congestion_control"] = json!("cubic");
    let (own, shared) = (real(&own, "simulated_s"), real(&shared.run(), "simulated_s"));
    assert!((shared / own - 1.0).abs() < 0.01, "{shared} s, all at once {own} s");
}

#[test]
fn a_small_send_buffer_holds_a_striped_copy_back_and_loses_nothing_of_it() {
    let work = json!({"kind": "bulk", "bytes": 5_000_000});
    let run = Dumbbell { duration_ns: 60 * S, stop_when_done: true, ..Dumbbell::new(1_000_000_000, 20 * MS) };
    let outcome = striped(run, 2, &work, 0, &json!({"send_buffer_bytes": 50_000})).run();
    assert_eq!(integer(&outcome, "delivered_bytes"), 5_000_000);
    // Two connections of 50 kB per 20 ms.
    assert!(of_entry(&outcome, "completion_s") > 0.9);
}

#[test]
fn credits_are_those_of_the_flow() {
    let run = Dumbbell { duration_ns: 4 * S, ..Dumbbell::new(1_000_000_000, 100 * MS) };
    let outcome = striped(run, 4, &offered(Some(10)), 0, &json!({})).run();
    // Ten frames per half a round trip.
    let most = 10.0 * 2112.0 * 8.0 / 0.05;
    let goodput = real(&outcome, "goodput_bps");
    assert!(goodput < most * 1.01 && goodput > most * 0.9, "{goodput} of {most}");
}

#[test]
fn connections_that_share_must_have_the_same_workload() {
    let mut run = striped(Dumbbell::new(100_000_000, 20 * MS), 2, &offered(None), 0, &json!({}));
    run.flows[1]["workload"] = offered(Some(3));
    let error = experiment::simulate(&run.spec(), &mut |_| std::ops::ControlFlow::Continue(()))
        .expect_err("it is refused")
        .to_string();
    assert!(error.contains("f.2") && error.contains("share a workload"), "{error}");
}
