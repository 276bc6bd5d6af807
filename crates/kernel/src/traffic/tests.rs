//! Traffic over the loopback device of a namespace: everything but a path.

use super::*;
use crate::plan::HostSpec;
use crate::testing::{able, bulk, Line, Namespace, MS, S};
use experiment::{Metric, ValidRun};
use serde_json::json;

/// A namespace with its loopback device up.
fn loopback() -> Namespace {
    let namespace = Namespace::new();
    namespace.ip("link set lo up");
    namespace
}

fn hosts(namespace: &Namespace) -> [HostSpec; 2] {
    [1, 2].map(|last| HostSpec {
        namespace: namespace.path.clone(),
        device: "lo".into(),
        address: std::net::Ipv4Addr::new(127, 0, 0, last),
        ipv6_address: None,
        node: usize::from(last) - 1,
        mtu_bytes: 65_536,
    })
}

struct Run {
    measured: MeasuredTraffic,
    progress: Arc<[AtomicU64]>,
}

fn run(line: &Line, change: impl FnOnce(&mut HostPlan)) -> Result<Run, KernelError> {
    let namespace = loopback();
    let spec = line.spec();
    let mut plan = line.plan(hosts(&namespace), "reno");
    change(&mut plan);
    let progress: Arc<[AtomicU64]> = spec.flows.iter().map(|_| AtomicU64::new(0)).collect();
    let traffic = Traffic::open(ValidRun::new(&spec).unwrap(), &plan)?;
    let (clock, never) = (Clock::starting_in(Span::from_millis(10)), AtomicBool::new(false));
    // On a thread of its own: it takes precedence for good.
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| traffic.run(clock, &progress, &never, &never, |_| ())).join().expect("it does not panic")
    })?;
    Ok(Run { measured, progress })
}

#[test]
fn the_application_buffer_is_the_size_of_the_writes() {
    if !able("traffic over loopback") {
        return;
    }
    let bytes = 1_000_000;
    let small = json!({"kind": "bulk", "bytes": bytes, "buffer_bytes": 200});
    let line = Line::new(1_000_000_000, 0, 20 * S).flow(bulk(Some(bytes))).flow(small);
    let Run { measured, .. } = run(&Line { stop_when_done: true, ..line }, |_| ()).unwrap();
    let sent: Vec<_> = measured.flows.iter().map(|f| f.counters.sent_segments.expect("the kernel counts")).collect();
    // A segment of this device has up to 64 KiB; without Nagle's algorithm a small write may be one of its own.
    assert!(sent[0] < 100 && sent[1] > 2 * sent[0], "{sent:?}");
    assert!(measured.flows.iter().all(|f| f.counters.received_bytes == bytes));
}

#[test]
fn all_bytes_of_a_finite_transfer_arrive_and_the_run_ends_with_them() {
    if !able("traffic over loopback") {
        return;
    }
    let bytes = 50_000_001;
    let line = Line::new(1_000_000_000, 0, 20 * S).flow(bulk(Some(bytes))).flow(bulk(Some(1)));
    let line = Line { stop_when_done: true, series_interval_ns: Some(MS), ..line };
    let Run { measured, progress } = run(&line, |_| ()).unwrap();
    let received: Vec<_> = measured.flows.iter().map(|f| f.counters.received_bytes).collect();
    assert_eq!(received, [bytes, 1]);
    assert_eq!(progress[0].load(Ordering::Relaxed), bytes);
    assert!(measured.end < Time(20 * S), "{:?}", measured.end);
    assert!(measured.flows.iter().all(|f| f.workload.done_at.is_some()));
    assert!(measured.notes.is_empty(), "{:?}", measured.notes);
    assert!(measured.series.flow.contains(&0));
}

#[test]
fn many_flows_are_many_descriptors_and_each_gets_its_turn() {
    if !able("traffic over loopback") {
        return;
    }
    let line = (0..400).fold(Line::new(1_000_000_000, 0, 60 * S), |line, _| line.flow(bulk(Some(20_000))));
    let Run { measured, .. } = run(&Line { stop_when_done: true, ..line }, |_| ()).unwrap();
    assert!(measured.flows.iter().all(|flow| flow.counters.received_bytes == 20_000));
    assert!(measured.end < Time(60 * S));
}

#[test]
fn tcp_info_is_read_where_the_kernel_puts_it() {
    if !able("TCP_INFO over loopback") {
        return;
    }
    let namespace = loopback();
    let line = Line::new(1_000_000_000, 0, S).flow(bulk(Some(3_000)));
    let (spec, mut plan) = (line.spec(), line.plan(hosts(&namespace), "reno"));
    plan.flows[0].max_segment_bytes = Some(1012);
    plan.flows[0].window_clamp_bytes = 20_000;
    plan.flows[0].receive_buffer_bytes = Some(40_000);
    plan.flows[0].pacing = true;
    let mut traffic = Traffic::open(ValidRun::new(&spec).unwrap(), &plan).unwrap();
    let clock = Clock::starting_in(Span::ZERO);
    let (mut events, never) = (vec![], AtomicBool::new(false));
    let progress: Arc<[AtomicU64]> = Arc::new([AtomicU64::new(0)]);
    while traffic.unfinished > 0 || traffic.connections[0].sender.socket.info().unwrap().in_flight_bytes() > 0 {
        traffic.turn(clock, Time(10 * S), &progress, &never, &mut events).unwrap();
        assert!(clock.now() < Time(10 * S), "3000 bytes take no 10 s");
    }
    let connection = &traffic.connections[0];
    let (near, far) = (connection.sender.socket.info().unwrap(), connection.far.socket().unwrap().info().unwrap());
    let raw = near.raw();
    // Timestamps take 12 bytes of every segment: three segments of 1000.
    assert_eq!((raw.snd_mss, raw.data_segs_out, raw.total_retrans), (1000, 3, 0));
    assert_eq!((raw.snd_cwnd, raw.snd_ssthresh), (10, 0x7fff_ffff));
    assert_eq!((raw.options & 1, raw.wscale >> 4 > 0 || raw.wscale & 15 > 0), (1, true), "timestamps, window scaling");
    // The end of the stream counts as a byte.
    assert_eq!((far.raw().bytes_received, far.raw().data_segs_in), (3_001, 3));
    assert_eq!((near.bytes_retrans(), raw.bytes_sent), (Some(0), 3_000));
    assert!(near.min_rtt_us().is_some_and(|us| us <= u64::from(raw.rtt_us)), "{near:?}");
    // Between the requested window and the buffer's size: the clamp works from the first data on.
    assert!((10_000..=40_000).contains(&raw.snd_wnd), "{near:?}");
    assert_eq!(raw.max_pacing_rate, u64::MAX - 1);
    assert!(raw.pacing_rate < u64::MAX - 1 && raw.pacing_rate > 0);
    let counters = traffic.connections[0].counters().unwrap();
    assert_eq!(counters.delivered_packets, Some(3));
    assert_eq!((counters.retransmitted_segments, counters.retransmitted_bytes), (Some(0), Some(0)));
    assert!(counters.acks.is_some_and(|acks| (1..=5).contains(&acks)), "{counters:?}");
    // One host sends and receives: its namespace's counters are not the flow's alone... of two addresses in one
    // namespace.
    assert_eq!(counters.duplicate_acks, None);
}

#[test]
fn a_control_that_is_not_there_is_named_with_its_flow() {
    if !able("traffic over loopback") {
        return;
    }
    let line = Line::new(1_000_000_000, 0, S).flow(bulk(None));
    let error = run(&line, |plan| plan.flows[0].congestion_control = "elephan_absent".into()).err().unwrap();
    let text = error.to_string();
    assert!(text.starts_with("flow f0: TCP_CONGESTION = elephan_absent: "), "{text}");
}

#[test]
fn nobody_at_the_address_is_an_error_that_names_the_flow() {
    if !able("traffic over loopback") {
        return;
    }
    let namespace = loopback();
    let line = Line::new(1_000_000_000, 0, S).flow(bulk(None));
    let (spec, plan) = (line.spec(), line.plan(hosts(&namespace), "reno"));
    let mut traffic = Traffic::open(ValidRun::new(&spec).unwrap(), &plan).unwrap();
    traffic.connections[0].far.close_listener();
    let never = AtomicBool::new(false);
    let progress: Arc<[AtomicU64]> = Arc::new([AtomicU64::new(0)]);
    let clock = Clock::starting_in(Span::ZERO);
    let error = traffic.run(clock, &progress, &never, &never, |_| ()).err().unwrap().to_string();
    // Refused; or reset, when a child of another test holds the listener for a moment.
    assert!(error.starts_with("flow f0: connecting: Connection re"), "{error}");
}

#[test]
fn a_connection_that_is_lost_is_a_note_and_the_others_go_on() {
    if !able("traffic over loopback") {
        return;
    }
    let namespace = loopback();
    let line = Line::new(1_000_000_000, 0, 300 * MS).flow(bulk(None)).flow(bulk(None));
    let (spec, plan) = (line.spec(), line.plan(hosts(&namespace), "reno"));
    let mut traffic = Traffic::open(ValidRun::new(&spec).unwrap(), &plan).unwrap();
    let (clock, never) = (Clock::starting_in(Span::ZERO), AtomicBool::new(false));
    let (progress, mut events): (Arc<[AtomicU64]>, _) = (Arc::new([AtomicU64::new(0), AtomicU64::new(0)]), vec![]);
    while traffic.connections.iter().any(|c| c.received == 0) {
        traffic.turn(clock, Time(10 * S), &progress, &never, &mut events).unwrap();
        assert!(clock.now() < Time(10 * S), "data flows at once");
    }
    let before = traffic.connections[0].received;
    // As if the far host had gone: it answers with a reset.
    traffic.connections[0].far.socket().unwrap().abort();
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| traffic.run(clock, &progress, &never, &never, |_| ())).join().expect("it does not panic")
    });
    let measured = measured.unwrap();
    assert_eq!(measured.flows[0].counters.received_bytes, before);
    assert!(measured.flows[1].counters.received_bytes > 0 && measured.end >= Time(300 * MS));
    let [note] = &measured.notes[..] else { panic!("{:?}", measured.notes) };
    let wanted = format!("flow f0: the connection was lost after {before} bytes: ");
    assert!(note.starts_with(&wanted), "{note}");
}

#[test]
fn a_flow_that_stops_in_the_middle_ends_its_stream_and_all_that_was_written_arrives() {
    if !able("traffic over loopback") {
        return;
    }
    let mut line = Line::new(1_000_000_000, 0, 600 * MS).flow(bulk(None));
    line.flows[0]["stop_ns"] = json!(200 * MS);
    let Run { measured, .. } = run(&line, |_| ()).unwrap();
    let flow = &measured.flows[0];
    let (stopped, done) = (flow.workload.stopped_at.unwrap(), flow.workload.done_at.expect("the rest arrived"));
    assert_eq!(stopped, Time(200 * MS));
    assert!(done < measured.end && flow.counters.received_bytes > 1_000_000, "{done:?}");
}

#[test]
fn frames_are_issued_at_their_rate_and_each_is_accounted_for() {
    if !able("traffic over loopback") {
        return;
    }
    // 80 Mbit/s of 1000 bytes: 10,000 a second.
    let frames = json!({"kind": "constant_rate", "frame_bytes": 1000, "rate_bps": 80_000_000, "credits": null});
    let line = Line::new(1_000_000_000, 0, 500 * MS).flow(frames);
    let Run { measured, .. } = run(&line, |_| ()).unwrap();
    let messages = measured.flows[0].workload.messages().unwrap();
    // One at time zero, and one each 0.1 ms up to the end, which may be seen a little late.
    assert!((5_001..5_100).contains(&messages.issued), "{}", messages.issued);
    assert_eq!(messages.in_transit(), 0);
    assert_eq!(messages.times.measured.count(), messages.issued);
}

#[test]
fn a_copy_over_several_connections_is_sent_once_and_a_connection_that_comes_too_late_has_nothing_to_do() {
    if !able("traffic over loopback") {
        return;
    }
    let bytes = 50_000_001;
    let line = Line::new(1_000_000_000, 0, 20 * S).striped(3, 0, &bulk(Some(bytes)));
    let Run { measured, .. } = run(&Line { stop_when_done: true, ..line }, |_| ()).unwrap();
    let received: Vec<_> = measured.flows.iter().map(|f| f.counters.received_bytes).collect();
    assert_eq!(received.iter().sum::<u64>(), bytes);
    assert!(received.iter().all(|&part| part > bytes / 100), "{received:?}");
    assert!(measured.end < Time(20 * S) && measured.notes.is_empty(), "{:?}", measured.notes);

    let line = Line::new(1_000_000_000, 0, 20 * S).striped(2, 5 * S, &bulk(Some(bytes)));
    let Run { measured, .. } = run(&Line { stop_when_done: true, ..line }, |_| ()).unwrap();
    assert_eq!(measured.flows.iter().map(|f| f.counters.received_bytes).collect::<Vec<_>>(), [bytes, 0]);
    assert!(measured.end < Time(5 * S), "{:?}", measured.end);
}

#[test]
fn frames_over_several_connections_are_the_flows_and_each_is_accounted_for() {
    if !able("traffic over loopback") {
        return;
    }
    // 80 Mbit/s of 1000 bytes: 10,000 a second, over all connections.
    let frames = json!({"kind": "constant_rate", "frame_bytes": 1000, "rate_bps": 80_000_000, "credits": null});
    let line = Line::new(1_000_000_000, 0, 500 * MS).striped(4, 50 * MS, &frames);
    let Run { measured, .. } = run(&Line { series_interval_ns: Some(MS), ..line }, |_| ()).unwrap();
    let messages = measured.stripes[0].messages();
    let issued: Vec<_> = (0..4).map(|lane| messages.issued(lane).0).collect();
    assert!((5_001..5_100).contains(&issued.iter().sum::<u64>()), "{issued:?}");
    assert!(issued.iter().all(|&n| n > 100), "{issued:?}");
    assert_eq!((messages.in_transit(), messages.times.measured.count()), (0, issued.iter().sum()));
    assert!(measured.flows.iter().zip(&issued).all(|(flow, &n)| flow.counters.received_bytes <= n * 1000));
}

#[test]
fn mirrored_writes_over_several_connections_all_count_as_applied() {
    if !able("traffic over loopback") {
        return;
    }
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/tpcc-small.trace");
    let writes = json!({"kind": "replicate", "trace": {"path": trace, "format": "auto", "time_scale_e6": 4_000_000,
                        "looped": false, "header_bytes": 48}});
    let line = Line::new(1_000_000_000, 0, 500 * MS).striped(3, 0, &writes);
    let Run { measured, .. } = run(&line, |_| ()).unwrap();
    let messages = measured.stripes[0].messages();
    let issued: u64 = (0..3).map(|lane| messages.issued(lane).0).sum();
    assert!(issued > 300, "{issued}");
    assert_eq!((messages.not_applied(), messages.lag_bytes(), messages.times.measured.count()), (0, 0, issued));
    assert!(measured.stripes[0].at_risk.measured > 0);
}

#[test]
fn the_stop_is_noticed_at_once() {
    if !able("traffic over loopback") {
        return;
    }
    let namespace = loopback();
    let line = Line::new(1_000_000_000, 0, 100 * S).flow(bulk(None));
    let (spec, plan) = (line.spec(), line.plan(hosts(&namespace), "reno"));
    let traffic = Traffic::open(ValidRun::new(&spec).unwrap(), &plan).unwrap();
    let (stop, never) = (AtomicBool::new(false), AtomicBool::new(false));
    let progress: Arc<[AtomicU64]> = Arc::new([AtomicU64::new(0)]);
    let clock = Clock::starting_in(Span::ZERO);
    let ended = std::thread::scope(|scope| {
        let run = scope.spawn(|| traffic.run(clock, &progress, &stop, &never, |_| ()));
        while progress[0].load(Ordering::Relaxed) < 1_000_000 {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        run.join().unwrap()
    });
    assert!(matches!(ended, Err(KernelError::Stopped)));
    assert!(clock.now() < Time(50 * S), "it does not run on to its end");
}

#[test]
fn a_run_is_summed_up_as_the_simulator_does() {
    if !able("traffic over loopback") {
        return;
    }
    let line = Line::new(1_000_000_000, 0, 20 * S).flow(bulk(Some(1_000_000)));
    let line = Line { stop_when_done: true, ..line };
    let Run { measured, .. } = run(&line, |_| ()).unwrap();
    let MeasuredTraffic { end, drained_at, flows, stripes, series, notes, .. } = measured;
    let network = experiment::NetworkCounters {
        links: vec![link::Stats::default(); 2],
        ..experiment::NetworkCounters::default()
    };
    let measured = experiment::MeasuredRun {
        end,
        drained_at,
        flows,
        stripes,
        network,
        flow_series: series,
        link_series: experiment::LinkSeries::default(),
        event_times: vec![],
        windows: None,
        window_reductions: vec![],
        short_flows: vec![],
        copy: None,
        notes,
    };
    let outcome = experiment::summarize(&line.spec(), measured);
    assert_eq!(outcome.metrics.get("delivered_bytes"), Some(&Metric::Integer(1_000_000)));
    let Some(Metric::Real(completion)) = outcome.flows[0].get("completion_s") else { panic!("it completed") };
    assert!(*completion > 0.0 && *completion < 20.0);
    // Metrics that this backend cannot know are absent.
    assert_eq!(outcome.metrics.get("duplicate_acks"), None);
    assert_eq!(outcome.metrics.get("rtt_max_s"), None);
}
