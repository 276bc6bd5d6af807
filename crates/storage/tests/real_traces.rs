//! The traces that ship with the project, and where they are to be had, longer ones.

use std::path::PathBuf;
use storage::trace::Summary;
use storage::{Format, Kind, Replay, Writes};

fn at(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The summary of a trace outside the project, with the format that its content tells; None when it is not there.
fn elsewhere(path: &str, what: &str) -> Option<(Format, Summary)> {
    let path = at("../shared/data").join(path);
    if !path.exists() {
        crate::skip::skipped(&format!("{} is not there ({what})", path.display()));
        return None;
    }
    let reader = storage::stream(&path, None).unwrap();
    let format = reader.format();
    let mut summary = Summary::default();
    reader.for_each(|request| summary.add(&request.unwrap()));
    Some((format, summary))
}

#[test]
fn the_example_trace_is_what_its_readme_says() {
    let trace = storage::open(at("examples/traces/tpcc-small.trace"), None).unwrap();
    let writes: Vec<_> = trace.requests.iter().filter(|r| r.kind == Kind::Write).collect();
    assert_eq!((trace.requests.len(), writes.len()), (6999, 2618));
    assert_eq!(writes.iter().map(|w| u64::from(w.bytes)).sum::<u64>(), 23_403_520);
    assert_eq!(trace.span_ns(), 136_489_000);
    let replay = Replay::new(Writes::read(trace.requests.iter().copied().map(Ok)).unwrap(), 4_000_000, true);
    assert_eq!(replay.period_ns(), Some(4 * (136_489_000 + 136_489_000 / 6998)));
    let rounds: Vec<_> = replay.take(2 * 2618).collect();
    assert_eq!(rounds[2618].at_ns - rounds[0].at_ns, 546_034_016);
}

#[test]
fn a_longer_trace_where_it_is_to_be_had() {
    let Some((format, summary)) = elsewhere("traces/wsrch-small.trace", "web search trace of the MQSim project") else {
        return;
    };
    assert_eq!((format, summary.requests), (Format::Mqsim, 24_783));
}

#[test]
fn the_week_of_a_workstation_where_it_is_to_be_had() {
    let Some((format, summary)) = elsewhere("traces/hp-ajw-1week.srt", "HP SRT trace, a week from 1992-05-30") else {
        return;
    };
    assert_eq!((format, summary.requests, summary.reads), (Format::HpSrt, 44_519, 13_040));
    assert_eq!(summary.last_ns, 603_064_588_892_000);
    // Both disks hold 113 x 8 x 1449 sectors of 256 bytes; no request lies beyond.
    assert_eq!(summary.devices.into_iter().collect::<Vec<_>>(), [(0, 42_252), (1, 2_267)]);
    assert!(summary.end_lba <= 113 * 8 * 1449 / 2, "{}", summary.end_lba);
}

#[test]
fn the_measured_drive_where_it_is_to_be_had() {
    let Some((format, summary)) = elsewhere("disk/cheetah9LP.trace", "10,000 measured requests to a Cheetah 9LP")
    else {
        return;
    };
    assert_eq!((format, summary.requests, summary.reads), (Format::DisksimValidate, 10_000, 6_594));
    assert_eq!(summary.responses, 10_000);
}
