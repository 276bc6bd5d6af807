//! FCP initiators and targets behind gateways: round trips of a command in closed form; no request is lost; every frame
//! is accounted for.

use crate::common::*;
use experiment::{simulate, Outcome};
use serde_json::{json, Value};
use spec::RunSpec;
use std::ops::ControlFlow;

/// 8GFC without its line code, bit/s.
const GFC8: u64 = 6_800_000_000;
const RATE: u64 = 1_000_000_000;
const RTT: u64 = 20 * MS;
/// Propagation of a port's link, ns.
const DISTANCE: u64 = 50_000;
/// Header and CRC of a frame, delimiters and least gap on the line; the same with encapsulation in TCP.
const ON_LINE: u64 = 24 + 4 + 8 + 24;
const IN_TCP: u64 = 24 + 4 + 8 + 28;
/// Ethernet is not simulated: IP and TCP headers with timestamps; payload of a full packet.
const HEADERS: u64 = 52;
const SEGMENT: u64 = 1448;
/// Payloads of FCP_CMND, FCP_XFER_RDY, FCP_RSP; the longest of FCP_DATA.
const COMMAND: u64 = 32;
const READY: u64 = 12;
const RESPONSE: u64 = 24;
const FRAME: u64 = 2048;

fn disk(model: Value) -> Value {
    json!({"model": model, "drive": null, "scheduler": null, "count": 1, "stripe_bytes": 65_536,
           "size_bytes": 1u64 << 40})
}

fn requests(reads_e6: u64, bytes: u64, count: impl Into<Option<u64>>) -> Value {
    json!({"kind": "mix", "reads_e6": reads_e6, "request_bytes": bytes, "random": true, "think_ns": 0,
           "requests": count.into(), "span_bytes": null})
}

/// Two gateways with 1 Gbit/s and 20 ms between them.
struct Sans {
    pairs: usize,
    connections: usize,
    workload: Value,
    gateways: [Value; 2],
    transport: Value,
    run: Dumbbell,
}

fn gateway(node: usize) -> Value {
    json!({"node": node, "rate_bps": GFC8, "delay_ns": DISTANCE, "credits": 500, "buffer_bytes": 4_000_000})
}

impl Sans {
    fn new(protocol: &str, queue_depth: u64, disk: Value, source: Value) -> Sans {
        let workload = json!({
            "kind": "fcp", "protocol": protocol, "pairs": 1, "frame_bytes": FRAME, "max_burst_bytes": 262_144,
            "queue_depth": queue_depth, "write_acceleration": false, "disk": disk, "source": source,
        });
        let open = json!({"initial_cwnd": 10_000, "slow_start_after_idle": false});
        let run = Dumbbell { duration_ns: 1000 * S, stop_when_done: true, ..Dumbbell::new(RATE, RTT) };
        let gateways = [gateway(0), gateway(1)];
        Sans { pairs: 1, connections: 1, workload, gateways, transport: transport("reno", open), run }
    }

    fn spec(&self) -> RunSpec {
        let mut workload = self.workload.clone();
        workload["pairs"] = json!(self.pairs);
        let flows = (0..self.connections)
            .map(|index| flow(&format!("san.{}", index + 1), 0, self.transport.clone(), workload.clone(), 0));
        let mut run = Dumbbell::new(self.run.rate_bps, self.run.rtt_ns);
        run.flows = flows.collect();
        (run.queue, run.loss, run.reverse_loss) =
            (self.run.queue.clone(), self.run.loss.clone(), self.run.reverse_loss.clone());
        run.events = self.run.events.clone();
        (run.duration_ns, run.warmup_ns) = (self.run.duration_ns, self.run.warmup_ns);
        run.stop_when_done = self.run.stop_when_done;
        let mut spec = serde_json::to_value(run.spec()).unwrap();
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

/// Time of frames with these payloads from one N_Port to the other, ns: a line, a path and a line in turn, each of
/// which carries them one after the other.
fn one_way(payloads: &[u64]) -> f64 {
    let mut free = [0.0f64; 3];
    for payload in payloads {
        let line = (payload + ON_LINE) as f64 * 8e9 / GFC8 as f64;
        let bytes = payload + IN_TCP;
        let path = (bytes + bytes.div_ceil(SEGMENT) * HEADERS) as f64 * 8e9 / RATE as f64;
        let mut at = 0.0;
        for (stage, time) in free.iter_mut().zip([line, path, line]) {
            *stage = stage.max(at) + time;
            at = *stage;
        }
    }
    free[2] + (2 * DISTANCE + RTT / 2) as f64
}

/// Payloads of a command's data.
fn data(bytes: u64) -> Vec<u64> {
    (0..bytes.div_ceil(FRAME)).map(|frame| FRAME.min(bytes - frame * FRAME)).collect()
}

fn read_ns(bytes: u64) -> f64 {
    one_way(&[COMMAND]) + one_way(&[data(bytes), vec![RESPONSE]].concat())
}

fn write_ns(bytes: u64) -> f64 {
    one_way(&[COMMAND]) + one_way(&[READY]) + one_way(&data(bytes)) + one_way(&[RESPONSE])
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() < share
}

/// Each frame that an N_Port sent reached the other, was discarded, or was under way at the end.
fn assert_accounted(outcome: &Outcome) {
    let of = |name| integer(outcome, name);
    assert_eq!(of("messages"), of("fc_frames") + of("fc_discarded_frames") + of("fc_frames_unfinished"));
}

fn assert_lossless(outcome: &Outcome) {
    assert_accounted(outcome);
    for name in ["fc_discarded_frames", "fc_stale_frames", "fc_aborts", "fc_retries", "requests_failed"] {
        assert_eq!(integer(outcome, name), 0, "{name}");
    }
}

#[test]
fn a_read_costs_one_round_trip_and_a_write_two_beside_the_disk() {
    for protocol in ["ifcp", "fcip"] {
        for model in [Value::Null, json!("nvme")] {
            for bytes in [512, 8192, 65_536] {
                for (kind, reads, expected) in [("read", 1_000_000, read_ns(bytes)), ("write", 0, write_ns(bytes))] {
                    let outcome = Sans::new(protocol, 1, disk(model.clone()), requests(reads, bytes, 20)).run();
                    let network = real(&outcome, &format!("{kind}_network_mean_s")) * 1e9;
                    assert!((network - expected).abs() < 2000.0, "{protocol} {kind} {bytes}: {network} {expected}");
                    let disk = real(&outcome, &format!("{kind}_disk_mean_s")) * 1e9;
                    assert_eq!(disk > 0.0, model != Value::Null);
                    // The first waits for the logins.
                    let median = real(&outcome, &format!("{kind}_latency_p50_s")) * 1e9;
                    assert!(near(median, network + disk, 0.01), "{median} {network} {disk}");
                    assert_eq!(integer(&outcome, &format!("{kind}s")), 20);
                    assert_lossless(&outcome);
                }
            }
        }
    }
}

#[test]
fn a_burst_more_costs_a_round_trip_more() {
    let writes = |burst: u64| {
        let mut sans = Sans::new("ifcp", 1, disk(Value::Null), requests(0, 65_536, 5));
        sans.workload["max_burst_bytes"] = json!(burst);
        real(&sans.run(), "write_network_mean_s") * 1e9 / RTT as f64
    };
    for bursts in [2, 4] {
        let more = writes(65_536 / bursts) - writes(65_536);
        assert!((more - (bursts - 1) as f64).abs() < 0.05, "{bursts}: {more}");
    }
}

/// A write whose gateway answers it: command and transfer ready on the first line alone.
fn accelerated_ns(bytes: u64) -> f64 {
    let answered = (COMMAND + READY + 2 * ON_LINE) as f64 * 8e9 / GFC8 as f64 + (2 * DISTANCE) as f64;
    answered + one_way(&data(bytes)) + one_way(&[RESPONSE])
}

#[test]
fn with_write_acceleration_a_write_costs_one_round_trip_beside_the_disk() {
    for protocol in ["ifcp", "fcip"] {
        for model in [Value::Null, json!("nvme")] {
            for bytes in [512, 8192, 65_536] {
                let mut sans = Sans::new(protocol, 1, disk(model.clone()), requests(0, bytes, 20));
                sans.workload["write_acceleration"] = json!(true);
                let outcome = sans.run();
                let (network, expected) = (real(&outcome, "write_network_mean_s") * 1e9, accelerated_ns(bytes));
                assert!((network - expected).abs() < 2000.0, "{protocol} {bytes}: {network} {expected}");
                // The path's round trip, and that of one port's link.
                let (saved, round_trips) = (write_ns(bytes) - network, (RTT + 2 * DISTANCE) as f64);
                assert!(near(saved, round_trips, 0.001), "{protocol} {bytes}: {saved}");
                // The response comes from the target, after the disk.
                let (disk, median) = (real(&outcome, "write_disk_mean_s"), real(&outcome, "write_latency_p50_s"));
                assert_eq!(disk > 0.0, model != Value::Null);
                assert!(near(median * 1e9, network + disk * 1e9, 0.01), "{median}");
                assert_lossless(&outcome);
            }
        }
        let reads = |acceleration: bool| {
            let mut sans = Sans::new(protocol, 1, disk(Value::Null), requests(1_000_000, 8192, 20));
            sans.workload["write_acceleration"] = json!(acceleration);
            real(&sans.run(), "read_network_mean_s")
        };
        assert_eq!(reads(true), reads(false));
    }
}

#[test]
fn write_acceleration_saves_the_round_trips_of_all_bursts() {
    let writes = |burst: u64, buffer: u64| {
        let mut sans = Sans::new("ifcp", 1, disk(Value::Null), requests(0, 65_536, 5));
        sans.workload["write_acceleration"] = json!(true);
        sans.workload["max_burst_bytes"] = json!(burst);
        for gateway in &mut sans.gateways {
            gateway["buffer_bytes"] = json!(buffer);
        }
        let outcome = sans.run();
        assert_lossless(&outcome);
        real(&outcome, "write_network_mean_s") * 1e9 / RTT as f64
    };
    // A burst costs a round trip between port and gateway.
    for (burst, buffer) in [(16_384, 4_000_000), (8192, 4_000_000), (16_384, 1), (8192, 9000)] {
        let rtts = writes(burst, buffer);
        assert!((1.0..1.3).contains(&rtts), "{burst} {buffer}: {rtts}");
    }
}

#[test]
fn a_queue_fills_the_round_trip() {
    let bytes = 16_384;
    for depth in [4, 32] {
        for (kind, reads, expected) in [("read", 1_000_000, read_ns(bytes)), ("write", 0, write_ns(bytes))] {
            let mut sans = Sans::new("fcip", depth, disk(Value::Null), requests(reads, bytes, None));
            (sans.run.duration_ns, sans.run.warmup_ns) = (6 * S, 2 * S);
            let outcome = sans.run();
            let bound = (depth * bytes) as f64 / expected * 1e9;
            let rate = real(&outcome, "io_bytes_per_s");
            // Requests wait for each other's serialisation, at most the whole queue's.
            let all = (depth * bytes) as f64 * 8.0 / RATE as f64 * 1e9;
            assert!(rate <= bound * 1.001 && rate > bound / (1.0 + 1.2 * all / expected), "{kind}: {rate} {bound}");
            assert_eq!(integer(&outcome, "fc_exchanges_unfinished"), depth);
            assert_lossless(&outcome);
        }
    }
}

#[test]
fn a_disk_that_is_the_bottleneck_serves_as_many_requests_over_iscsi() {
    let (depth, count) = (16, 400);
    let source = requests(500_000, 4096, count);
    let outcome = |run: Outcome| (real(&run, "iops"), real(&run, "disk_mean_s"), integer(&run, "reads"));
    let over_fc = ["ifcp", "fcip"].map(|protocol| {
        let mut sans = Sans::new(protocol, depth, disk(json!("cheetah-9lp")), source.clone());
        sans.run.rtt_ns = MS;
        outcome(sans.run())
    });
    let session = iscsi_session(json!({"queue_depth": depth, "disk": disk(json!("cheetah-9lp"))}), source);
    // The same name draws the same requests.
    let iscsi = Dumbbell::new(RATE, MS).flow("san.1", transport("reno", json!({})), session);
    let iscsi = outcome(Dumbbell { duration_ns: 1000 * S, stop_when_done: true, ..iscsi }.run());
    for fc in over_fc {
        assert_eq!(fc.2, iscsi.2, "the same requests");
        assert!(near(fc.0, iscsi.0, 0.02), "{fc:?} {iscsi:?}");
        assert!(near(fc.1, iscsi.1, 0.05), "{fc:?} {iscsi:?}");
    }
}

#[test]
fn losses_on_the_path_delay_and_lose_nothing() {
    for (protocol, pairs, connections, acceleration) in [
        ("ifcp", 3, 3, false),
        ("fcip", 3, 1, false),
        ("fcip", 5, 2, false),
        ("ifcp", 3, 3, true),
        ("fcip", 5, 2, true),
    ] {
        let mut sans = Sans::new(protocol, 8, disk(Value::Null), requests(500_000, 65_536, 100));
        (sans.pairs, sans.connections) = (pairs, connections);
        sans.workload["write_acceleration"] = json!(acceleration);
        if acceleration {
            // Gateways that soon have no room for a write's data.
            sans.workload["max_burst_bytes"] = json!(8192);
            sans.gateways.iter_mut().for_each(|gateway| gateway["buffer_bytes"] = json!(20_000));
        }
        sans.transport = transport("cubic", json!({}));
        let loss = json!({"kind": "independent", "probability_e12": 3_000_000_000u64});
        (sans.run.loss, sans.run.reverse_loss) = (loss.clone(), loss);
        let outcome = sans.run();
        assert!(integer(&outcome, "retransmitted_segments") > 5, "{protocol}");
        assert_eq!(integer(&outcome, "requests"), 100 * pairs as u64, "{protocol}");
        let bytes = integer(&outcome, "read_bytes") + integer(&outcome, "written_bytes");
        assert_eq!(bytes, 100 * pairs as u64 * 65_536);
        assert_eq!(integer(&outcome, "fc_exchanges"), 100 * pairs as u64);
        assert_lossless(&outcome);
        assert!(real(&outcome, "simulated_s") < 1000.0, "{protocol}: it ends when all is done");
        let again = sans.run();
        assert_eq!((outcome.metrics, outcome.flows), (again.metrics, again.flows), "{protocol}");
    }
}

#[test]
fn credits_by_the_round_trip_of_the_port_link_bound_the_rate() {
    let (credits, delay_ns) = (8, 500_000);
    let mut sans = Sans::new("ifcp", 32, disk(Value::Null), requests(0, 262_144, None));
    sans.gateways[0]["credits"] = json!(credits);
    sans.gateways[0]["delay_ns"] = json!(delay_ns);
    (sans.run.duration_ns, sans.run.warmup_ns) = (6 * S, 2 * S);
    let outcome = sans.run();
    let cycle_s = ((FRAME + ON_LINE) * 8) as f64 / GFC8 as f64 + 2.0 * delay_ns as f64 / 1e9;
    let bound = credits as f64 * FRAME as f64 / cycle_s;
    assert!(near(real(&outcome, "write_bytes_per_s"), bound, 0.02), "{}", real(&outcome, "write_bytes_per_s"));
    assert!(integer(&outcome, "credit_stalls") > 1000);
    assert_lossless(&outcome);
}

#[test]
fn a_path_that_is_down_for_long_ages_frames_and_commands_are_sent_again() {
    for (protocol, acceleration) in [("ifcp", false), ("fcip", false), ("ifcp", true)] {
        let mut sans = Sans::new(protocol, 8, disk(Value::Null), requests(500_000, 65_536, 4000));
        sans.workload["write_acceleration"] = json!(acceleration);
        let event = |at: u64, kind: &str, link: usize| {
            let action = json!({"kind": kind, "link": link});
            json!({"when": {"kind": "at", "time_ns": at}, "action": action})
        };
        sans.run.events = vec![
            event(S, "link_down", 0),
            event(S, "link_down", 1),
            event(21 * S, "link_up", 0),
            event(21 * S, "link_up", 1),
        ];
        let outcome = sans.run();
        assert!(integer(&outcome, "fc_discarded_frames") > 0, "{protocol}");
        assert!(integer(&outcome, "fc_retries") > 0, "{protocol}");
        assert_eq!(integer(&outcome, "requests"), 4000, "{protocol}");
        assert_eq!(integer(&outcome, "requests_failed"), 0, "{protocol}");
        assert_eq!(integer(&outcome, "fc_exchanges"), 4000 + integer(&outcome, "fc_retries"), "{protocol}");
        assert_accounted(&outcome);
    }
}

#[test]
fn a_run_that_ends_early_tells_what_had_not_ended() {
    let mut sans = Sans::new("ifcp", 16, disk(json!("cheetah-9lp")), requests(0, 65_536, None));
    sans.run.duration_ns = S + S / 2;
    let outcome = sans.run();
    assert_eq!(integer(&outcome, "fc_exchanges_unfinished"), 16);
    assert_eq!(integer(&outcome, "fc_exchanges"), integer(&outcome, "requests") + 16);
    assert_accounted(&outcome);
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let mut sans = Sans::new("ifcp", 1, disk(Value::Null), requests(0, 512, 1));
    sans.pairs = 2;
    assert_eq!(sans.error(), "flow san.1: fcp: pairs = 2: 1, as there are connections, with iFCP");
    sans.pairs = 1;
    sans.workload["frame_bytes"] = json!(2050);
    assert_eq!(sans.error(), "flow san.1: fcp: frame = 2050 B: a multiple of 4, 256 to 2112 B");
    sans.workload["frame_bytes"] = json!(2048);
    sans.workload["queue_depth"] = json!(0);
    assert_eq!(sans.error(), "flow san.1: fcp: a burst of at least 512 B, and a queue depth of at least 1");
    sans.workload["queue_depth"] = json!(1);
    sans.workload["source"]["request_bytes"] = json!(700);
    assert_eq!(sans.error(), "flow san.1: fcp: requests of a multiple of 512 B, at most 16 MiB");
}
