//! Probes of a path, before a run and beside it.

use crate::common::{bulk, Hosts, Plan, S, TOKEN};
use serde_json::json;

#[test]
fn probes_tell_round_trip_and_loss_of_a_path() {
    let Some(hosts) = Hosts::new("probes") else { return };
    let [mut asks, mut answers] = hosts.agents();
    let [one, other] = Hosts::V6;
    let number = answers.send("probe", json!({"answers": true, "local": other, "peer": one, "token": TOKEN}));
    let port = answers.await_event("listening")["port"].clone();
    let probe = json!({"local": one, "peer": other, "port": port, "token": TOKEN, "count": 20, "interval_ms": 2});
    let found = asks.ask("probe", probe.clone());
    assert_eq!((&found["answer"]["probes"], &found["answer"]["lost"]), (&json!(20), &json!(0)), "{found}");
    let [least, median] = ["rtt_min_s", "rtt_median_s"].map(|name| found["answer"][name].as_f64().unwrap());
    assert!(least > 0.0 && least <= median && median < 0.5, "{found}");
    answers.send("stop", json!({"run": number}));
    let mut ended = vec![answers.finish().0, answers.finish().0];
    ended.retain(|answer| answer["answer"] == json!({}));
    assert_eq!(ended.len(), 2);
    let lost = asks.ask("probe", probe);
    assert_eq!((&lost["answer"]["lost"], &lost["answer"]["loss_ppm"]), (&json!(20), &json!(1_000_000)), "{lost}");
    assert!(lost["answer"].get("rtt_min_s").is_none());
}

#[test]
fn a_path_that_gets_worse_than_allowed_ends_the_run_and_one_that_does_not_is_described() {
    let Some(hosts) = Hosts::new("a harm guard") else { return };
    let mut agents = hosts.agents();
    let mut plan = Plan::new(S / 2).flow(&bulk(None));
    plan.more = json!({"guard": {"interval_ms": 10, "max_rtt_ms": 500.0, "max_loss_ppm": 900_000, "window": 10}});
    let (sent, _, _) = plan.run(&mut agents);
    assert!(sent["answer"]["probes"]["probes"].as_u64().unwrap() > 10, "{sent}");
    plan.duration_ns = 100 * S;
    plan.begin(&mut agents);
    while agents[0].await_event("progress")["delivered_bytes"] == 0 {}
    hosts.receiver.ip("link set wire down");
    let (harmed, events) = agents[0].finish();
    assert_eq!(harmed["error"]["kind"], "harm", "{harmed}");
    assert!(harmed["error"]["text"].as_str().unwrap().contains("probes were lost"), "{harmed}");
    assert!(events.iter().any(|event| event["event"] == "harm" && event["loss_ppm"].as_u64().unwrap() > 900_000));
}

#[test]
fn a_bound_of_the_round_trip_that_no_path_holds_ends_the_run() {
    let Some(hosts) = Hosts::new("a harm guard") else { return };
    let mut agents = hosts.agents();
    let mut plan = Plan::new(100 * S).flow(&bulk(None));
    plan.more = json!({"guard": {"interval_ms": 10, "max_rtt_ms": 0.0, "window": 5}});
    plan.begin(&mut agents);
    let (harmed, _) = agents[0].finish();
    assert_eq!(harmed["error"]["kind"], "harm", "{harmed}");
    assert!(harmed["error"]["text"].as_str().unwrap().contains("round trip"), "{harmed}");
    let (other, _) = agents[1].finish();
    assert_eq!(other["error"]["kind"], "peer", "{other}");
}
