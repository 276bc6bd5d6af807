//! Fibre Channel gateways over simulated TCP: closed forms of throughput and latency; no frame is lost or comes twice.

use crate::common::*;
use experiment::{simulate, Metrics, Outcome};
use serde_json::{json, Value};
use spec::RunSpec;
use std::ops::ControlFlow;

/// 1GFC without its line code, bit/s.
const GFC1: u64 = 850_000_000;
const PAYLOAD: u64 = 2112;
/// Header and CRC of a frame; delimiters and least gap on the line; encapsulation header and delimiters in TCP.
const CONTENT: u64 = PAYLOAD + 24 + 4;
const ON_LINE: u64 = CONTENT + 8 + 24;
const IN_TCP: u64 = CONTENT + 28 + 8;
/// IP and TCP headers with timestamps.
const HEADERS: u64 = 52;
const RTT: u64 = 20 * MS;

/// Two gateways with 1 Gbit/s and 20 ms between them.
struct Sans {
    protocol: &'static str,
    pairs: usize,
    connections: usize,
    load_bps: u64,
    /// Near and far.
    gateways: [Value; 2],
    transport: Value,
    run: Dumbbell,
    stop_ns: Option<u64>,
}

/// A gateway whose ports have 1GFC, no distance and credits for all.
fn gateway(node: usize, change: Value) -> Value {
    let mut gateway = json!({"node": node, "rate_bps": GFC1, "delay_ns": 0, "credits": 64, "buffer_bytes": 262_144});
    for (key, value) in change.as_object().expect("a table of changes") {
        gateway[key] = value.clone();
    }
    gateway
}

impl Sans {
    fn new(protocol: &'static str, pairs: usize, connections: usize, load_bps: u64) -> Sans {
        let run = Dumbbell { duration_ns: 4 * S, warmup_ns: 2 * S, ..Dumbbell::new(1_000_000_000, RTT) };
        let gateways = [gateway(0, json!({})), gateway(1, json!({}))];
        let transport = transport("cubic", json!({}));
        Sans { protocol, pairs, connections, load_bps, gateways, transport, run, stop_ns: None }
    }

    fn spec(&self) -> RunSpec {
        let workload = json!({
            "kind": "fc", "protocol": self.protocol, "pairs": self.pairs,
            "load": {"rate_bps": self.load_bps, "sizes": {"kind": "fixed", "bytes": PAYLOAD},
                     "arrivals": {"process": "constant"}, "queue_frames": 64},
        });
        let flows = (0..self.connections).map(|index| {
            let mut flow = flow(&format!("san.{}", index + 1), 0, self.transport.clone(), workload.clone(), 0);
            flow["stop_ns"] = json!(self.stop_ns);
            flow
        });
        let mut spec = serde_json::to_value(Dumbbell { flows: flows.collect(), ..clone(&self.run) }.spec()).unwrap();
        spec["gateways"] = json!(self.gateways);
        serde_json::from_value(spec).expect("the test's spec parses")
    }

    fn run(&self) -> Outcome {
        simulate(&self.spec(), &mut |_| ControlFlow::Continue(())).expect("the run ends")
    }

    fn error(&self) -> String {
        let Err(error) = simulate(&self.spec(), &mut |_| ControlFlow::Continue(())) else { panic!("it is refused") };
        error.to_string()
    }
}

fn clone(run: &Dumbbell) -> Dumbbell {
    Dumbbell {
        queue: run.queue.clone(),
        loss: run.loss.clone(),
        reverse_loss: run.reverse_loss.clone(),
        flows: vec![],
        events: vec![],
        background: vec![],
        ..*run
    }
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() < share
}

#[test]
fn at_a_light_load_a_frame_takes_its_serialisation_and_propagation() {
    let distance = 50_000;
    for protocol in ["ifcp", "fcip"] {
        let mut sans = Sans::new(protocol, 1, 1, GFC1 / 10);
        // Slow start stalls no port.
        sans.transport = transport("cubic", json!({"initial_cwnd": 1000}));
        sans.gateways = [gateway(0, json!({"delay_ns": distance})), gateway(1, json!({"delay_ns": distance}))];
        let outcome = sans.run();
        // Both segments of a frame have headers.
        let packets = (IN_TCP + 2 * HEADERS) * 8;
        let expected = 2 * (ON_LINE * 8 * S / GFC1 + distance) + packets + RTT / 2;
        for name in ["latency_mean_s", "latency_p50_s", "latency_p95_s", "latency_p99_s", "latency_max_s"] {
            assert!(near(real(&outcome, name) * 1e9, expected as f64, 1e-5), "{name}: {}", real(&outcome, name));
        }
        assert!(near(real(&outcome, "fc_bytes_per_s"), GFC1 as f64 / 80.0, 1e-3));
        assert_eq!(integer(&outcome, "credit_stalls"), 0);
        let back = |metrics: &Metrics| metrics.keys().any(|name| name.starts_with("reverse_"));
        assert!(!back(&outcome.metrics) && !outcome.flows.iter().any(back), "no frame goes back");
    }
}

#[test]
fn credits_by_the_round_trip_of_the_port_link_bound_the_rate() {
    for (credits, delay_ns) in [(1, 5_000), (8, 500_000), (16, 250_000), (40, 1_000_000)] {
        let mut sans = Sans::new("ifcp", 1, 1, GFC1 * 9 / 10);
        sans.gateways[0] = gateway(0, json!({"credits": credits, "delay_ns": delay_ns}));
        let outcome = sans.run();
        let cycle_s = (ON_LINE * 8) as f64 / GFC1 as f64 + 2.0 * delay_ns as f64 / 1e9;
        let bound = credits as f64 * PAYLOAD as f64 / cycle_s;
        assert!(near(real(&outcome, "fc_bytes_per_s"), bound, 0.01), "{credits}: {bound}");
        assert!(integer(&outcome, "credit_stalls") > 1000);
        assert_eq!(integer(&outcome, "gateway_credit_stalls"), 0);
    }
}

#[test]
fn the_window_by_the_round_trip_of_the_path_bounds_the_rate_and_stalls_the_port() {
    let window = 500_000;
    let mut sans = Sans::new("ifcp", 1, 1, GFC1 * 9 / 10);
    sans.transport = transport("cubic", json!({"window_bytes": window}));
    let outcome = sans.run();
    let bound = window as f64 / (RTT as f64 / 1e9) * PAYLOAD as f64 / IN_TCP as f64;
    assert!(near(real(&outcome, "fc_bytes_per_s"), bound, 0.01), "{}", real(&outcome, "fc_bytes_per_s"));
    // Credits are what makes the port wait, and nothing is dropped for it.
    assert!(integer(&outcome, "credit_stalls") > 0 && real(&outcome, "credit_stall_s") > 1.0);
    assert_eq!(integer(&outcome, "dropped_packets"), 0);
}

#[test]
fn a_slow_port_holds_its_sender_back_through_window_and_credits() {
    let mut sans = Sans::new("ifcp", 1, 1, GFC1 * 9 / 10);
    sans.gateways[1] = gateway(1, json!({"rate_bps": GFC1 / 10}));
    sans.transport = transport("cubic", json!({"window_bytes": 2_000_000}));
    let outcome = sans.run();
    let bound = (GFC1 / 10) as f64 / 8.0 * PAYLOAD as f64 / ON_LINE as f64;
    assert!(near(real(&outcome, "fc_bytes_per_s"), bound, 0.01), "{}", real(&outcome, "fc_bytes_per_s"));
    assert!(real(&outcome, "credit_stall_s") > 1.0);
    assert_eq!(integer(&outcome, "dropped_packets"), 0);
}

#[test]
fn every_frame_arrives_once_whatever_is_lost_on_the_path() {
    for (protocol, pairs, connections) in [("ifcp", 6, 6), ("fcip", 6, 1), ("fcip", 6, 4)] {
        let mut sans = Sans::new(protocol, pairs, connections, GFC1 / 20);
        sans.run = Dumbbell {
            loss: json!({"kind": "independent", "probability_e12": 10_000_000_000u64}),
            reverse_loss: json!({"kind": "independent", "probability_e12": 1_000_000_000u64}),
            duration_ns: 60 * S,
            warmup_ns: 0,
            stop_when_done: true,
            ..Dumbbell::new(1_000_000_000, RTT)
        };
        sans.stop_ns = Some(S);
        let outcome = sans.run();
        assert!(integer(&outcome, "retransmitted_segments") > 5, "{protocol}");
        assert!(integer(&outcome, "messages") > 100, "{protocol}: {}", integer(&outcome, "messages"));
        assert_eq!(integer(&outcome, "fc_frames"), integer(&outcome, "messages"), "{protocol}");
        assert_eq!(integer(&outcome, "fc_bytes"), integer(&outcome, "offered_bytes"), "{protocol}");
        assert!(real(&outcome, "simulated_s") < 60.0, "{protocol}: it ends when all has arrived");
    }
}

#[test]
fn the_same_specification_gives_the_same_numbers() {
    let mut sans = Sans::new("fcip", 5, 2, GFC1 / 20);
    sans.run.loss = json!({"kind": "independent", "probability_e12": 1_000_000_000u64});
    let (one, other) = (sans.run(), sans.run());
    assert_eq!((one.metrics, one.flows), (other.metrics, other.flows));
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let mut sans = Sans::new("ifcp", 3, 2, GFC1 / 20);
    assert_eq!(sans.error(), "flow san.1: fc: pairs = 3: 2, as there are connections, with iFCP");
    sans.protocol = "fcip";
    sans.pairs = 1;
    assert_eq!(sans.error(), "flow san.1: fc: pairs = 1: at least 2, as there are connections");
    sans.pairs = 2;
    sans.gateways[1]["credits"] = json!(0);
    assert_eq!(sans.error(), "gateway b: credits = 0: 1 to 65535");
    sans.gateways[1] = gateway(0, json!({}));
    assert_eq!(sans.error(), "gateway a: two gateways: one for each node");
    let mut lonely = sans.spec();
    lonely.gateways.pop();
    let Err(error) = simulate(&lonely, &mut |_| ControlFlow::Continue(())) else { panic!("it is refused") };
    assert_eq!(error.to_string(), "flow san.1: fc: node b is no gateway");
}
