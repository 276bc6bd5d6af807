//! Whole runs: this kernel's TCP between two namespaces over the emulated line. Bounds are what holds however busy the
//! machine is: nothing arrives before the line lets it, and what was asked for happens in the end.

use super::*;
use crate::plan::HostSpec;
use crate::testing::{able, bulk, Line, Namespace, MS, S};
use experiment::Metric;
use serde_json::{json, Value};
use std::ops::ControlFlow;

/// Two namespaces with a device each, gone when dropped.
struct Hosts {
    emulator: Emulator,
    specs: [HostSpec; 2],
    _namespaces: [Namespace; 2],
}

impl Hosts {
    fn new() -> Hosts {
        let namespaces = [Namespace::new(), Namespace::new()];
        let specs = [0, 1].map(|node: u8| HostSpec {
            namespace: namespaces[usize::from(node)].path.clone(),
            device: "path".into(),
            address: std::net::Ipv4Addr::new(198, 18, 1, node + 1),
            ipv6_address: None,
            node: usize::from(node),
            mtu_bytes: 1500,
        });
        let emulator = Emulator::open(&specs).expect("devices can be made here");
        for (namespace, host) in namespaces.iter().zip(&specs) {
            namespace.ip(&format!("address add {}/32 dev path", host.address));
            namespace.ip("link set path mtu 1500 up");
            namespace.ip("route add 198.18.0.0/15 dev path");
        }
        Hosts { emulator, specs, _namespaces: namespaces }
    }

    fn run(&mut self, line: &Line) -> (Outcome, EmulatorReport) {
        let plan = line.plan(self.specs.clone(), "reno");
        run(&line.spec(), &plan, &mut self.emulator, &mut |_, _| ControlFlow::Continue(())).expect("the run ends")
    }
}

fn real(metrics: &experiment::Metrics, name: &str) -> f64 {
    match metrics.get(name) {
        Some(Metric::Real(value)) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

fn integer(metrics: &experiment::Metrics, name: &str) -> u64 {
    match metrics.get(name) {
        Some(Metric::Integer(value)) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

fn losing(packets: &[u64]) -> Value {
    json!({"kind": "list", "packets": packets})
}

#[test]
fn a_finite_transfer_takes_what_the_line_needs_and_all_of_it_arrives() {
    if !able("a run over a line") {
        return;
    }
    let bytes = 2_000_000u64;
    let line = Line::new(50_000_000, 20 * MS, 30 * S).flow(bulk(Some(bytes)));
    let line = Line { stop_when_done: true, series_interval_ns: Some(10 * MS), ..line };
    let (outcome, report) = Hosts::new().run(&line);
    let flow = &outcome.flows[0];
    assert_eq!(integer(flow, "delivered_bytes"), bytes);
    // Two one-way trips of the handshake, one of the data, and every byte over the line.
    let least = bytes as f64 * 8.0 / 50e6 + 0.030;
    assert!(real(flow, "completion_s") >= least, "{}", real(flow, "completion_s"));
    assert!(real(flow, "rtt_min_s") >= 0.020 && real(flow, "rtt_mean_s") >= real(flow, "rtt_min_s"));
    let (sent, again) = (integer(flow, "sent_segments"), integer(flow, "retransmitted_segments"));
    // Full segments, but where the application kept the kernel waiting for the next 256 KiB.
    let full = bytes.div_ceil(1448);
    assert!((full..=full + 8).contains(&(sent - again)), "{sent} - {again}, not {full}");
    // On a busy machine packets are joined, and the last window was not yet reported.
    assert!(integer(flow, "delivered_packets").abs_diff(full) <= full / 10);
    assert!(integer(&outcome.links[0], "delivered_bytes") > bytes);
    // The namespace is the flow's own, so its counters are, too.
    assert!(flow.contains_key("tlp_probes") && flow.contains_key("fast_retransmits"));
    assert_eq!(report.failure, None);
    let series = &outcome.flow_series;
    assert!(series.time_s.len() > 10 && series.time_s.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(series.in_flight_bytes.iter().max() > Some(&14_480) && series.cwnd_packets.iter().all(|&c| c > 0));
    assert!(!outcome.link_series.time_s.is_empty());
    let carried: f64 = series
        .goodput_bps
        .iter()
        .zip(&series.time_s)
        .fold((0.0, 0.0), |(sum, before), (bps, time)| (sum + bps * (time - before) / 8.0, *time))
        .0;
    assert!(carried > 0.5 * bytes as f64 && carried <= bytes as f64 + 1.0, "{carried}");
}

#[test]
fn a_lost_packet_is_one_drop_one_retransmission_and_one_recovery() {
    if !able("a run over a line") {
        return;
    }
    let line = Line::new(50_000_000, 20 * MS, 30 * S).flow(bulk(Some(300_000)));
    // The SYN is the first packet, the handshake's ACK the second.
    let line = Line { stop_when_done: true, loss: losing(&[40]), ..line };
    let (outcome, _) = Hosts::new().run(&line);
    let flow = &outcome.flows[0];
    assert_eq!(integer(flow, "delivered_bytes"), 300_000);
    assert_eq!(integer(flow, "dropped_packets"), 1);
    assert_eq!(integer(&outcome.links[0], "dropped_by_loss"), 1);
    let (again, bytes) = (integer(flow, "retransmitted_segments"), integer(flow, "retransmitted_bytes"));
    assert!(again >= 1 && bytes <= 1448 * again && bytes > 1448 * (again - 1), "{bytes} in {again}");
    // A machine that stands still for long may see a time-out instead.
    assert!(integer(flow, "fast_retransmits") + integer(flow, "timeouts") >= 1);
}

#[test]
fn a_policer_drops_real_packets_beyond_its_rate_and_burst() {
    if !able("a run over a line") {
        return;
    }
    let (bytes, burst, rate) = (1_000_000u64, 30_000u64, 8_000_000u64);
    let line = Line::new(50_000_000, 20 * MS, 30 * S).flow(bulk(Some(bytes)));
    let policer = json!({"rate_bps": rate, "burst_bytes": burst});
    let (outcome, _) = Hosts::new().run(&Line { stop_when_done: true, policer, ..line });
    let (flow, link) = (&outcome.flows[0], &outcome.links[0]);
    assert_eq!(integer(flow, "delivered_bytes"), bytes);
    let dropped = integer(link, "dropped_by_policer");
    assert!(dropped > 0 && integer(flow, "dropped_packets") == dropped && integer(link, "dropped_packets") == dropped);
    let end = integer(link, "delivered_bytes") as f64 * 8.0 / real(link, "carried_bps");
    assert!(integer(link, "delivered_bytes") as f64 <= burst as f64 + rate as f64 / 8.0 * end);
    assert!(real(flow, "completion_s") >= (bytes - burst) as f64 * 8.0 / rate as f64);
    assert!(!outcome.links[1].contains_key("dropped_by_policer"), "the way back has none");
}

#[test]
fn a_frame_is_on_its_way_for_as_long_as_the_line_takes() {
    if !able("a run over a line") {
        return;
    }
    let frames = json!({"kind": "constant_rate", "frame_bytes": 1000, "rate_bps": 4_000_000, "credits": null});
    let line = Line::new(50_000_000, 40 * MS, 2 * S).flow(frames);
    let (outcome, _) = Hosts::new().run(&line);
    let flow = &outcome.flows[0];
    // The first waits for the handshake; the median is a one-way trip and this machine's overhead.
    let median = real(flow, "latency_p50_s");
    assert!((0.020..0.030).contains(&median), "{median}");
    assert!(real(flow, "latency_max_s") >= 0.060);
    assert!((1_001..1_100).contains(&integer(flow, "messages")));
    assert!(!outcome.notes.iter().any(|note| note.contains("lost")), "{:?}", outcome.notes);
}

#[test]
fn mirrored_writes_all_arrive_and_the_drain_is_waited_for() {
    if !able("a run over a line") {
        return;
    }
    let trace = std::env::temp_dir().join(format!("elephan-kernel-{}.trace", std::process::id()));
    // One write of 64 KiB each ms: ten times the line's rate.
    let writes: String = (0..100).map(|n| format!("{} 0 {} 128 0\n", n * 1_000_000, n * 128)).collect();
    std::fs::write(&trace, writes).unwrap();
    let mirrored = json!({"kind": "replicate", "trace": {
        "path": trace, "format": "mqsim", "time_scale_e6": 1_000_000, "looped": false, "header_bytes": 48}});
    let line = Line::new(50_000_000, 20 * MS, 200 * MS).flow(mirrored);
    // A second flow never ends by itself: it must not delay the end.
    let line = Line { series_interval_ns: Some(10 * MS), ..line }.flow(bulk(None));
    let (outcome, _) = Hosts::new().run(&line);
    std::fs::remove_file(&trace).unwrap();
    assert!(outcome.notes.iter().all(|note| note.starts_with("TRAFFIC:")), "{:?}", outcome.notes);
    let last = |flow| {
        let series = &outcome.flow_series;
        (0..series.flow.len()).filter(|&row| series.flow[row] == flow).map(|row| series.time_s[row]).fold(0.0, f64::max)
    };
    assert!(last(1) < last(0), "{} and {}", last(1), last(0));
    let flow = &outcome.flows[0];
    let offered = 100 * (65_536 + 48);
    assert_eq!((integer(flow, "messages"), integer(flow, "offered_bytes")), (100, offered));
    // Counters stop with the run, lag does not.
    assert!(integer(flow, "delivered_bytes") < offered);
    let line_time = offered as f64 * 8.0 / 50e6;
    assert!(real(flow, "drain_s") > line_time - 0.2 - 0.1, "{}", real(flow, "drain_s"));
    assert!(real(flow, "lag_max_s") > line_time - 0.1 && integer(flow, "lag_max_bytes") > offered / 2);
    assert!(real(&outcome.metrics, "simulated_s") > 0.2);
}

#[test]
fn no_more_is_in_flight_than_the_window_that_was_asked_for() {
    if !able("a run over a line") {
        return;
    }
    let line = Line { window_bytes: 200_000, ..Line::new(100_000_000, 40 * MS, 2 * S) }.flow(bulk(None));
    let line = Line { warmup_ns: S, series_interval_ns: Some(5 * MS), ..line };
    let (outcome, _) = Hosts::new().run(&line);
    // 200 kB in 40 ms are 40 Mbit/s; the kernel keeps a part of a window back.
    let goodput = real(&outcome.metrics, "goodput_bps");
    assert!(goodput <= 40e6 * 1.02 && goodput > 20e6, "{goodput}");
    let most = outcome.flow_series.in_flight_bytes.iter().max().unwrap();
    assert!(*most <= 200_000 + 16_384, "{most}");
    assert!(!outcome.notes.iter().any(|note| note.contains("window")), "{:?}", outcome.notes);
}

#[test]
fn an_event_that_waits_for_a_flow_happens_when_it_is_fast_enough() {
    if !able("a run over a line") {
        return;
    }
    let line = Line::new(50_000_000, 20 * MS, 2 * S).flow(bulk(None));
    let fast = json!({"when": {"kind": "flow_reaches", "flow": 0, "rate_bps": 10_000_000, "window_ns": 100 * MS},
                      "action": {"kind": "rate", "link": 0, "rate_bps": 5_000_000}});
    let never = json!({"when": {"kind": "flow_reaches", "flow": 0, "rate_bps": 60_000_000, "window_ns": 100 * MS},
                       "action": {"kind": "link_down", "link": 0}});
    let (outcome, _) = Hosts::new().run(&Line { events: vec![fast, never], ..line });
    // A tenth of the rate from some 0.2 s on; at the full rate 12 MB would have come.
    let delivered = integer(&outcome.flows[0], "delivered_bytes");
    assert!((500_000..6_000_000).contains(&delivered), "{delivered}");
    assert!(outcome.notes.iter().any(|note| note.starts_with("an event never happened: FlowReaches")));
}

#[test]
fn a_line_that_is_down_makes_no_connection_and_the_record_says_so() {
    if !able("a run over a line") {
        return;
    }
    let line = Line::new(50_000_000, 20 * MS, 300 * MS).flow(bulk(None));
    let down = json!({"when": {"kind": "at", "time_ns": 0}, "action": {"kind": "link_down", "link": 0}});
    let (outcome, _) = Hosts::new().run(&Line { events: vec![down], ..line });
    assert_eq!(integer(&outcome.flows[0], "delivered_bytes"), 0);
    assert_eq!(outcome.notes, ["flow f0: no connection was made before the end"]);
    assert_eq!(outcome.flows[0].get("sent_segments"), None);
}

#[test]
fn the_pulse_stops_a_run_and_the_emulator_with_it() {
    if !able("a run over a line") {
        return;
    }
    let mut hosts = Hosts::new();
    let line = Line::new(50_000_000, 20 * MS, 1000 * S).flow(bulk(None));
    let plan = line.plan(hosts.specs.clone(), "reno");
    let began = crate::clock::monotonic_ns();
    let mut reported_at = 0;
    let ended = run(&line.spec(), &plan, &mut hosts.emulator, &mut |now, end| {
        assert_eq!(end, Time(1000 * S));
        if now < Time(200 * MS) {
            return ControlFlow::Continue(());
        }
        reported_at = crate::clock::monotonic_ns();
        ControlFlow::Break(())
    });
    assert!(matches!(ended, Err(KernelError::Stopped)), "{:?}", ended.err());
    assert!(reported_at > began && crate::clock::monotonic_ns() - reported_at < S);
    assert!(hosts.emulator.stop().is_none(), "it was stopped");
}

#[test]
fn a_plan_of_other_flows_is_refused() {
    if !able("a run over a line") {
        return;
    }
    let mut hosts = Hosts::new();
    let line = Line::new(50_000_000, 20 * MS, S).flow(bulk(None));
    let plan = HostPlan { flows: vec![], ..line.plan(hosts.specs.clone(), "reno") };
    let ended = run(&line.spec(), &plan, &mut hosts.emulator, &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(ended.err().unwrap().to_string(), "the plan has 0 flows, the spec 1");
}
