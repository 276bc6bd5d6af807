//! A node of a page in mid path: it ends one TCP connection and begins another, which carries what came.

use crate::common::{bulk, flow, transport, MS, S};
use experiment::{simulate_with, Ends, Node, NodeNumber, Outcome, Parts, Side, Transport};
use serde_json::json;
use spec::RunSpec;
use std::ops::{ControlFlow, Range};
use units::Time;

/// Flow 0 ends at it, flow 1 begins at it.
struct Proxy {
    forwarded: u64,
    pumps: Vec<(usize, Side)>,
}

impl Proxy {
    fn forward<T: Transport>(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        let waiting = ends.end(0, Side::Receiver).bytes_received() - self.forwarded;
        let taken = ends.end(1, Side::Sender).write(now, waiting);
        if taken > 0 {
            self.forwarded += taken;
            self.pumps.push((1, Side::Sender));
        }
    }
}

impl<T: Transport> Node<T> for Proxy {
    fn flows(&self) -> Range<usize> {
        1..2
    }
    fn start(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        ends.end(1, Side::Sender).connect(now);
        self.pumps.push((1, Side::Sender));
    }
    fn stop(&mut self, _now: Time) {}
    fn handle_arrival(&mut self, now: Time, _flow: usize, _side: Side, ends: &mut Ends<'_, T>) -> bool {
        self.forward(now, ends);
        !self.pumps.is_empty()
    }
    fn handle_sent(&mut self, now: Time, _flow: usize, _side: Side, ends: &mut Ends<'_, T>) {
        self.forward(now, ends);
    }
    fn poll_pump(&mut self) -> Option<(usize, Side)> {
        self.pumps.pop()
    }
    fn done_at(&self) -> Option<Time> {
        None
    }
}

/// Nodes a, p, b in a row, 50 ms each way between two of them; 1 in 1000 packets of data is lost on the second half.
fn spec(flows: &[serde_json::Value]) -> RunSpec {
    let link = |from: usize, to: usize, n: Option<u64>| {
        let loss = n.map_or(json!({"kind": "none"}), |n| json!({"kind": "every_nth", "n": n}));
        json!({"name": format!("{from}->{to}"), "from": from, "to": to, "rate_bps": 100_000_000u64,
               "delay_ns": 25 * MS, "queue": {"kind": "drop_tail", "limit_bytes": 1_000_000, "limit_packets": null},
               "loss": loss, "jitter": null})
    };
    let mut spec = serde_json::to_value(json!({
        "format": 2, "seed": 1, "duration_ns": 60 * S, "stop_when_done": false, "nodes": ["a", "p", "b"],
        "links": [link(0, 1, None), link(1, 2, Some(1000)), link(2, 1, None), link(1, 0, None)],
        "background": [], "events": [],
        "measure": {"series_interval_ns": null, "warmup_ns": 0, "pcap": null, "pcap_node": 0, "pcap_packets": null},
    }))
    .expect("it is JSON");
    spec["flows"] = flows.into();
    serde_json::from_value(spec).expect("the test's spec parses")
}

fn leg(name: &str, group: usize, ends: [usize; 2], route: &[usize], back: &[usize]) -> serde_json::Value {
    let mut leg = flow(name, group, transport("reno", json!({"send_buffer_bytes": 4_000_000})), bulk(), 0);
    (leg["source"], leg["destination"]) = (ends[0].into(), ends[1].into());
    (leg["route"], leg["return_route"]) = (route.into(), back.into());
    leg
}

fn delivered(outcome: &Outcome, flow: usize) -> u64 {
    crate::common::of_flow(outcome, flow, "delivered_bytes")
}

#[test]
fn a_connection_that_is_ended_in_mid_path_recovers_within_half_the_round_trip() {
    let whole = spec(&[leg("whole", 0, [0, 2], &[0, 1], &[2, 3])]);
    let whole = experiment::simulate(&whole, &mut |_| ControlFlow::Continue(())).expect("the run ends");
    let halves = spec(&[leg("near", 0, [0, 1], &[0], &[3]), leg("far", 1, [1, 2], &[1], &[2])]);
    let proxy = Some(NodeNumber::new(0));
    let parts = Parts {
        maker: experiment::Algorithms::default(),
        nodes: vec![Proxy { forwarded: 0, pumps: vec![] }],
        of_ends: vec![[None, proxy], [proxy, None]],
        probes: vec![],
    };
    let halves = simulate_with(&halves, parts, &mut |_| ControlFlow::Continue(())).expect("the run ends");
    assert!(delivered(&halves, 1) <= delivered(&halves, 0), "it forwards what has come");
    // Reno's rate goes with one over the round trip: half of it, and twice as much.
    let (split, direct) = (delivered(&halves, 1) as f64, delivered(&whole, 0) as f64);
    assert!((1.6..2.6).contains(&(split / direct)), "{split} and {direct} bytes");
}
