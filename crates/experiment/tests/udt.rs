//! UDT as a transport of runs, beside TCP.

use crate::common::{bulk, integer, iscsi_session, of_flow, real, transport, Dumbbell, MS, S};
use experiment::{simulate, Outcome};
use serde_json::{json, Value};
use spec::RunSpec;
use std::ops::ControlFlow;

const RATE: u64 = 100_000_000;

fn udt(version: &str) -> Value {
    transport("cubic", json!({"udt": {"version": version}, "window_bytes": 4_000_000}))
}

fn alone(version: &str, workload: Value) -> Dumbbell {
    let mut run = Dumbbell::new(RATE, 40 * MS).flow("u", udt(version), workload);
    run.duration_ns = 20 * S;
    run
}

#[test]
fn a_path_is_filled_and_the_record_has_what_udt_has() {
    for version in ["udt4", "udt-2003"] {
        let mut run = alone(version, bulk());
        run.series_interval_ns = Some(100 * MS);
        let outcome = run.run();
        assert!(real(&outcome, "goodput_bps") > 0.8 * RATE as f64, "{version}");
        let flow = &outcome.flows[0];
        assert_eq!(flow["congestion_control"], experiment::Metric::Text(version.to_owned()));
        for absent in ["duplicate_acks", "tlp_probes", "spurious_recoveries"] {
            assert!(!flow.contains_key(absent), "{absent} is TCP's");
        }
        let series = &outcome.flow_series;
        assert_eq!(series.udt.sending_rate_bps.len(), series.time_s.len());
        let last = *series.udt.sending_rate_bps.last().expect("there are samples");
        assert!(last > 0.5 * RATE as f64 && last < 2.0 * RATE as f64, "{version}: {last}");
        let rtt = real(&outcome, "rtt_min_s");
        assert!((0.040..0.042).contains(&rtt), "{rtt}: the receiver's samples");
    }
}

#[test]
fn a_copy_ends_though_the_last_bytes_are_handed_over_by_a_timer() {
    for version in ["udt4", "udt-2003"] {
        let mut run = alone(version, json!({"kind": "bulk", "bytes": 1_000_001}));
        run.stop_when_done = true;
        let outcome = run.run();
        assert_eq!(integer(&outcome, "delivered_bytes"), 1_000_001);
        assert!(real(&outcome, "completion_s") < 2.0, "{version}");
    }
}

#[test]
fn messages_arrive_with_the_timer_of_acknowledgments() {
    let workload = json!({"kind": "constant_rate", "frame_bytes": 1000, "rate_bps": 1_000_000, "credits": null});
    let outcome = alone("udt-2003", workload).run();
    let mean = real(&outcome, "latency_mean_s");
    // 20 ms one way, and up to 10 ms until the receiver acknowledges.
    assert!((0.020..0.031).contains(&mean), "{mean}");
}

fn beside_cubic() -> RunSpec {
    let mut run = Dumbbell::new(RATE, 40 * MS).flow("tcp", transport("cubic", json!({})), bulk()).flow(
        "udt",
        udt("udt4"),
        bulk(),
    );
    run.duration_ns = 20 * S;
    run.series_interval_ns = Some(S);
    run.spec()
}

fn run(spec: &RunSpec) -> Outcome {
    simulate(spec, &mut |_| ControlFlow::Continue(())).expect("the run ends")
}

#[test]
fn tcp_and_udt_share_a_path_and_a_run_is_repeated_to_the_byte() {
    let (first, second) = (run(&beside_cubic()), run(&beside_cubic()));
    let delivered = |outcome: &Outcome, index| of_flow(outcome, index, "delivered_bytes");
    assert!(delivered(&first, 0) > 0 && delivered(&first, 1) > 0);
    assert_eq!(first.flows, second.flows);
    assert!(first.flow_series.udt.sending_rate_bps.iter().step_by(2).all(|rate| rate.is_nan()), "of flow 0, TCP");
    assert!(first.flow_series.udt.sending_rate_bps.iter().skip(1).step_by(2).all(|&rate| rate > 0.0));
}

#[test]
fn a_session_over_udt_is_refused_in_one_line() {
    let source = json!({"kind": "mix", "reads_e6": 0, "request_bytes": 4096, "random": false, "think_ns": 0,
                        "requests": 1, "span_bytes": null});
    let session = iscsi_session(json!({}), source);
    let mut spec = beside_cubic();
    spec.flows[1].workload = serde_json::from_value(session).expect("it is a session");
    let error = simulate(&spec, &mut |_| ControlFlow::Continue(())).expect_err("it is refused").to_string();
    assert!(error.contains("udt") && error.contains("transport") && !error.contains('\n'), "{error}");
}
