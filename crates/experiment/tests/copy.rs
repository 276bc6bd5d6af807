//! A copy of files over several connections: everything arrives, in the time that lines, ends and messages leave.

use crate::common::*;
use experiment::{Metric, Outcome};
use serde_json::{json, Value};

/// Files of one size, with `change` on top.
fn copy(count: u64, bytes: u64, change: &Value) -> Value {
    let mut copy = json!({
        "kind": "copy", "files": [{"count": count, "min_bytes": bytes, "max_bytes": bytes}], "jobs": 1,
        "chunk_bytes": 1 << 20, "file_overhead_bytes": 0, "chunk_overhead_bytes": 0, "begin_round_trips": 0,
        "end_round_trips": 0, "changed_ppm": 1_000_000, "read_bps": null, "write_bps": null, "hash_bps": null,
        "limit_bps": null, "file_ns": 0,
    });
    for (key, value) in change.as_object().expect("a table of changes") {
        copy[key] = value.clone();
    }
    copy
}

fn over(run: Dumbbell, streams: u64, workload: &Value) -> Dumbbell {
    let jobs = workload["jobs"].as_u64().unwrap();
    let flows = (0..streams * jobs).map(|index| {
        let start = index / streams * 100 * S;
        let mut flow = flow(&format!("f.{}", index + 1), 0, transport("cubic", json!({})), workload.clone(), start);
        flow["distribution"] = json!("striped");
        flow
    });
    Dumbbell { flows: flows.collect(), duration_ns: 1000 * S, stop_when_done: true, ..run }
}

fn line() -> Dumbbell {
    Dumbbell::new(100_000_000, 20 * MS)
}

fn copied(streams: u64, workload: &Value) -> Outcome {
    over(line(), streams, workload).run()
}

fn of_entry(outcome: &Outcome, name: &str) -> f64 {
    match outcome.entries[0].get(name) {
        Some(Metric::Real(value)) => *value,
        Some(Metric::Integer(value)) => *value as f64,
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn every_byte_of_every_file_arrives_once_with_its_overhead() {
    let sizes = json!([{"count": 300, "min_bytes": 20_000, "max_bytes": 40_000},
                       {"count": 2, "min_bytes": 3_000_000, "max_bytes": 3_000_000},
                       {"count": 5, "min_bytes": 0, "max_bytes": 0}]);
    let work = copy(1, 1, &json!({"files": sizes, "file_overhead_bytes": 100, "chunk_overhead_bytes": 30}));
    for streams in [1, 3, 8] {
        let run = Dumbbell { loss: json!({"kind": "independent", "probability_e12": 1_000_000_000}), ..line() };
        let outcome = over(run, streams, &work).run();
        assert_eq!(integer(&outcome, "files"), 307);
        // A piece for each small file, three for each large one, none for an empty one.
        let overhead = 307 * 100 + (300 + 2 * 3) * 30;
        assert_eq!(integer(&outcome, "delivered_bytes"), integer(&outcome, "file_bytes") + overhead);
        let data = integer(&outcome, "file_bytes");
        assert!((14_900_000..15_100_000).contains(&data), "300 of 30 kB on average, 6 MB: {data}");
        assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    }
}

#[test]
fn the_same_seed_draws_the_same_files_whatever_the_number_of_streams() {
    let work = copy(1, 1, &json!({"files": [{"count": 50, "min_bytes": 1, "max_bytes": 1_000_000}]}));
    let bytes = [1, 2, 7].map(|streams| integer(&copied(streams, &work), "file_bytes"));
    assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2], "{bytes:?}");
}

#[test]
fn a_large_file_uses_all_streams_and_takes_as_long_as_one_bulk() {
    let outcome = copied(4, &copy(1, 100_000_000, &json!({})));
    assert!((0..4).all(|lane| of_flow(&outcome, lane, "delivered_bytes") > 10_000_000));
    let completion = real(&outcome, "completion_s");
    assert!((8.2..9.5).contains(&completion), "100 MB over 100 Mbit/s: {completion}");
    let goodput = real(&outcome, "file_goodput_bps");
    assert!((goodput - 8e8 / completion).abs() < 1.0, "{goodput}");
    assert!((of_entry(&outcome, "completion_s") - completion).abs() < 1e-9);
}

#[test]
fn small_files_are_no_slower_than_a_large_one_but_for_their_overhead() {
    let large = real(&copied(4, &copy(1, 30_000_000, &json!({}))), "completion_s");
    let small = real(&copied(4, &copy(1000, 30_000, &json!({}))), "completion_s");
    assert!((small / large - 1.0).abs() < 0.05, "{small} s, as one file {large} s");
}

#[test]
fn messages_take_their_round_trips() {
    let plain = real(&copied(2, &copy(10, 100_000, &json!({}))), "completion_s");
    let work = copy(10, 100_000, &json!({"begin_round_trips": 3, "end_round_trips": 2}));
    let more = real(&copied(2, &work), "completion_s") - plain;
    assert!((more - 5.0 * 0.02).abs() < 0.005, "five round trips of 20 ms: {more}");
}

#[test]
fn the_slower_end_is_the_pace() {
    for key in ["read_bps", "write_bps", "limit_bps"] {
        let outcome = copied(4, &copy(1, 50_000_000, &json!({key: 40_000_000})));
        let completion = real(&outcome, "completion_s");
        assert!((9.9..10.6).contains(&completion), "400 Mbit at 40 Mbit/s: {key}, {completion}");
        assert_eq!(integer(&outcome, "delivered_bytes"), 50_000_000);
    }
    let completion = real(&copied(4, &copy(1000, 1000, &json!({"file_ns": 5 * MS}))), "completion_s");
    assert!((5.0..5.3).contains(&completion), "1000 files of 5 ms: {completion}");
}

#[test]
fn a_delta_sends_what_changed_and_takes_the_time_of_its_hashes() {
    let change = json!({"changed_ppm": 20_000, "chunk_bytes": 65_536, "hash_bps": 400_000_000});
    let outcome = copied(4, &copy(1, 200_000_000, &change));
    let sent = integer(&outcome, "delivered_bytes");
    assert!((3_000_000..5_000_000).contains(&sent), "2 % of 200 MB: {sent}");
    assert_eq!(integer(&outcome, "file_bytes"), 200_000_000);
    let completion = real(&outcome, "completion_s");
    assert!((4.0..4.3).contains(&completion), "1.6 Gbit hashed at 400 Mbit/s: {completion}");
    let same = copied(4, &copy(20, 1_000_000, &json!({"changed_ppm": 0})));
    assert_eq!((integer(&same, "delivered_bytes"), integer(&same, "files")), (0, 20));
}

#[test]
fn jobs_have_connections_of_their_own_and_are_timed_one_by_one() {
    let outcome = copied(2, &copy(1, 10_000_000, &json!({"jobs": 3})));
    assert_eq!((integer(&outcome, "jobs"), integer(&outcome, "late_jobs")), (3, 0));
    assert_eq!(integer(&outcome, "file_bytes"), 30_000_000);
    assert!(real(&outcome, "simulated_s") > 200.0 && !outcome.metrics.contains_key("completion_s"));
    let (middle, longest) = (real(&outcome, "job_p50_s"), real(&outcome, "job_max_s"));
    assert!((0.8..1.3).contains(&middle) && longest < 1.3, "{middle} and {longest}");
    // At 0.5 Mbit/s a job takes 160 s, and the next one begins after 100.
    let slow = copied(2, &copy(1, 10_000_000, &json!({"jobs": 3, "limit_bps": 500_000})));
    assert_eq!((integer(&slow, "jobs"), integer(&slow, "late_jobs")), (3, 2));
}

#[test]
fn a_copy_that_is_cut_short_says_how_many_files_are_whole() {
    let run = Dumbbell { duration_ns: S, ..over(line(), 2, &copy(100, 1_000_000, &json!({}))) };
    let outcome = run.run();
    let files = integer(&outcome, "files");
    assert!((5..15).contains(&files), "{files} of 1 MB in 1 s of 100 Mbit/s");
    assert_eq!(outcome.notes, [format!("flow f: {files} of 100 files were whole at the end")]);
    assert!(!outcome.metrics.contains_key("completion_s"));
}

#[test]
fn a_copy_that_cannot_be_is_refused() {
    for (change, what) in [
        (json!({"files": []}), "a count above zero"),
        (json!({"files": [{"count": 1, "min_bytes": 2, "max_bytes": 1}]}), "not above the largest"),
        (json!({"files": [{"count": 1u64 << 40, "min_bytes": 0, "max_bytes": 1u64 << 30}]}), "at most 2^62 bytes"),
        (json!({"chunk_bytes": 0}), "chunk above zero"),
        (json!({"changed_ppm": 1_000_001}), "at most all chunks"),
        (json!({"read_bps": 0}), "rates above zero"),
    ] {
        let run = over(line(), 2, &copy(1, 1, &change));
        let error = experiment::simulate(&run.spec(), &mut |_| std::ops::ControlFlow::Continue(()));
        let error = error.expect_err("it is refused").to_string();
        assert!(error.contains(what), "{error}");
    }
}
