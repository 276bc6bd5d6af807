//! Rate, delay and queue of each link.

use crate::line::{address, found, Link, Path};
use path_test::estimate::Outcome;
use path_test::hops::{Hops, Settings};
use path_test::registry;

const MS: u64 = 1_000_000;

fn three() -> Vec<Link> {
    vec![Link::new(100_000_000, MS), Link::new(10_000_000, 20 * MS), Link::new(1_000_000_000, 5 * MS)]
}

fn measured(path: &mut Path) -> Outcome {
    path.play(&mut Hops::new(Settings::default()).unwrap())
}

fn noted(outcome: &Outcome, words: &str) -> bool {
    outcome.notes.iter().any(|note| note.contains(words))
}

/// The estimate of a quantity is within `share` of the truth.
fn near(outcome: &Outcome, quantity: &str, truth: f64, share: f64) {
    let (value, low, high) = found(outcome, quantity).unwrap_or_else(|| panic!("no {quantity}: {outcome:?}"));
    assert!((value - truth).abs() <= share * truth, "{quantity}: {value}, {truth} is right");
    assert!(low <= value && value <= high, "{quantity}: {low} {value} {high}");
}

#[test]
fn every_link_of_a_path_at_rest_is_found() {
    let mut path = Path::new(three());
    path.far_clock = (-77_000_000_000, 20_000);
    let outcome = measured(&mut path);
    assert_eq!(outcome.refused, None);
    assert_eq!(found(&outcome, "hops"), Some((3.0, 3.0, 3.0)));
    for (number, (rate, delay_s)) in [(100e6, 1e-3), (10e6, 20e-3), (1e9, 5e-3)].into_iter().enumerate() {
        near(&outcome, &format!("hop_{}_capacity_bps", number + 1), rate, 0.02);
        near(&outcome, &format!("hop_{}_delay_s", number + 1), delay_s, 0.01);
        let queue = found(&outcome, &format!("hop_{}_queue_delay_s", number + 1)).unwrap();
        assert!(queue.0 < 2e-6, "{queue:?}");
    }
    assert!(noted(&outcome, "hop 2: 198.19.0.2, 243 replies to 243 packets"), "{:?}", outcome.notes);
    assert!(noted(&outcome, "hop 3: the far end"));
    assert_eq!(outcome.cost.packets, 9 + 3 * 240);
}

#[test]
fn queues_and_losses_widen_the_estimates_and_leave_them_right() {
    let mut path = Path::new(three());
    (path.waits, path.loses_one_in, path.step_ns) = ((4, 4 * MS), 50, 1000);
    let outcome = measured(&mut path);
    near(&outcome, "hop_1_capacity_bps", 100e6, 0.1);
    near(&outcome, "hop_2_capacity_bps", 10e6, 0.05);
    near(&outcome, "hop_2_delay_s", 20e-3, 0.02);
    // A quarter waits for 2 ms in the mean, there and back.
    for hop in 1..=2 {
        near(&outcome, &format!("hop_{hop}_queue_delay_s"), 1e-3, 0.4);
    }
}

#[test]
fn routers_that_quote_little_are_within_the_delays_interval() {
    let mut path = Path::new(three());
    path.quote = 56;
    let outcome = measured(&mut path);
    near(&outcome, "hop_2_capacity_bps", 10e6, 0.02);
    let (_, low, high) = found(&outcome, "hop_2_delay_s").unwrap();
    assert!(low <= 20e-3 && 20e-3 <= high * 1.0001, "{low} {high}");
}

#[test]
fn a_silent_router_is_a_gap() {
    let mut links = three();
    links.insert(1, Link { answers: false, ..Link::new(50_000_000, 2 * MS) });
    let outcome = measured(&mut Path::new(links));
    assert_eq!(found(&outcome, "hops").map(|(hops, ..)| hops), Some(4.0));
    assert!(noted(&outcome, "hop 2: silent"));
    assert_eq!(found(&outcome, "hop_2_capacity_bps"), None);
    // 50 and 10 Mbit/s in a row.
    near(&outcome, "hop_3_capacity_bps", 1.0 / (1.0 / 50e6 + 1.0 / 10e6), 0.02);
    near(&outcome, "hop_3_delay_s", 22e-3, 0.01);
}

#[test]
fn limited_messages_are_refused_and_said_to_be() {
    let mut links = three();
    links[0].one_in = 2;
    let outcome = measured(&mut Path::new(links));
    assert!(noted(&outcome, "hop 1: not measured: its ICMP messages are limited"), "{:?}", outcome.notes);
    assert_eq!(found(&outcome, "hop_1_capacity_bps"), None);
    assert_eq!(found(&outcome, "hop_2_capacity_bps"), None, "it needs the hop before it");
    near(&outcome, "hop_3_capacity_bps", 1e9, 0.05);
}

#[test]
fn a_router_that_answers_slowly_to_small_packets_gives_no_rate() {
    // The first link seems slower than both together.
    let mut path = Path::new(vec![Link::new(10_000_000, MS), Link::new(1_000_000_000, MS)]);
    path.change = |links, train| links[0].rate_bps = if train % 2 == 0 { 10_000_000 } else { 20_000_000 };
    let outcome = measured(&mut path);
    assert!(noted(&outcome, "no rate") || outcome.refused.is_some(), "{outcome:?}");
}

#[test]
fn a_route_that_changes_is_told() {
    let mut path = Path::new(three());
    path.change = |links, train| {
        if train == 60 {
            links.insert(1, Link::new(30_000_000, MS));
        }
    };
    let outcome = measured(&mut path);
    assert!(noted(&outcome, "hop 3: the route changed"), "{:?}", outcome.notes);
    assert!(noted(&outcome, &address(2).to_string()));
    assert!(noted(&outcome, "hop 3: not measured"));
}

#[test]
fn nobody_answers() {
    let mut path = Path::new(three());
    path.loses_one_in = 1;
    let outcome = measured(&mut path);
    assert!(outcome.refused.is_some_and(|why| why.contains("no router and no far end answered")));
    assert_eq!(outcome.estimates, []);
}

#[test]
fn a_far_end_out_of_reach_leaves_the_routers() {
    let mut links = three();
    // Packets of every size are too big for the last link, and its router says nothing.
    (links[2].mtu_bytes, links[1].tells_too_big) = (500, false);
    let outcome = measured(&mut Path::new(links));
    assert_eq!(found(&outcome, "hops"), None);
    assert!(noted(&outcome, "hop 2 is the last that answered"));
    near(&outcome, "hop_2_capacity_bps", 10e6, 0.02);
}

#[test]
fn traceroute_alone_is_cheap() {
    let outcome = Path::new(three()).play(&mut Hops::new(Settings { packets: 0, ..Settings::default() }).unwrap());
    assert_eq!((outcome.refused.clone(), outcome.cost.packets), (None, 9));
    assert_eq!(found(&outcome, "hops"), Some((3.0, 3.0, 3.0)));
    assert!(noted(&outcome, "hop 1: 198.19.0.1, 3 replies to 3 packets"));
}

#[test]
fn a_share_of_the_line_is_kept() {
    let settings = Settings { line_rate_bps: Some(10_000_000), packets: 6, ..Settings::default() };
    let outcome = Path::new(three()).play(&mut Hops::new(settings).unwrap());
    assert!(outcome.cost.bytes as f64 * 8.0 <= 0.01 * 10e6 * outcome.cost.seconds);
}

#[test]
fn settings_that_do_not_fit_are_refused_in_a_line() {
    for (json, words) in [
        (r#"{"test": "hops", "packet_bytes": 899}"#, "packet_bytes = 899"),
        (r#"{"test": "hops", "max_hops": 31}"#, "max_hops = 31"),
        (r#"{"test": "hops", "packets": 2}"#, "packets = 2"),
        (r#"{"test": "hops", "gap_ms": 0}"#, "gap_ms = 0"),
        (r#"{"test": "hops", "share_ppm": 0}"#, "share_ppm = 0"),
        (r#"{"test": "mtu", "base_bytes": 60}"#, "base_bytes = 60"),
        (r#"{"test": "mtu", "packet_bytes": 1199}"#, "packet_bytes = 1199"),
        (r#"{"test": "mtu", "gap": 1}"#, "unknown field `gap`"),
        (r#"{"test": "route"}"#, "test = \"route\": must be one of"),
        (r#"{"packet_bytes": 9}"#, "missing field `test`"),
    ] {
        let refusal = registry::estimator(json).err().unwrap_or_else(|| panic!("{json} is taken"));
        assert!(refusal.contains(words) && !refusal.contains('\n'), "{refusal}");
    }
    assert!(registry::estimator(r#"{"test": "hops"}"#).is_ok() && registry::estimator(r#"{"test": "mtu"}"#).is_ok());
}
