//! Specs for tests: a dumbbell with knobs, as the Python front would hand it over.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod engines;
pub mod random_runs;

use experiment::{simulate, Metric, Outcome};
use serde_json::{json, Value};
use spec::{RunSpec, TransportSpec, FORMAT};
use std::ops::ControlFlow;

/// A dumbbell of one bottleneck: hosts sit on it directly.
pub struct Dumbbell {
    pub rate_bps: u64,
    pub rtt_ns: u64,
    pub queue: Value,
    pub loss: Value,
    pub reverse_loss: Value,
    pub duration_ns: u64,
    pub seed: u64,
    pub flows: Vec<Value>,
    pub events: Vec<Value>,
    pub background: Vec<Value>,
    pub series_interval_ns: Option<u64>,
    pub warmup_ns: u64,
    pub stop_when_done: bool,
}

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;

impl Dumbbell {
    pub fn new(rate_bps: u64, rtt_ns: u64) -> Dumbbell {
        let bdp = (u128::from(rate_bps) * u128::from(rtt_ns) / 8 / u128::from(S)) as u64;
        Dumbbell {
            rate_bps,
            rtt_ns,
            queue: json!({"kind": "drop_tail", "limit_bytes": bdp.max(30_000), "limit_packets": null}),
            loss: json!({"kind": "none"}),
            reverse_loss: json!({"kind": "none"}),
            duration_ns: 10 * S,
            seed: 1,
            flows: vec![],
            events: vec![],
            background: vec![],
            series_interval_ns: None,
            warmup_ns: 0,
            stop_when_done: false,
        }
    }

    pub fn flow(mut self, name: &str, transport: Value, workload: Value) -> Dumbbell {
        let start = 0;
        self.flows.push(flow(name, self.flows.len(), transport, workload, start));
        self
    }

    pub fn spec(&self) -> RunSpec {
        let link = |name: &str, from: usize, to: usize, loss: &Value| {
            json!({"name": name, "from": from, "to": to, "rate_bps": self.rate_bps, "delay_ns": self.rtt_ns / 2,
                   "queue": self.queue, "loss": loss, "jitter": null})
        };
        let spec = json!({
            "format": FORMAT, "seed": self.seed, "duration_ns": self.duration_ns, "stop_when_done": self.stop_when_done,
            "nodes": ["a", "b"],
            "links": [link("a->b", 0, 1, &self.loss), link("b->a", 1, 0, &self.reverse_loss)],
            "flows": self.flows, "background": self.background, "events": self.events,
            "measure": {"series_interval_ns": self.series_interval_ns, "warmup_ns": self.warmup_ns,
                        "pcap": null, "pcap_node": 0, "pcap_packets": null},
        });
        let spec: RunSpec = serde_json::from_value(spec).expect("the test's spec parses");
        let written = serde_json::to_value(&spec).expect("plain data");
        assert_eq!(spec, serde_json::from_value(written).expect("what is written can be read"));
        spec
    }

    pub fn run(&self) -> Outcome {
        simulate(&self.spec(), &mut |_| ControlFlow::Continue(())).expect("the run ends")
    }
}

pub fn flow(name: &str, group: usize, transport: Value, workload: Value, start_ns: u64) -> Value {
    json!({"name": name, "group": group, "source": 0, "destination": 1, "route": [0], "return_route": [1],
           "transport": transport, "start_ns": start_ns, "stop_ns": null, "workload": workload})
}

pub fn bulk() -> Value {
    json!({"kind": "bulk", "bytes": null})
}

/// The defaults around `congestion`, with `change` on top; but each segment alone, for which the tests' arithmetic is.
/// Bursts are the subject of the crate tcp's tests and of random runs.
pub fn transport(congestion: &str, change: Value) -> Value {
    let mut transport = serde_json::to_value(TransportSpec::default()).expect("plain data");
    transport["tso_autosizing"] = json!(false);
    transport["congestion_control"] = json!(congestion);
    for (key, value) in change.as_object().expect("a table of changes") {
        transport[key] = value.clone();
    }
    transport
}

pub fn real(outcome: &Outcome, name: &str) -> f64 {
    match outcome.metrics.get(name) {
        Some(Metric::Real(value)) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

pub fn integer(outcome: &Outcome, name: &str) -> u64 {
    match outcome.metrics.get(name) {
        Some(Metric::Integer(value)) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

pub fn of_flow(outcome: &Outcome, flow: usize, name: &str) -> u64 {
    match outcome.flows[flow].get(name) {
        Some(Metric::Integer(value)) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

/// A session with RFC 7143's defaults and an instant medium, with `change` on top.
pub fn iscsi_session(change: Value, source: Value) -> Value {
    let mut session = json!({
        "kind": "iscsi", "initial_r2t": true, "immediate_data": true, "max_burst_bytes": 262_144,
        "first_burst_bytes": 65_536, "initiator_max_recv_bytes": 8192, "target_max_recv_bytes": 8192,
        "max_outstanding_r2t": 1, "header_digest": false, "data_digest": false, "command_window": 128, "queue_depth": 1,
        "allegiance": "round_robin",
        "disk": {"model": null, "drive": null, "scheduler": null, "count": 1, "stripe_bytes": 65_536,
                 "size_bytes": 1u64 << 40},
        "source": source,
    });
    for (key, value) in change.as_object().expect("a table of changes") {
        session[key] = value.clone();
    }
    session
}
