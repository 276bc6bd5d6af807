//! Senders that take time for each packet, and events that wait until a flow has settled.

use crate::common::{bulk, integer, of_flow, real, transport, Dumbbell, MS, S};
use experiment::Outcome;
use serde_json::{json, Value};

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
    // 8333 packets of 1500 B a second: it is lost after some 2.4 s, and hardly lowers the rate.
    let lost = waited(steady(json!({"kind": "list", "packets": [20_000]})), 3).unwrap();
    assert!((5.3..5.8).contains(&lost), "{lost}");
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

#[test]
fn the_times_of_a_sender_are_of_its_seed() {
    let sent = |seed| of_flow(&overhead("uniform", 2 * MS, seed), 0, "sent_segments");
    assert_eq!(sent(1), sent(1));
    assert_ne!(sent(1), sent(2));
}

/// Floyd and Jacobson, *On Traffic Phase Effects in Packet-Switched Gateways* (1992), 2: of two connections whose
/// round-trip times are multiples of a packet's time on the line, one may lose all packets that are lost; a random time
/// for each packet, up to that of one on the line, ends it.
#[test]
fn a_random_time_for_each_packet_ends_phase_effects() {
    let share = |overhead: Value| {
        let change = json!({"send_overhead": overhead, "recovery": "newreno", "delayed_ack": false,
                            "quickack_segments": 0, "window_bytes": 32_000, "mtu_bytes": 1000, "timestamps": false});
        let flow = |run: Dumbbell, name: &str| run.flow(name, transport("reno", change.clone()), bulk());
        // A packet of 1000 B takes 10 ms.
        let run = flow(flow(Dumbbell::new(800_000, 200 * MS), "a"), "b");
        let queue = json!({"kind": "drop_tail", "limit_bytes": null, "limit_packets": 15});
        let outcome = Dumbbell { queue, duration_ns: 400 * S, warmup_ns: 50 * S, ..run }.run();
        let bytes = |flow| of_flow(&outcome, flow, "delivered_bytes") as f64;
        (bytes(0) / (bytes(0) + bytes(1)) - 0.5).abs()
    };
    let (without, with) = (share(Value::Null), share(json!({"distribution": "uniform", "scale_ns": 10 * MS})));
    assert!(with < 0.1, "{with} with a random time, {without} without");
    assert!(without > with, "{without} without a random time, {with} with");
}
