//! The manager at work on a simulated network: r1-r2-r3 and the lightpath r1-r3, after the hybrid paper's figure 2.

use crate::common::*;
use experiment::{simulate, Metric, Metrics, Outcome};
use serde_json::{json, Value};
use spec::RunSpec;
use std::ops::ControlFlow;

/// Sender, r1, r2, r3, receiver; links 0 to 3 over IP, 4 the lightpath, 5 to 8 back.
fn hybrid(rates: [u64; 5], flows: Vec<Value>, manager: Value, change: impl Fn(&mut Value)) -> RunSpec {
    let link = |name: &str, from: usize, to: usize, rate: u64, delay: u64| {
        json!({"name": name, "from": from, "to": to, "rate_bps": rate, "delay_ns": delay,
               "queue": {"kind": "drop_tail", "limit_bytes": null, "limit_packets": 500},
               "loss": {"kind": "none"}, "jitter": null})
    };
    let mut spec = json!({
        "format": 2, "seed": 1, "duration_ns": 30 * S, "stop_when_done": false,
        "nodes": ["s", "r1", "r2", "r3", "d"],
        "links": [
            link("s-r1", 0, 1, rates[0], 0), link("r1-r2", 1, 2, rates[1], 10 * MS),
            link("r2-r3", 2, 3, rates[2], 10 * MS), link("r3-d", 3, 4, rates[4], 0),
            link("r1-r3", 1, 3, rates[3], 4 * MS), link("d-r3", 4, 3, 1_000_000_000, 0),
            link("r3-r2", 3, 2, 1_000_000_000, 10 * MS),
            link("r2-r1", 2, 1, 1_000_000_000, 10 * MS), link("r1-s", 1, 0, 1_000_000_000, 0),
        ],
        "flows": flows, "background": [], "events": [], "manager": manager,
        "measure": {"series_interval_ns": 100 * MS, "warmup_ns": 0, "pcap": null, "pcap_node": 0, "pcap_packets": null},
    });
    change(&mut spec);
    serde_json::from_value(spec).expect("the test's spec parses")
}

fn elephant(name: &str, window: u64) -> Value {
    let mut flow = flow(name, 0, transport("cubic", json!({"window_bytes": window})), bulk(), 0);
    flow["route"] = json!([0, 1, 2, 3]);
    flow["return_route"] = json!([5, 6, 7, 8]);
    flow["destination"] = json!(4);
    flow
}

fn policy() -> Value {
    json!({
        "interval_ns": S, "sampling_rate": 1, "flow_table_size": 64, "inactive_timeout_ns": 5 * S,
        "rate_bps": 20_000_000, "volume_bytes": 5_000_000, "confidence_sigmas_e3": 1000, "return_rate_bps": 10_000_000,
        "min_dwell_time_ns": 10 * S, "lightpath_timeout_ns": 5 * S, "lightpaths_max": 1,
        "max_utilization_ppm": 900_000, "offload_weight_ppm": 100_000, "congestion_threshold_ppm": 900_000,
        "refuse": true,
        "observation_window_ns": 5 * S, "cc_beta_ppm": 700_000, "priorities": [0],
        "lightpaths": [{"name": "lambda", "route": [4], "capacity_bps": 600_000_000u64, "set_up_ns": 2 * S,
                        "cost_bytes": 0}],
    })
}

fn run(spec: &RunSpec) -> Outcome {
    simulate(spec, &mut |_| ControlFlow::Continue(())).expect("the run ends")
}

fn text<'a>(metrics: &'a Metrics, name: &str) -> &'a str {
    match metrics.get(name) {
        Some(Metric::Text(text)) => text,
        other => panic!("{name}: {other:?} in {metrics:?}"),
    }
}

fn number(metrics: &Metrics, name: &str) -> f64 {
    match metrics.get(name) {
        Some(Metric::Integer(value)) => *value as f64,
        Some(Metric::Real(value)) => *value,
        other => panic!("{name}: {other:?} in {metrics:?}"),
    }
}

const FAST: u64 = 622_080_000;

#[test]
fn a_flow_that_the_core_limits_goes_to_the_lightpath_and_is_faster_there() {
    let rates = [FAST, 100_000_000, FAST, FAST, FAST];
    let outcome = run(&hybrid(rates, vec![elephant("backup", 1 << 24)], policy(), |_| {}));
    let managed = outcome.managed.as_ref().unwrap();
    let entry = &managed.move_log[0];
    assert_eq!((text(entry, "flow"), text(entry, "lightpath"), text(entry, "limit")), ("backup", "lambda", "C"));
    assert_eq!(text(entry, "reason"), "elephant");
    let (before, after) = (number(entry, "rate_before_bps"), number(entry, "rate_after_bps"));
    assert!((0.9e8..1.01e8).contains(&before), "{entry:?}");
    assert!(after > 2.0 * before, "{entry:?}");
    // 100 Mbit/s of full queue before, nothing of it after: the IP path is empty, and the flow's bytes are on the
    // lightpath.
    assert!(number(entry, "ip_load_before_bps") > 0.95e8 && number(entry, "ip_load_after_bps") < 0.3e8, "{entry:?}");
    let carried = number(&outcome.links[4], "delivered_bytes");
    let offloaded = number(&managed.metrics, "offloaded_bytes");
    assert!(offloaded > 1e8 && (carried - offloaded).abs() < 0.05 * carried, "{offloaded} of {carried}");
    assert_eq!(managed.timeline.time_s.len(), 30);
    assert_eq!(outcome.metrics["moves"], Metric::Integer(1));
}

#[test]
fn a_flow_that_its_window_limits_loses_nothing_by_the_move() {
    let outcome = run(&hybrid([FAST; 5], vec![elephant("mirror", 200_000)], policy(), |_| {}));
    let entry = &outcome.managed.as_ref().unwrap().move_log[0];
    assert_eq!(text(entry, "limit"), "A");
    // 200 kB over 40 ms are 40 Mbit/s, over 24 ms 67.
    let (before, after) = (number(entry, "rate_before_bps"), number(entry, "rate_after_bps"));
    assert!((after / before - 40.0 / 24.0).abs() < 0.1, "{entry:?}");
    assert!((number(entry, "forecast_rate_bps") / after - 1.0).abs() < 0.05, "{entry:?}");
    assert_eq!((number(entry, "forecast_cost_bytes"), number(entry, "cost_bytes")), (0.0, 0.0));
}

#[test]
fn a_move_that_is_forecast_to_cost_more_than_it_gains_is_refused() {
    // 98 ms of 100 Mbit/s are 817 packets, r3's queue takes 500; offloaded bytes are worth nothing here.
    let at = |refuse: bool| {
        let mut manager = policy();
        manager["refuse"] = json!(refuse);
        manager["offload_weight_ppm"] = json!(0);
        let rates = [FAST, FAST, FAST, FAST, 100_000_000];
        run(&hybrid(rates, vec![elephant("backup", 3_000_000)], manager, |spec| {
            for (link, delay) in [(1, 50 * MS), (2, 50 * MS), (4, 2 * MS)] {
                spec["links"][link]["delay_ns"] = json!(delay);
            }
        }))
    };
    let (kept, moved) = (at(true), at(false));
    let move_log = |outcome: &Outcome| outcome.managed.as_ref().unwrap().move_log.clone();
    let refusals = move_log(&kept);
    // The next decision is due when the dwell time of 10 s is over, not every second.
    assert!((1..=3).contains(&refusals.len()), "{refusals:?}");
    for entry in &refusals {
        assert_eq!(text(entry, "reason"), "refused", "{entry:?}");
        assert!(number(entry, "forecast_cost_bytes") > number(entry, "forecast_gain_bytes"), "{entry:?}");
    }
    let there = &move_log(&moved)[0];
    assert_eq!(text(there, "reason"), "elephant", "{there:?}");
    assert!(number(there, "forecast_cost_bytes") > number(there, "forecast_gain_bytes"), "{there:?}");
    // The refusal avoids this loss: 817 packets come at once, and 500 have room.
    assert!(number(there, "lost_packets") >= 300.0, "{there:?}");
}

/// Times at which flow `name` was moved, in either direction, s.
fn moves_of(outcome: &Outcome, name: &str) -> Vec<f64> {
    let move_log = &outcome.managed.as_ref().unwrap().move_log;
    let of_it = move_log.iter().filter(|e| text(e, "flow") == name && text(e, "reason") != "refused");
    of_it.map(|e| number(e, "at_s")).collect()
}

#[test]
fn a_flow_of_a_higher_priority_takes_the_place_of_a_lower_one_that_has_stayed_long_enough() {
    // The low one fills the lightpath's 200 Mbit/s.
    let rates = [FAST, 100_000_000, FAST, 200_000_000, FAST];
    let mut high = elephant("high", 200_000);
    (high["group"], high["start_ns"]) = (json!(1), json!(8 * S));
    let mut manager = policy();
    manager["priorities"] = json!([0, 1]);
    manager["lightpaths"][0]["capacity_bps"] = json!(200_000_000);
    let outcome = run(&hybrid(rates, vec![elephant("low", 1 << 24), high], manager, |_| {}));
    let managed = outcome.managed.as_ref().unwrap();
    let reasons: Vec<_> = managed.move_log.iter().take(3).map(|e| (text(e, "flow"), text(e, "reason"))).collect();
    assert_eq!(reasons, [("low", "elephant"), ("low", "preempted"), ("high", "elephant")]);
    assert_eq!(managed.metrics["preemptions"], Metric::Integer(1));
    let (low, high) = (moves_of(&outcome, "low"), moves_of(&outcome, "high"));
    // The dwell time of 10 s holds for the flow that yields, and for its return.
    assert!(low.windows(2).all(|pair| pair[1] - pair[0] >= 10.0), "{low:?}");
    assert_eq!(high, [low[1]]);
    // The cost of the move: back on the core's 100 Mbit/s it lacks the rate that it had on the lightpath.
    assert!(number(&managed.move_log[1], "cost_bytes") > 1e7, "{:?}", managed.move_log[1]);
}

#[test]
fn a_lightpath_that_is_cut_gives_its_flow_back_at_once_and_gets_it_again_when_it_is_mended() {
    let rates = [FAST, 100_000_000, FAST, FAST, FAST];
    let event =
        |at: u64, kind: &str| json!({"when": {"kind": "at", "time_ns": at}, "action": {"kind": kind, "link": 4}});
    let cut = json!([event(8_250 * MS, "link_down"), event(20 * S, "link_up")]);
    let outcome = run(&hybrid(rates, vec![elephant("backup", 1 << 22)], policy(), |s| s["events"] = cut.clone()));
    let managed = outcome.managed.as_ref().unwrap();
    let move_log: Vec<_> = managed.move_log.iter().map(|e| (text(e, "reason"), number(e, "at_s"))).collect();
    assert_eq!(move_log.iter().map(|&(reason, _)| reason).collect::<Vec<_>>(), ["elephant", "failed", "elephant"]);
    // Noticed at the next look, not at the end of the interval; set up again when it is mended, which takes 2 s.
    assert_eq!(move_log[1].1, 8.3);
    assert!(move_log[2].1 >= 22.0, "{move_log:?}");
    assert_eq!((&managed.metrics["failures"], &managed.metrics["set_ups"]), (&Metric::Integer(1), &Metric::Integer(2)));
}

#[test]
fn a_rate_that_swings_moves_no_flow_to_and_fro() {
    let swinging = |low: u64, period: u64| {
        let events: Vec<_> = (1..30 / period)
            .map(|i| {
                json!({"when": {"kind": "at", "time_ns": i * period * S},
                       "action": {"kind": "rate", "link": 0, "rate_bps": if i % 2 == 1 { low } else { 30_000_000 }}})
            })
            .collect();
        let rates = [30_000_000, FAST, FAST, FAST, FAST];
        let mut manager = policy();
        manager["refuse"] = json!(false);
        run(&hybrid(rates, vec![elephant("backup", 1 << 20)], manager, |s| s["events"] = json!(events)))
    };
    // Below the 20 Mbit/s of an elephant, above the 10 from which it goes back: it stays.
    assert_eq!(moves_of(&swinging(15_000_000, 3), "backup").len(), 1);
    // Far below for six seconds at a time: there and back, but never sooner than the stay of 10 s.
    let moves = moves_of(&swinging(2_000_000, 6), "backup");
    assert!(moves.len() >= 2 && moves.windows(2).all(|pair| pair[1] - pair[0] >= 10.0), "{moves:?}");
}

#[test]
fn sampling_and_seed_decide_what_the_manager_sees_and_nothing_else() {
    let spec = |one_in: u64, seed: u64| {
        let mut manager = policy();
        manager["sampling_rate"] = json!(one_in);
        manager["lightpaths_max"] = json!(0);
        hybrid([FAST, 100_000_000, FAST, FAST, FAST], vec![elephant("backup", 1 << 24)], manager, |s| {
            s["seed"] = json!(seed)
        })
    };
    let (all, some, again) = (run(&spec(1, 1)), run(&spec(100, 1)), run(&spec(100, 1)));
    let managed = |o: &Outcome| format!("{:?}", o.managed);
    assert_eq!(managed(&some), managed(&again));
    assert_eq!(all.flows, some.flows);
    // Looking on, it moves nothing.
    assert_eq!(some.metrics["moves"], Metric::Integer(0));
    assert_eq!(number(&some.links[4], "delivered_packets"), 0.0);
}

#[test]
fn short_flows_come_at_their_rate_are_counted_together_and_leave_series_and_flows_alone() {
    let crowd = json!([{
        "name": "web", "source": 0, "destination": 4, "route": [0, 1, 2, 3], "return_route": [5, 6, 7, 8],
        "transport": transport("cubic", json!({"window_bytes": 1 << 20})), "arrivals_per_ks": 50_000,
        "sizes": {"kind": "pareto", "pareto_shape_e3": 1200, "min_bytes": 10_000, "max_bytes": 20_000_000u64},
        "start_ns": 0, "stop_ns": 25 * S,
    }]);
    let rates = [FAST, 100_000_000, FAST, FAST, FAST];
    let outcome =
        run(&hybrid(rates, vec![elephant("backup", 1 << 24)], policy(), |s| s["short_flows"] = crowd.clone()));
    let web = &outcome.short_flows[0];
    // 50 a second for 25 s: 1250, deviation 35.
    assert!((number(web, "flows") - 1250.0).abs() < 140.0, "{web:?}");
    assert!(number(web, "completed") > 0.98 * number(web, "flows"), "{web:?}");
    assert!(number(web, "delivered_bytes") > 0.9 * number(web, "offered_bytes"));
    assert_eq!(outcome.flows.len(), 1);
    assert!(outcome.flow_series.flow.iter().all(|&flow| flow == 0));
    assert_eq!(number(&outcome.managed.as_ref().unwrap().metrics, "flows"), number(web, "flows") + 1.0);
    assert_eq!(outcome.metrics["short_flows"], web["flows"]);
}

/// Hold buffer and window reduction for the move from 0, 1, 2, 3 to the lightpath, paths that differ by
/// `difference_ns`.
fn mitigations(difference_ns: u64, hold: bool, cwnd_reduction: Option<Option<u64>>) -> Value {
    let hold_buffer = json!({"delay_ns": difference_ns, "queues": [{"link": 1, "rate_bps": FAST}], "share_ppm": null,
                      "rate_bps": FAST, "line": 4, "limit_bytes": null});
    let cwnd_reduction = cwnd_reduction.map(
        |restore| json!({"delay_ns": difference_ns, "cwnd_fraction_ppm": null, "lead_ns": 0, "restore_ns": restore}),
    );
    let hold_buffer = if hold { hold_buffer } else { Value::Null };
    let mitigation =
        json!({"hold_buffer": hold_buffer, "cwnd_reduction": cwnd_reduction, "reordering_tolerance": null});
    json!([{"route": [0, 1, 2, 3], "lightpath": 0, "mitigation": mitigation}])
}

/// 16 ms, and a packet's 19.29 us on one line more.
const DIFFERENCE: u64 = 16 * MS + 19_290;

/// Scenario B, the sender's line of 100 Mbit/s, with a window of 600 kB for the 500 kB of the old path.
fn limited_by_the_sender(mitigations: Option<Value>) -> Outcome {
    let mut manager = policy();
    if let Some(mitigations) = mitigations {
        manager["mitigations"] = mitigations;
    }
    let rates = [100_000_000, FAST, FAST, FAST, FAST];
    run(&hybrid(rates, vec![elephant("backup", 600_000)], manager, |_| {}))
}

fn counts(outcome: &Outcome) -> [f64; 3] {
    ["duplicate_acks", "retransmitted_segments", "dropped_packets"].map(|name| number(&outcome.flows[0], name))
}

#[test]
fn a_manager_that_may_hold_moves_without_a_duplicate_ack() {
    let (plain, held) = (limited_by_the_sender(None), limited_by_the_sender(Some(mitigations(DIFFERENCE, true, None))));
    let [duplicates, again, dropped] = counts(&plain);
    // 16 ms of 100 Mbit/s are 133 packets; nothing is lost.
    assert!((100.0..170.0).contains(&duplicates) && again > 50.0 && dropped == 0.0, "{duplicates} {again} {dropped}");
    assert_eq!(counts(&held), [0.0; 3]);
    let (before, after) = (&plain.managed.as_ref().unwrap().move_log[0], &held.managed.as_ref().unwrap().move_log[0]);
    assert_eq!((before.get("mitigation"), text(after, "mitigation"), text(after, "limit")), (None, "hold_buffer", "B"));
    assert!(number(before, "forecast_cost_bytes") >= 199_000.0, "{before:?}");
    // 19 us less than the routers' D is no pause worth a packet.
    assert!(number(after, "forecast_cost_bytes") < 1500.0, "{after:?}");
    assert_eq!(number(after, "forecast_overtaken_packets"), 0.0);
    // Held: r D, as forecast to a tenth.
    let kept = number(after, "held_bytes");
    assert!((180_000.0..220_000.0).contains(&kept), "{after:?}");
    assert!((number(after, "forecast_held_bytes") / kept - 1.0).abs() < 0.1, "{after:?}");
    assert_eq!(number(after, "held_dropped_packets"), 0.0);
    assert!((number(after, "hold_s") - 0.016).abs() < 0.001, "{after:?}");
    assert_eq!(held.metrics["held_packets"], after["held_packets"]);
}

#[test]
fn a_window_is_trimmed_where_the_receivers_line_is_full_and_the_move_is_not_refused() {
    // As in the refusal above: 817 packets come too much, the queue takes 500, an offloaded byte is worth a thousandth.
    let at = |mitigations: Option<Value>| {
        let mut manager = policy();
        manager["offload_weight_ppm"] = json!(1_000);
        if let Some(mitigations) = mitigations {
            manager["mitigations"] = mitigations;
        }
        let rates = [FAST, FAST, FAST, FAST, 100_000_000];
        run(&hybrid(rates, vec![elephant("backup", 1_600_000)], manager, |spec| {
            for (link, delay) in [(1, 50 * MS), (2, 50 * MS), (4, 2 * MS)] {
                spec["links"][link]["delay_ns"] = json!(delay);
            }
        }))
    };
    let difference = 98 * MS + 19_290;
    let first = |outcome: &Outcome| outcome.managed.as_ref().unwrap().move_log[0].clone();
    let (plain, held) = (first(&at(None)), first(&at(Some(mitigations(difference, true, None)))));
    // A hold changes when the surplus comes, not how much it is.
    assert_eq!((text(&plain, "reason"), text(&held, "reason")), ("refused", "refused"));
    let both = at(Some(mitigations(difference, true, Some(None))));
    let entry = first(&both);
    assert_eq!(
        (text(&entry, "reason"), text(&entry, "mitigation"), text(&entry, "limit")),
        ("elephant", "hold_buffer, cwnd_reduction", "D")
    );
    assert_eq!((number(&entry, "lost_packets"), number(&entry, "cost_bytes")), (0.0, 0.0));
    // Nothing sent again by the end of the watch; later CUBIC finds the end of the queue, as it does anywhere.
    let series = &both.flow_series;
    let row = series.time_s.iter().position(|&time_s| time_s >= 10.0).expect("a run of 30 s");
    assert_eq!((series.retransmitted_segments[row], series.duplicate_acks[row]), (0, 0));
    // A window of 1142 packets fills 120 ms of 100 Mbit/s and 12.5 ms of queue; 98 ms of them go.
    assert!((number(&entry, "forecast_cwnd_fraction") - 34.5 / 132.5).abs() < 0.01, "{entry:?}");
}

#[test]
fn a_trimmed_window_is_given_back_when_the_operator_says_so() {
    let after = |restore: Option<u64>| {
        let outcome = limited_by_the_sender(Some(mitigations(DIFFERENCE, false, Some(restore))));
        let entry = outcome.managed.as_ref().unwrap().move_log[0].clone();
        assert_eq!(text(&entry, "mitigation"), "cwnd_reduction", "{entry:?}");
        // 600 kB are 414 packets, of which 333 are in flight: 81 wait before the sender's line. They come to the router
        // after the move, and no buffer holds them.
        let (thought, duplicates) = (number(&entry, "forecast_overtaken_packets"), counts(&outcome)[0]);
        assert!((thought - 81.0).abs() < 6.0 && (duplicates - 81.0).abs() < 6.0, "{thought} {duplicates}");
        let at = number(&entry, "at_s");
        let series = &outcome.flow_series;
        let cwnd = |time_s: f64| {
            let row = series.time_s.iter().position(|&t| (t - time_s).abs() < 0.05).expect("a sample");
            series.cwnd_packets[row]
        };
        // Before the move and 0.3 s after it.
        (cwnd(at - 0.1), cwnd(at + 0.3))
    };
    let ((before, reduced), (_, back)) = (after(None), after(Some(100 * MS)));
    // (RTT - D) / RTT of it, with 8 ms of queue before the sender's line: 48 ms become 32.
    assert!(f64::from(reduced) < 0.8 * f64::from(before), "{before} {reduced}");
    assert!(f64::from(back) >= 0.95 * f64::from(before), "{before} {back}");
}

/// Scenario D: `windows` bytes each of flows that share the receiver's line of 100 Mbit/s, before which 500 packets
/// find room; D = 30 ms. `others_mbit` stay on IP. Held packets are released at that line's rate: `line` tells the hold
/// buffers.
fn sharing_the_receivers_line(windows: &[u64], others_mbit: u64, line: Option<usize>) -> Outcome {
    let mut manager = policy();
    manager["priorities"] = json!(vec![0; windows.len()]);
    (manager["rate_bps"], manager["return_rate_bps"]) = (json!(5_000_000), json!(1_000_000));
    manager["mitigations"] = mitigations(30 * MS + 19_290, true, None);
    let hold_buffer = &mut manager["mitigations"][0]["mitigation"]["hold_buffer"];
    (hold_buffer["rate_bps"], hold_buffer["line"]) = (json!(100_000_000), json!(line));
    let flows = windows.iter().enumerate().map(|(i, &window)| {
        let mut flow = elephant(&format!("f{i}"), window);
        (flow["group"], flow["start_ns"]) = (json!(i), json!(i as u64 * 50 * MS));
        flow
    });
    run(&hybrid([FAST, FAST, FAST, FAST, 100_000_000], flows.collect(), manager, |spec| {
        for (link, delay) in [(1, 20 * MS), (2, 20 * MS), (4, 10 * MS)] {
            spec["links"][link]["delay_ns"] = json!(delay);
        }
        if others_mbit > 0 {
            spec["background"] = json!([{"name": "others", "route": [1, 2, 3], "rate_bps": others_mbit * 1_000_000,
                "packet_bytes": 1500, "start_ns": 0, "stop_ns": null, "on_off_ns": null, "enabled": true}]);
        }
    }))
}

#[test]
fn hold_buffers_that_let_go_for_one_line_share_it() {
    // 60 ms of 100 Mbit/s are 500 packets; 400 more wait at r3, and 250 are held.
    for windows in [vec![326_000; 4], vec![650_000, 330_000, 165_000, 158_000]] {
        let dropped = |line| {
            let outcome = sharing_the_receivers_line(&windows, 0, line);
            let move_log = &outcome.managed.as_ref().unwrap().move_log;
            let at: Vec<_> =
                move_log.iter().map(|e| (text(e, "reason"), text(e, "mitigation"), number(e, "at_s"))).collect();
            assert!(
                at.len() == 4
                    && at.iter().all(|&(r, mitigation, s)| (r, mitigation, s) == ("elephant", "hold_buffer", at[0].2)),
                "{at:?}"
            );
            let lost = move_log.iter().map(|entry| number(entry, "forecast_lost_packets")).sum::<f64>();
            let least = move_log.iter().map(|entry| number(entry, "least_rate_bps")).sum::<f64>();
            (number(&outcome.links[3], "dropped_packets"), lost, least)
        };
        // Each at the whole rate: r3 has to take what all keep back. In turn: nothing waits there that did not before.
        let (alone, shared) = (dropped(None), dropped(Some(3)));
        assert!(alone.0 > 50.0, "{windows:?}: {alone:?} {shared:?}");
        assert_eq!((shared.0, shared.1), (0.0, 0.0), "{windows:?}: {alone:?} {shared:?}");
        assert!(shared.2 > 0.97 * 100e6, "{windows:?}: {shared:?}");
    }
}

#[test]
fn what_is_let_go_leaves_the_line_to_what_is_on_it() {
    // Half of the receiver's line is others' who stay on IP: 250 of the packets in flight are the flow's, and as many
    // of the 450 at r3.
    let at = |line| {
        let outcome = sharing_the_receivers_line(&[687_000], 50, line);
        let entry = outcome.managed.as_ref().unwrap().move_log[0].clone();
        assert_eq!(
            (text(&entry, "reason"), text(&entry, "mitigation"), text(&entry, "limit")),
            ("elephant", "hold_buffer", "D")
        );
        (number(&outcome.links[3], "dropped_packets"), entry)
    };
    let ((alone, _), (dropped, entry)) = (at(None), at(Some(3)));
    assert!(alone > 20.0 && dropped == 0.0, "{alone} {dropped} {entry:?}");
    assert!(number(&entry, "least_rate_bps") > 0.97 * number(&entry, "rate_before_bps"), "{entry:?}");
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let wrong = |change: &dyn Fn(&mut Value)| {
        let spec = hybrid([FAST; 5], vec![elephant("f", 1 << 20)], policy(), |s| change(s));
        simulate(&spec, &mut |_| ControlFlow::Continue(())).expect_err("an error").to_string()
    };
    let text = wrong(&|s| s["manager"]["lightpaths"][0]["route"] = json!([1, 3]));
    assert!(text.contains("lightpath lambda: route: r3-d does not begin where r1-r2 ends"), "{text}");
    let text = wrong(&|s| s["manager"]["lightpaths"][0]["route"] = json!([7]));
    assert!(text.contains("lightpath lambda: no flow passes the routers that it joins"), "{text}");
    let text = wrong(&|s| {
        s["manager"]["mitigations"] = mitigations(DIFFERENCE, true, None);
        s["manager"]["mitigations"][0]["lightpath"] = json!(1);
    });
    assert!(text.contains("manager: mitigations: lightpath 1 does not exist, there are 1"), "{text}");
    let text = wrong(&|s| {
        s["manager"]["mitigations"] = mitigations(DIFFERENCE, true, None);
        s["manager"]["mitigations"][0]["mitigation"]["hold_buffer"]["line"] = json!(9);
    });
    assert!(text.contains("manager: mitigations: hold_buffer: link 9 does not exist, there are 9"), "{text}");
    let text = wrong(&|s| s["manager"]["pareto_shape_e3"] = json!(1000));
    assert!(text.contains("manager: tail = 1: above 1"), "{text}");
    let text = wrong(&|s| s["manager"]["priorities"] = json!([]));
    assert!(text.contains("manager: priorities: 0 for 1 flows"), "{text}");
}
