//! The traces that ship with the project, and where they are to be had, longer ones.

use std::path::PathBuf;
use storage::{Kind, Replay};

fn at(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn the_example_trace_is_what_its_readme_says() {
    let trace = storage::open(at("examples/traces/tpcc-small.trace"), "mqsim").unwrap();
    let writes: Vec<_> = trace.requests.iter().filter(|r| r.kind == Kind::Write).collect();
    assert_eq!((trace.requests.len(), writes.len()), (6999, 2618));
    assert_eq!(writes.iter().map(|w| u64::from(w.bytes)).sum::<u64>(), 23_403_520);
    assert_eq!(trace.span_ns(), 136_489_000);
    let replay = Replay::new(trace, 4_000_000, true);
    assert_eq!(replay.period_ns(), Some(4 * (136_489_000 + 136_489_000 / 6998)));
    let rounds: Vec<_> = replay.take(2 * 2618).collect();
    assert_eq!(rounds[2618].at_ns - rounds[0].at_ns, 546_034_016);
}

#[test]
fn a_longer_trace_where_it_is_to_be_had() {
    let path = at("../shared/data/traces/wsrch-small.trace");
    if !path.exists() {
        eprintln!("skipped: {} is not there (web search trace of the MQSim project)", path.display());
        return;
    }
    let trace = storage::open(&path, "mqsim").unwrap();
    assert_eq!(trace.requests.len(), 24_783);
}
