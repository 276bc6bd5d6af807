//! LEDBAT++ on a line: alone it takes it, at its target delay; beside other flows it yields.

use crate::common::*;
use experiment::{Metric, Outcome};
use serde_json::json;

const LINE: u64 = 50_000_000;
const RTT: u64 = 40 * MS;

/// A queue of 120 ms: twice the target delay.
fn line() -> Dumbbell {
    let queue = json!({"kind": "drop_tail", "limit_bytes": LINE / 8 * 120 / 1000, "limit_packets": null});
    Dumbbell { queue, warmup_ns: 20 * S, duration_ns: 80 * S, ..Dumbbell::new(LINE, RTT) }
}

fn ledbat() -> serde_json::Value {
    transport("ledbat_plus_plus", json!({}))
}

fn share(outcome: &Outcome, flow: usize) -> f64 {
    match outcome.flows[flow].get("goodput_bps") {
        Some(Metric::Real(bps)) => bps / (LINE as f64 * 1448.0 / 1500.0),
        other => panic!("goodput is {other:?}"),
    }
}

/// The samples of one link.
fn samples(links: &[i32], values: &[u64], link: i32) -> Vec<u64> {
    links.iter().zip(values).filter(|(&l, _)| l == link).map(|(_, &v)| v).collect()
}

#[test]
fn alone_it_takes_the_line_and_queues_its_target() {
    let run = Dumbbell { series_interval_ns: Some(10 * MS), ..line().flow("backup", ledbat(), bulk()) };
    let outcome = run.run();
    // The slowdowns cost at most a tenth.
    assert!(share(&outcome, 0) > 0.9, "{}", share(&outcome, 0));
    assert_eq!(integer(&outcome, "dropped_packets"), 0);
    // Half of the samples and more stand at the target: 60 ms of the line, 375 kB, within a packet or two.
    let mut queue: Vec<_> = samples(&outcome.link_series.link, &outcome.link_series.queue_bytes, 0);
    queue.drain(..queue.len() / 4);
    queue.sort_unstable();
    let target = (LINE / 8 * 60 / 1000) as f64;
    let median = queue[queue.len() / 2] as f64;
    assert!((median / target - 1.0).abs() < 0.02, "{median} of {target}");
    assert!((queue[queue.len() - 1] as f64) < 1.05 * target, "{:?}", queue.last());
    // And in each slowdown the queue is empty: two round trips at least of every ten slowdowns.
    assert!(queue[queue.len() / 100] < 3_000, "{:?}", queue[queue.len() / 100]);
}

#[test]
fn it_gets_out_of_the_way_of_reno_and_cubic() {
    for neighbour in ["reno", "cubic"] {
        let run = line().flow("backup", ledbat(), bulk()).flow("user", transport(neighbour, json!({})), bulk());
        let outcome = run.run();
        let alone = line().flow("user", transport(neighbour, json!({})), bulk()).run();
        let (backup, user) = (share(&outcome, 0), share(&outcome, 1));
        let alone = share(&alone, 0);
        assert!(user > 0.97 * alone, "{neighbour} gets {user} instead of {alone}");
        // Not starved for good either: slow start after each slowdown finds the free rate.
        assert!(backup > 0.0005 && backup < 0.03, "beside {neighbour} it takes {backup}");
    }
}

/// Two of them, the second 30 s later.
fn late(slowdown_interval: i64) -> Outcome {
    let transport = || transport("ledbat_plus_plus", json!({"parameters": {"slowdown_interval": slowdown_interval}}));
    let mut run = line().flow("first", transport(), bulk()).flow("late", transport(), bulk());
    run.flows[1]["start_ns"] = json!(30 * S);
    Dumbbell { duration_ns: 300 * S, warmup_ns: 60 * S, ..run }.run()
}

#[test]
fn a_latecomer_does_not_drive_out_who_was_there() {
    let outcome = late(9);
    let (first, second) = (share(&outcome, 0), share(&outcome, 1));
    assert!(first > 0.3 && second > 0.3 && first + second > 0.9, "{first} and {second}");
    // Without slowdowns the later one takes the first one's queue for the path, and drives it out.
    let without = late(0);
    assert!(share(&without, 0) < 0.05 && share(&without, 1) > 0.9);
}
