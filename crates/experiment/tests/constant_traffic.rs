//! Constant traffic counted in closed form has the counters of its packets, exactly.

use experiment::{simulate, Metric, Outcome};
use link::random::Random;
use serde_json::{json, Value};
use std::ops::ControlFlow;

const ETHERNET: [u32; 3] = [18, 64, 20];
const PPP: [u32; 3] = [8, 0, 1];

fn framing(of: [u32; 3]) -> Value {
    json!({"header_bytes": of[0], "min_frame_bytes": of[1], "gap_bytes": of[2]})
}

fn link(name: &str, place: usize, rate_bps: u64, delay_ns: u64, of: [u32; 3], loss: &Value) -> Value {
    json!({"name": name, "from": place, "to": place + 1, "rate_bps": rate_bps, "delay_ns": delay_ns,
        "queue": {"kind": "drop_tail", "limit_bytes": 1_000_000, "limit_packets": null}, "loss": loss, "jitter": null,
        "framing": framing(of)})
}

fn source(rate_bps: u64, of: [u32; 3], packets: &[u32], route: &[usize], times: (u64, Option<u64>)) -> Value {
    json!({"name": "frames", "route": route, "rate_bps": rate_bps, "packet_bytes": packets.iter().max(),
        "start_ns": times.0, "stop_ns": times.1, "on_off_ns": null, "enabled": true,
        "frames": {"packets_bytes": packets, "framing": framing(of)}})
}

fn run(seed: u64, duration_ns: u64, links: &[Value], sources: &[Value], closed_form: bool) -> Outcome {
    let spec = json!({"format": spec::FORMAT, "seed": seed, "duration_ns": duration_ns, "stop_when_done": true,
        "nodes": (0..=links.len()).map(|node| format!("n{node}")).collect::<Vec<_>>(), "links": links, "flows": [],
        "background": sources, "events": [], "closed_form": closed_form,
        "measure": {"series_interval_ns": null, "warmup_ns": 0, "pcap": null, "pcap_node": 0, "pcap_packets": 0}});
    let spec = serde_json::from_value(spec).expect("a run");
    simulate(&spec, &mut |_| ControlFlow::Continue(())).expect("a right run")
}

/// Counters of a run, without the number of events that it took to find them.
fn counters(outcome: &Outcome) -> String {
    let mut metrics = outcome.metrics.clone();
    metrics.remove("events");
    // Delays are looked at packet by packet alone.
    let mut background = outcome.background.clone();
    for metrics in &mut background {
        metrics.retain(|name, _| !name.starts_with("delay_") && !name.starts_with("jitter_"));
    }
    format!("{metrics:?} {:?} {background:?}", outcome.links)
}

fn is_closed(outcome: &Outcome) -> bool {
    outcome.notes.iter().any(|note| note.contains("counted in closed form"))
}

fn integer(metrics: &experiment::Metrics, name: &str) -> u64 {
    match metrics.get(name) {
        Some(Metric::Integer(value)) => *value,
        other => panic!("{name}: {other:?}"),
    }
}

fn any_loss(random: &mut Random) -> Value {
    let e12 = |p: f64| (p * 1e12) as u64;
    let e18 = |p: f64| (p * 1e18) as u64;
    match random.below(6) {
        0 => json!({"kind": "none"}),
        1 => json!({"kind": "independent", "probability_e12": e12(0.02)}),
        2 => json!({"kind": "every_nth", "n": 1 + random.below(100)}),
        3 => json!({"kind": "list", "packets": [1, 2, 5, 70, 71, 500, 4000]}),
        4 => json!({"kind": "bit_error_rate", "probability_e18": e18(1e-6)}),
        _ => json!({"kind": "bit_error_bursts", "good_to_bad_e18": e18(1e-7), "bad_to_good_e18": e18(1e-4),
            "error_bad_e18": e18(0.1)}),
    }
}

#[test]
fn closed_form_has_the_counters_of_its_packets_exactly() {
    let mut random = Random::new(20_261_125);
    let (mut losses, mut counted) = (0, 0);
    for case in 0..250 {
        let of = if random.below(3) == 0 { PPP } else { ETHERNET };
        let packets: Vec<u32> = (0..=random.below(9)).map(|_| 28 + random.below(8973) as u32).collect();
        let rate = [9_294_196_364, 1_000_000_000, 149_760_000, 400_000_000_000][random.below(4) as usize];
        let full = random.below(2) == 0;
        let hops = 1 + random.below(3) as usize;
        // Later links are twice as fast, so that sizes that differ do not wait for each other.
        let links: Vec<Value> = (0..hops)
            .map(|hop| {
                let rate = if hop == 0 { rate } else { rate * (2 + random.below(3)) };
                link(&format!("l{hop}"), hop, rate, random.below(100_000), of, &any_loss(&mut random))
            })
            .collect();
        let share = if full { 1000 } else { 1 + random.below(450) };
        let mean = packets.iter().map(|&bytes| u64::from(bytes)).sum::<u64>() / packets.len() as u64;
        let duration = 3000 * (mean + 38) * 8_000_000_000 / rate * 1000 / share;
        let start = random.below(duration / 2);
        let stop = (random.below(2) == 0).then(|| start + 1 + random.below(duration));
        let route: Vec<usize> = (0..hops).collect();
        // Sizes that differ by more than the slack may wait: such a source is not for the closed form.
        let sources =
            [source((rate / 1000 * share).max(if full { rate } else { 1 }), of, &packets, &route, (start, stop))];
        let closed = run(case, duration, &links, &sources, true);
        if !is_closed(&closed) {
            assert!(closed.notes.iter().any(|note| note.contains("packet by packet")), "{:?}", closed.notes);
        }
        let packets = run(case, duration, &links, &sources, false);
        assert_eq!(counters(&closed), counters(&packets), "case {case}: {links:?} {sources:?}");
        counted += u64::from(is_closed(&closed));
        losses += if is_closed(&closed) { integer(&closed.metrics, "dropped_packets") } else { 0 };
    }
    assert!(losses > 1000 && counted > 100, "{counted} closed forms with {losses} losses were tested");
}

#[test]
fn ninety_one_hours_of_a_full_line_are_counted_at_once() {
    let line = |loss| [link("line", 0, 9_294_196_364, 8_500_000, ETHERNET, &loss)];
    let packets = [1500, 1500, 1500, 1500, 46, 1500, 1500, 1500, 1500, 1500];
    let frames = [source(9_294_196_364, ETHERNET, &packets, &[0], (0, None))];
    let duration = 327_602_470_000_000;
    let clean = run(1, duration, &line(json!({"kind": "none"})), &frames, true);
    let sent = integer(&clean.background[0], "sent_packets");
    // A round has 9 x 1538 + 84 B on the line.
    let expected = 327_602.47 * 9_294_196_364.0 / 8.0 / 1392.6;
    assert!((sent as f64 / expected - 1.0).abs() < 1e-9, "{sent} for {expected}");
    assert_eq!(integer(&clean.background[0], "dropped_packets"), 0);
    let bad = run(1, duration, &line(json!({"kind": "bit_error_rate", "probability_e18": 1_000_000})), &frames, true);
    let errors = integer(&bad.links[0], "fcs_errors");
    // 2.7e11 frames of 1372.6 B with 1e-12 per bit: 3001 on average, 55 the deviation.
    assert!((2700..3300).contains(&errors), "{errors}");
}

#[test]
fn what_needs_packets_says_so() {
    let none = json!({"kind": "none"});
    let links = [link("a", 0, 1_000_000_000, 0, ETHERNET, &none), link("b", 1, 900_000_000, 0, ETHERNET, &none)];
    let frames = [source(1_000_000_000, ETHERNET, &[1500], &[0, 1], (0, None))];
    let outcome = run(1, 1_000_000, &links, &frames, true);
    assert_eq!(
        outcome.notes,
        ["simulated packet by packet: background frames: its frames may wait for each other at b"]
    );
    let twice = [frames[0].clone(), frames[0].clone()];
    let outcome = run(1, 1_000_000, &links, &twice, true);
    assert_eq!(outcome.notes, ["simulated packet by packet: more than one source crosses a"]);
}
