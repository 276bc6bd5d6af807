//! Senders that take time for each packet, and events that wait until a flow has settled.

use crate::common::{bulk, integer, of_flow, real, transport, Dumbbell, MS, S};
use experiment::{simulate, Outcome};
use serde_json::{json, Value};
use std::ops::ControlFlow;

/// A flow that fills 100 Mbit/s at 20 ms, whose window leaves the queue room: nothing is lost but what `loss` says.
fn steady(loss: Value) -> Dumbbell {
    let transport = transport("cubic", json!({"window_bytes": 400_000}));
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport, bulk());
    Dumbbell { loss, ..run }
}

/// Runs until after the event that waits for 90 Mbit/s over `settled_s`; returns its time.
fn waited(run: Dumbbell, settled_s: u64) -> Option<f64> {
    let when = json!({"kind": "flow_reaches", "flow": 0, "rate_bps": 90_000_000, "window_ns": 100 * MS,
                      "settled_ns": settled_s * S});
    let events = vec![json!({"when": when, "action": {"kind": "link_down", "link": 0}})];
    Dumbbell { events, ..run }.run().event_times_s[0]
}

#[test]
fn an_event_waits_until_a_flow_has_kept_its_rate_for_a_time() {
    let at_once = waited(steady(json!({"kind": "none"})), 0).unwrap();
    assert!((0.1..1.0).contains(&at_once), "{at_once}");
    let kept = waited(steady(json!({"kind": "none"})), 3).unwrap();
    assert!((kept - (at_once + 2.9)).abs() < 1e-9, "{kept}, the first average was at {at_once}");
}

#[test]
fn a_retransmission_begins_the_wait_anew() {
    // 8333 packets of 1500 B a second: it is lost after some 2.4 s, and the rate is below 90 Mbit/s for less than a
    // second.
    let lost = waited(steady(json!({"kind": "list", "packets": [20_000]})), 3).unwrap();
    assert!((5.4..6.6).contains(&lost), "{lost}");
    assert_eq!(waited(steady(json!({"kind": "every_nth", "n": 20_000})), 3), None);
}

fn overhead(kind: &str, scale_ns: u64, seed: u64) -> Outcome {
    let overhead = json!({"distribution": kind, "scale_ns": scale_ns});
    let transport = transport("cubic", json!({"send_overhead": overhead}));
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport, bulk());
    Dumbbell { seed, warmup_ns: S, ..run }.run()
}

#[test]
fn a_sender_that_takes_a_millisecond_on_average_sends_a_thousand_packets_a_second() {
    for (kind, scale_ns) in [("uniform", 2 * MS), ("exponential", MS)] {
        let outcome = overhead(kind, scale_ns, 1);
        let goodput = real(&outcome, "goodput_bps");
        assert!((goodput / (1000.0 * 1448.0 * 8.0) - 1.0).abs() < 0.05, "{kind}: {goodput}");
        assert_eq!(integer(&outcome, "retransmitted_segments"), 0, "packets keep their order");
        assert_eq!(of_flow(&outcome, 0, "duplicate_acks"), 0);
    }
}

/// As in ns-2's FullTcp (send_much): it waits, and makes the packet then. The time is no part of the RTT, with and
/// without timestamps.
#[test]
fn a_packet_is_stamped_when_it_leaves() {
    for timestamps in [true, false] {
        let overhead = json!({"distribution": "uniform", "scale_ns": 20 * MS});
        let change = json!({"send_overhead": overhead, "timestamps": timestamps, "delayed_ack": false});
        let run = Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("cubic", change), bulk());
        let outcome = Dumbbell { seed: 1, warmup_ns: S, ..run }.run();
        let rtt = real(&outcome, "rtt_mean_s");
        assert!((0.020..0.0215).contains(&rtt), "timestamps {timestamps}: {rtt}");
    }
}

#[test]
fn the_times_of_a_sender_are_of_its_seed() {
    let sent = |seed| of_flow(&overhead("uniform", 2 * MS, seed), 0, "sent_segments");
    assert_eq!(sent(1), sent(1));
    assert_ne!(sent(1), sent(2));
}

/// Share of the first of two connections over one line of 800 kbit/s and 100 ms, as in Floyd and Jacobson, *On Traffic
/// Phase Effects in Packet-Switched Gateways* (1992), figure 2: 15 packets of 1000 B fit in the queue, and the second
/// sender is 4 ms farther away.
fn first_share(overhead: &Value) -> f64 {
    let change = json!({"recovery": "newreno", "delayed_ack": false, "quickack_segments": 0, "window_bytes": 32_000,
                        "mtu_bytes": 1000, "timestamps": false, "initial_cwnd": 1, "send_overhead": overhead});
    let run = Dumbbell::new(800_000, 200 * MS);
    let flow = |run: Dumbbell, name: &str| run.flow(name, transport("reno", change.clone()), bulk());
    let run = Dumbbell { duration_ns: 400 * S, warmup_ns: 50 * S, ..flow(flow(run, "near"), "far") };
    let mut spec = serde_json::to_value(run.spec()).unwrap();
    let link = |from: usize, to: usize, rate_bps: u64, delay_ns: u64, packets: u64| {
        let queue = json!({"kind": "drop_tail", "limit_bytes": null, "limit_packets": packets});
        json!({"name": format!("{from}->{to}"), "from": from, "to": to, "rate_bps": rate_bps, "delay_ns": delay_ns,
               "queue": queue, "loss": {"kind": "none"}, "jitter": null})
    };
    spec["nodes"] = json!(["near", "far", "gateway", "sink"]);
    let access = |from, to, delay_ns| link(from, to, 8_000_000, delay_ns, 1000);
    spec["links"] = json!([
        access(0, 2, 5 * MS),
        access(1, 2, 9 * MS),
        link(2, 3, 800_000, 100 * MS, 15),
        link(3, 2, 800_000, 100 * MS, 1000),
        access(2, 0, 5 * MS),
        access(2, 1, 9 * MS),
    ]);
    for sender in 0..2 {
        let flow = &mut spec["flows"][sender];
        (flow["source"], flow["destination"]) = (json!(sender), json!(3));
        (flow["route"], flow["return_route"]) = (json!([sender, 2]), json!([3, 4 + sender]));
        flow["start_ns"] = json!(sender as u64 * S);
    }
    let spec = serde_json::from_value(spec).unwrap();
    let outcome = simulate(&spec, &mut |_| ControlFlow::Continue(())).unwrap();
    let bytes = |flow| of_flow(&outcome, flow, "delivered_bytes") as f64;
    bytes(0) / (bytes(0) + bytes(1))
}

/// The losses of a queue that is full in step with the arrivals all hit one connection, until each packet takes up to
/// its time on the line more (10 ms): 0.11 and 0.40 for one seed.
#[test]
fn a_random_time_for_each_packet_ends_phase_effects() {
    let without = first_share(&Value::Null);
    assert!(without < 0.2, "{without}");
    let with = first_share(&json!({"distribution": "uniform", "scale_ns": 10 * MS}));
    assert!((0.25..0.75).contains(&with), "{with}");
}
