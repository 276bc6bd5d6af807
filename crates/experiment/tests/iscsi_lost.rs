//! A session is lost when its line is cut for long: it is established again over fresh TCP connections, and every
//! request is answered.

use crate::common::*;
use experiment::Outcome;
use serde_json::{json, Value};

const KIB: u64 = 1024;
const REQUESTS: u64 = 400;

/// 64 KiB requests, half of them reads, on 10 Mbit/s: about 11 s of work in each direction.
fn session(requests: u64) -> Value {
    let source = json!({"kind": "mix", "reads_e6": 500_000, "request_bytes": 64 * KIB, "random": true, "think_ns": 0,
                        "requests": requests, "span_bytes": null});
    iscsi_session(json!({"queue_depth": 16}), source)
}

fn both(at_ns: u64, kind: &str) -> [Value; 2] {
    [0, 1].map(|link| json!({"when": {"kind": "at", "time_ns": at_ns}, "action": {"kind": kind, "link": link}}))
}

/// A session whose line is down at these times, s.
fn cut(connections: usize, times: &[(u64, u64)]) -> Dumbbell {
    let mut run = Dumbbell::new(10_000_000, 40 * MS);
    for number in 0..connections {
        run.flows.push(flow(&format!("s.{number}"), 0, transport("cubic", json!({})), session(REQUESTS), 0));
    }
    for &(from, to) in times {
        run.events.extend(both(from * S, "link_down"));
        run.events.extend(both(to * S, "link_up"));
    }
    Dumbbell { duration_ns: 2000 * S, stop_when_done: true, series_interval_ns: Some(S), ..run }
}

fn answered(outcome: &Outcome) {
    assert_eq!(integer(outcome, "requests"), REQUESTS, "{:?}", outcome.notes);
    assert_eq!(integer(outcome, "read_bytes") + integer(outcome, "written_bytes"), REQUESTS * 64 * KIB);
    assert_eq!(integer(outcome, "requests_failed"), 0);
}

#[test]
fn a_session_that_was_lost_is_made_anew_and_every_request_answered() {
    for connections in [1, 3] {
        let run = cut(connections, &[(3, 60)]);
        let outcome = run.run();
        answered(&outcome);
        let [note] = &outcome.notes[..] else { panic!("{:?}", outcome.notes) };
        // 15 s of silence since the last PDU that came whole, and 15 s for an answer to the ping.
        assert!(note.contains("lost once, first at 32.9") && note.contains("no answer to a ping"), "{note}");
        // Retransmissions count on the line as well: no request is counted twice, but bytes are.
        let (up, down) = (integer(&outcome, "delivered_bytes"), integer(&outcome, "reverse_delivered_bytes"));
        assert!(up >= integer(&outcome, "written_bytes") && down >= integer(&outcome, "read_bytes"));
        let took = real(&outcome, "simulated_s");
        // The line is up again at 60 s; a SYN goes at 35 s, and then 1, 3, 7, 15, 31 s later.
        assert!((66.0..80.0).contains(&took), "{took}");
        assert_eq!(run.run().metrics, outcome.metrics);
    }
}

#[test]
fn it_may_be_lost_again_and_again() {
    let outcome = cut(2, &[(3, 60), (68, 120)]).run();
    answered(&outcome);
    let [note] = &outcome.notes[..] else { panic!("{:?}", outcome.notes) };
    assert!(note.contains("lost 2 times, first at 32.9"), "{note}");
}

#[test]
fn a_short_cut_is_tcps_own_affair() {
    let outcome = cut(2, &[(3, 10)]).run();
    answered(&outcome);
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
}

#[test]
fn a_line_that_stays_down_ends_the_session_when_its_attempts_are_used_up() {
    let outcome = cut(1, &[(3, 1999)]).run();
    let [note] = &outcome.notes[..] else { panic!("{:?}", outcome.notes) };
    assert!(note.contains("lost 5 times, first at 32.9") && note.contains("given up at"), "{note}");
    assert!(integer(&outcome, "requests") < REQUESTS);
}

#[test]
fn delivered_bytes_and_rates_go_on_over_the_connections() {
    let outcome = cut(1, &[(3, 60)]).run();
    let rates = &outcome.flow_series.goodput_bps;
    assert!(rates.iter().all(|&rate| (0.0..=10e6).contains(&rate)), "{rates:?}");
    let sum: f64 = rates.iter().sum();
    let delivered = integer(&outcome, "delivered_bytes") as f64 * 8.0;
    // The last second may have no sample.
    assert!(sum <= delivered && sum > delivered - 10e6, "{sum} of {delivered}");
}
