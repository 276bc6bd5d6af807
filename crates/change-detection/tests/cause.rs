//! Causes of simulated cases.

use change_detection::cause::{likely_cause, Cause, Evidence};
use serde_json::{json, Value};

fn delays(min_ms: f64, median_ms: f64, p95_ms: f64) -> Value {
    json!({"min_s": min_ms / 1e3, "median_s": median_ms / 1e3, "p95_s": p95_ms / 1e3})
}

fn change(quantity: &str, before: f64, after: f64) -> Value {
    json!({"quantity": quantity, "before": before, "after": after})
}

fn cause(evidence: Value) -> (Cause, Vec<Cause>, String) {
    let evidence: Evidence = serde_json::from_value(evidence).unwrap();
    let verdict = likely_cause(&evidence);
    assert!(!verdict.evidence.is_empty());
    (verdict.cause, verdict.also, verdict.evidence.join("; "))
}

#[test]
fn a_longer_route_moves_ttl_and_the_least_round_trip() {
    let (found, _, text) = cause(json!({
        "changes": [change("rtt_s", 0.032, 0.048), change("ttl", 57.0, 55.0)],
        "rtt_before": delays(32.0, 32.3, 34.0), "rtt_after": delays(48.0, 48.3, 50.0),
    }));
    assert_eq!(found, Cause::Route);
    assert!(text.contains("57 to 55") && text.contains("16.00 ms"), "{text}");
    let below_ip = json!({
        "changes": [change("rtt_s", 0.032, 0.040)],
        "rtt_before": delays(32.0, 32.3, 34.0), "rtt_after": delays(40.0, 40.3, 42.0),
    });
    assert_eq!(cause(below_ip).0, Cause::Route);
}

#[test]
fn a_queue_spreads_round_trips_and_leaves_the_least() {
    let (found, also, _) = cause(json!({
        "changes": [change("rtt_s", 0.032, 0.045), change("loss", 1e-6, 1e-3), change("available_bps", 4e8, 1e8)],
        "rtt_before": delays(32.0, 32.3, 34.0), "rtt_after": delays(32.1, 45.0, 70.0),
    }));
    assert_eq!(found, Cause::Queue);
    assert_eq!(also, [Cause::Loss]);
}

#[test]
fn loss_without_a_queue_is_loss_or_a_policer() {
    let still = (delays(32.0, 32.3, 34.0), delays(32.0, 32.3, 34.1));
    let of = |changes: Value, policer: Value| {
        cause(json!({"changes": changes, "rtt_before": still.0, "rtt_after": still.1, "policer": policer})).0
    };
    let loss = change("loss", 1e-6, 1e-3);
    let down = change("throughput_bps", 8e8, 1e8);
    assert_eq!(of(json!([loss]), Value::Null), Cause::Loss);
    assert_eq!(of(json!([loss, down]), Value::Null), Cause::Policer);
    assert_eq!(of(json!([loss, down]), json!(false)), Cause::Loss);
    assert_eq!(of(json!([down]), json!(true)), Cause::Policer);
    assert_eq!(of(json!([down, change("capacity_bps", 1e9, 1e8)]), Value::Null), Cause::Capacity);
}

#[test]
fn an_end_host_is_told_from_the_path() {
    let busy = json!({
        "changes": [change("rtt_s", 0.032, 0.040)],
        "rtt_before": delays(32.0, 32.3, 34.0), "rtt_after": delays(32.0, 40.0, 80.0),
        "hosts": [{"name": "far", "cpu": 0.99, "late": 0.2}],
    });
    let (found, also, text) = cause(busy);
    assert_eq!((found, also), (Cause::EndHost, vec![Cause::Queue]));
    assert!(text.contains("20.0 % of the packets of far were late"), "{text}");
}

#[test]
fn a_clock_that_steps_moves_both_directions_and_no_round_trip() {
    let moved = json!([change("forward_delay_s", 0.016, 0.021), change("reverse_delay_s", 0.016, 0.011)]);
    assert_eq!(cause(json!({"changes": moved})).0, Cause::ClockStep);
    let longer = json!([change("forward_delay_s", 0.016, 0.021), change("rtt_s", 0.032, 0.037),]);
    let shape = (delays(32.0, 32.3, 34.0), delays(37.0, 37.3, 39.0));
    let hosts = json!([{"name": "far", "clock_step_s": 0.005}]);
    let evidence = json!({"changes": longer, "rtt_before": shape.0, "rtt_after": shape.1, "hosts": hosts});
    assert_eq!(cause(evidence).0, Cause::Route);
}

#[test]
fn what_no_rule_decides_is_unknown() {
    assert_eq!(cause(json!({"changes": [change("throughput_bps", 8e8, 4e8)]})).0, Cause::Unknown);
    assert_eq!(cause(json!({"changes": [change("rtt_s", 0.032, 0.040)]})).0, Cause::Unknown);
    assert_eq!(cause(json!({"changes": []})).0, Cause::Unknown);
    assert_eq!(cause(json!({"changes": [change("silent", 0.0, 1.0)]})).0, Cause::Outage);
}
