//! iSCSI sessions over simulated TCP: the cost of each setting in round trips; no request is lost.

use crate::common::*;
use experiment::{Metric, Outcome};
use serde_json::{json, Value};

const RTT: u64 = 100 * MS;
const KIB: u64 = 1024;

/// Requests of `bytes`, `count` of them, one after the other on the unit.
fn requests(reads_e6: u64, bytes: u64, count: impl Into<Option<u64>>) -> Value {
    json!({"kind": "mix", "reads_e6": reads_e6, "request_bytes": bytes, "random": false, "think_ns": 0,
           "requests": count.into(), "span_bytes": null})
}

/// A line that takes no time beside its 100 ms there and back, and a TCP that has a window for everything.
fn quick(session: Value) -> Dumbbell {
    let open = json!({"initial_cwnd": 10_000, "slow_start_after_idle": false});
    let run = Dumbbell::new(400_000_000_000, RTT).flow("s", transport("reno", open), session);
    Dumbbell { duration_ns: 1000 * S, stop_when_done: true, ..run }
}

fn rtts(outcome: &Outcome, name: &str) -> f64 {
    real(outcome, name) * 1e9 / RTT as f64
}

/// Within a thousandth of a round trip and `packets` of serialisation.
fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 0.002
}

#[test]
fn a_write_costs_the_round_trips_that_its_settings_ask_for() {
    let write = |change: Value| quick(iscsi_session(change, requests(0, 64 * KIB, 1))).run();
    // SYN, login; then command and R2T, data and status.
    let asked = write(json!({"immediate_data": false}));
    assert!(near(rtts(&asked, "write_queue_mean_s"), 2.0), "{}", rtts(&asked, "write_queue_mean_s"));
    assert!(near(rtts(&asked, "write_network_mean_s"), 2.0), "{}", rtts(&asked, "write_network_mean_s"));
    assert!(near(real(&asked, "simulated_s") / 0.1, 4.0));
    // The 8 KiB that ride on the command save nothing while the rest is asked for.
    let immediate = write(json!({}));
    assert!(near(rtts(&immediate, "write_network_mean_s"), 2.0));
    // With the rest unasked it is one round trip.
    let unsolicited = write(json!({"initial_r2t": false}));
    assert!(near(rtts(&unsolicited, "write_network_mean_s"), 1.0), "{}", rtts(&unsolicited, "write_network_mean_s"));
    assert!(near(real(&unsolicited, "simulated_s") / 0.1, 3.0));
    // One 8 KiB write fits its command.
    let small = quick(iscsi_session(json!({}), requests(0, 8 * KIB, 1))).run();
    assert!(near(rtts(&small, "write_network_mean_s"), 1.0));
    assert_eq!(integer(&asked, "written_bytes"), 64 * KIB);
}

#[test]
fn one_r2t_at_a_time_gives_a_burst_per_round_trip() {
    let bursts = |r2ts: u64| {
        let change = json!({"immediate_data": false, "max_burst_bytes": 4096, "first_burst_bytes": 4096,
                            "max_outstanding_r2t": r2ts});
        rtts(&quick(iscsi_session(change, requests(0, 64 * KIB, 1))).run(), "write_network_mean_s")
    };
    // The command, then 16 bursts of 4 KiB.
    assert!(near(bursts(1), 17.0), "{}", bursts(1));
    // Four at once: the next is asked for as each is there.
    assert!(near(bursts(4), 5.0), "{}", bursts(4));
    assert!(near(bursts(16), 2.0), "{}", bursts(16));
}

#[test]
fn reads_take_a_round_trip_and_a_queue_fills_it() {
    let reads =
        |depth: u64| quick(iscsi_session(json!({"queue_depth": depth}), requests(1_000_000, 64 * KIB, 100))).run();
    let one = reads(1);
    // The first waits for connection and login.
    assert!(near(real(&one, "simulated_s") / 0.1, 102.0), "{}", real(&one, "simulated_s"));
    assert!(near(rtts(&one, "read_latency_p50_s"), 1.0) || (rtts(&one, "read_latency_p50_s") - 1.0).abs() < 0.005);
    let ten = reads(10);
    assert!((real(&ten, "simulated_s") / 0.1 - 12.0).abs() < 0.05, "{}", real(&ten, "simulated_s"));
    assert_eq!((integer(&ten, "reads"), integer(&ten, "read_bytes")), (100, 100 * 64 * KIB));
}

#[test]
fn what_is_asked_for_crosses_the_line_and_nothing_else() {
    // 20 reads of 64 KiB in Data-In of 8 KiB: 48 bytes of header each, the status on the last. 20 writes: 8 KiB with
    // the command, 56 KiB in Data-Out, one status.
    let outcome = quick(iscsi_session(json!({"queue_depth": 4}), requests(500_000, 64 * KIB, 40))).run();
    let (reads, writes) = (integer(&outcome, "reads"), integer(&outcome, "writes"));
    assert_eq!(reads + writes, 40);
    assert!(reads > 5 && writes > 5, "{reads} reads");
    assert_eq!(integer(&outcome, "read_bytes"), reads * 64 * KIB);
    assert_eq!(integer(&outcome, "written_bytes"), writes * 64 * KIB);
    let (up, down) = (integer(&outcome, "delivered_bytes"), integer(&outcome, "reverse_delivered_bytes"));
    let login_up = up - (reads * 48 + writes * (64 * KIB + 8 * 48));
    let login_down = down - (reads * (64 * KIB + 8 * 48) + writes * 2 * 48);
    assert!((300..600).contains(&login_up) && (200..600).contains(&login_down), "{login_up} and {login_down}");
}

#[test]
fn losses_in_both_directions_delay_and_lose_nothing() {
    let loss = json!({"kind": "independent", "probability_e12": 10_000_000_000u64});
    for connections in [1, 3] {
        let work = iscsi_session(json!({"queue_depth": 8, "initial_r2t": false}), requests(500_000, 64 * KIB, 300));
        let mut run = Dumbbell::new(50_000_000, 40 * MS);
        for number in 0..connections {
            run.flows.push(flow(&format!("s.{number}"), 0, transport("cubic", json!({})), work.clone(), 0));
        }
        let run = Dumbbell {
            loss: loss.clone(),
            reverse_loss: loss.clone(),
            duration_ns: 600 * S,
            stop_when_done: true,
            ..run
        };
        let outcome = run.run();
        assert!(
            integer(&outcome, "retransmitted_segments") > 10
                && integer(&outcome, "reverse_retransmitted_segments") > 10
        );
        assert_eq!(integer(&outcome, "requests"), 300, "{:?}", outcome.notes);
        assert_eq!(integer(&outcome, "read_bytes") + integer(&outcome, "written_bytes"), 300 * 64 * KIB);
        assert_eq!(integer(&outcome, "requests_failed"), 0);
        assert!(real(&outcome, "simulated_s") < 100.0 && outcome.notes.is_empty(), "{:?}", outcome.notes);
        // Every connection had its share, and the same spec gives the same outcome.
        for number in 0..connections {
            assert!(of_flow(&outcome, number, "requests") > 50);
        }
        assert_eq!(run.run().metrics, outcome.metrics);
    }
}

#[test]
fn a_disk_takes_its_time_and_a_stripe_shares_it() {
    let disk = |model: Value, count: u64| {
        json!({"model": model, "drive": null, "scheduler": null, "count": count, "stripe_bytes": 65_536,
               "size_bytes": 0})
    };
    let read = |disk: Value, depth: u64| {
        let source = json!({"kind": "mix", "reads_e6": 1_000_000, "request_bytes": 4096, "random": true,
                            "think_ns": 0, "requests": 400, "span_bytes": null});
        let change = json!({"queue_depth": depth, "disk": disk});
        let run =
            Dumbbell::new(10_000_000_000, MS).flow("s", transport("reno", json!({})), iscsi_session(change, source));
        Dumbbell { duration_ns: 1000 * S, stop_when_done: true, ..run }.run()
    };
    let one = read(disk(json!("cheetah-9lp"), 1), 1);
    // 5.4 ms of seek and 3 ms of rotation on average, and the controller's overhead.
    let mean = real(&one, "disk_mean_s");
    assert!((0.006..0.012).contains(&mean), "{mean}");
    let sum = real(&one, "queue_mean_s") + real(&one, "network_mean_s") + mean;
    assert!((sum / real(&one, "read_latency_mean_s") - 1.0).abs() < 1e-9);
    let queued = read(disk(json!("cheetah-9lp"), 1), 8);
    assert!(real(&queued, "disk_mean_s") > 6.0 * mean, "requests wait for each other at one disk");
    let striped = read(disk(json!("cheetah-9lp"), 8), 8);
    assert!(real(&striped, "iops") > 3.0 * real(&queued, "iops"), "and less at eight");
    let flash = read(disk(json!("nvme"), 1), 1);
    assert!((60e-6..200e-6).contains(&real(&flash, "disk_mean_s")), "{}", real(&flash, "disk_mean_s"));
}

#[test]
fn a_file_servers_transactions_end_and_clients_share_the_line() {
    let source =
        json!({"kind": "postmark", "files": 500, "smallest_bytes": 500, "largest_bytes": 10_000, "transactions": 500});
    let run =
        |depth: u64| quick(iscsi_session(json!({"queue_depth": depth, "initial_r2t": false}), source.clone())).run();
    let one = run(1);
    // A transaction has 1.5 requests for its file created or deleted and 1.5 for the one read or appended to; each
    // takes a round trip, since no file has more than immediate data and a first burst.
    let requests = integer(&one, "requests") as f64;
    assert!((1350.0..1650.0).contains(&requests), "{requests}");
    let taken = real(&one, "simulated_s") / 0.1 - 2.0;
    assert!((taken / requests - 1.0).abs() < 0.01, "{taken} round trips for {requests}");
    let eight = run(8);
    assert!(real(&eight, "simulated_s") < real(&one, "simulated_s") / 6.0);
    assert_eq!(integer(&eight, "requests_failed"), 0);
}

#[test]
fn warm_up_is_left_out_and_the_session_shares_with_others() {
    let work = iscsi_session(json!({"queue_depth": 16}), requests(1_000_000, 64 * KIB, None));
    let run = Dumbbell::new(100_000_000, 20 * MS).flow("s", transport("cubic", json!({})), work).flow(
        "bulk",
        transport("cubic", json!({})),
        bulk(),
    );
    let outcome = Dumbbell { warmup_ns: 2 * S, ..run }.run();
    // Reads come back beside the bulk's ACKs, bulk goes beside the session's.
    let read = real(&outcome, "read_bytes_per_s") * 8.0;
    // The bulk's queue holds up the session's ACKs, and the session's the bulk's.
    assert!((0.6e8..0.97e8).contains(&read), "{read}");
    let reverse = real(&outcome, "reverse_goodput_bps");
    assert!((reverse / read - 1.0).abs() < 0.02, "{reverse}");
    assert!(matches!(outcome.flows[1].get("goodput_bps"), Some(Metric::Real(rate)) if *rate > 0.6e8));
    assert!(!outcome.flows[1].contains_key("requests") && !outcome.flows[1].contains_key("reverse_delivered_bytes"));
    assert!(real(&outcome, "read_latency_max_s") < 1.0, "the login's wait was before the warm-up");
}

#[test]
fn a_session_that_does_not_hold_together_is_refused() {
    let wrong = |session: Value| {
        let spec = Dumbbell::new(1_000_000_000, MS).flow("s", transport("reno", json!({})), session).spec();
        experiment::simulate(&spec, &mut |_| std::ops::ControlFlow::Continue(())).expect_err("refused").to_string()
    };
    let small = requests(0, 4096, 1);
    for (change, part) in [
        (json!({"max_burst_bytes": 100}), "RFC 7143"),
        (json!({"first_burst_bytes": 300_000}), "RFC 7143"),
        (json!({"queue_depth": 0}), "queue depth"),
        (
            json!({"disk": {"model": "cheetah", "drive": null, "scheduler": null, "count": 1, "stripe_bytes": 512,
                            "size_bytes": 0}}),
            "cheetah-9lp",
        ),
        (json!({"source": requests(0, 100, 1)}), "multiple of 512"),
    ] {
        let error = wrong(iscsi_session(change, small.clone()));
        assert!(error.contains(part) && error.contains("flow s"), "{error}");
    }
}
