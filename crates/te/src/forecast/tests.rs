use super::*;
use crate::link_view::LinkView;
use crate::policy::of_tests as policy;

const GBIT: u64 = 1_000_000_000;

/// The paper's table 1: core, sender's and receiver's line and lightpath, as counters show them under a flow of `rate`.
fn cell(scenario: &str, rate: u64, rtt_ms: u64) -> (Paths, Rate) {
    let over = if rate < GBIT {
        622_080_000
    } else if rate == GBIT {
        2_488_000_000
    } else {
        39_813_000_000
    };
    let line = |capacity: u64, queue_packets: u64| LinkView {
        capacity: Rate(capacity),
        load: Rate(rate),
        queue: Size(queue_packets * 1500),
        queue_limit: Size(500 * 1500),
        dropped: 0,
    };
    let (ingress, core, lightpath, egress) = match scenario {
        "A" => (over, over, over, over),
        "B" => (rate, over, over, over),
        "C1" => (over, rate, rate, over),
        "C2" => (over, rate, over, over),
        _ => (over, over, over, rate),
    };
    let paths = Paths {
        ip_delay: Span::from_micros(rtt_ms * 500),
        // Data alone moves: an RTT of 6 instead of 10 means 1 instead of 5 one way.
        lightpath_delay: Span::from_micros(rtt_ms * 100),
        return_delay: Span::from_micros(rtt_ms * 500),
        ingress: Some(line(ingress, 0)),
        core: line(core, 0),
        // 343 of 500 packets waited at r3 (the paper, section 3.4).
        egress: Some(line(egress, if scenario == "D" { 343 } else { 0 })),
        packet: Size(1500),
        allowed: crate::AllowedMitigations::default(),
    };
    (paths, Rate(lightpath))
}

/// Without a mitigation.
fn plain(rate: Rate, remaining: Size, room: Rate, lightpath_cost: Size, paths: &Paths) -> Forecast {
    forecast(&Case { rate, remaining, room, lightpath_cost, paths }, Mitigation::None, &policy())
}

fn of(scenario: &str, rate: u64, rtt_ms: u64) -> Forecast {
    let (paths, room) = cell(scenario, rate, rtt_ms);
    plain(Rate(rate), Size(rate / 8 * 20), room, Size(0), &paths)
}

#[test]
fn costs_rank_the_scenarios_as_in_the_paper() {
    for rate in [100_000_000, GBIT, 10 * GBIT] {
        for rtt_ms in [10, 100, 1000] {
            let [a, b, c1, c2, d] = ["A", "B", "C1", "C2", "D"].map(|s| of(s, rate, rtt_ms));
            let limits = [a, b, c1, c2, d].map(|f| f.limit);
            assert_eq!(limits, [Limit::Window, Limit::Sender, Limit::Core, Limit::Core, Limit::Receiver]);
            assert_eq!(a.cost, Size(0), "A at {rate}, {rtt_ms} ms");
            assert!(b.cost > Size(0) && b.cost == c1.cost && c1.cost == c2.cost, "{b:?} {c1:?} {c2:?}");
            // D is B with losses, where the queue at the merging router has no room for the overlap: at 100 Mbit/s and
            // 10 ms it has.
            assert!(d.cost >= b.cost && (d.cost > b.cost) == (d.lost_packets > 0), "{d:?} {b:?}");
            assert_eq!(d.lost_packets == 0, rate == 100_000_000 && rtt_ms == 10, "{d:?}");
            // B and C stay above the paper's 80 %; nothing is dropped but in D, which falls to a fifth where the loss
            // is massive.
            assert!(b.min_rate_ppm > 800_000 && b.lost_packets == 0 && c2.lost_packets == 0);
            if rate == 10 * GBIT || rate == GBIT && rtt_ms > 10 {
                assert!(d.min_rate_ppm == 200_000 && d.cost.0 > 2 * b.cost.0, "{d:?} {b:?}");
            }
            // A gains by the ratio of the RTTs, C2 by the lightpath's rate, the others nothing.
            assert!((a.rate_after.0 as f64 / rate as f64 - 1.0 / 0.6).abs() < 0.01);
            assert!(c2.rate_after.0 > 2 * rate && b.rate_after.0 == rate && d.rate_after.0 == rate);
        }
    }
}

#[test]
fn losses_in_d_and_reordering_in_b_are_overlap_times_rate() {
    // 40 ms at 1 Gbit/s: 5 MB, 3333 packets overtake; the receiver's line has room for 157 packets more.
    let (b, d) = (of("B", GBIT, 100), of("D", GBIT, 100));
    assert_eq!((b.overlap, b.overtaken_packets), (Span::from_millis(40), 3333));
    assert_eq!(d.lost_packets, (5_000_000 - 157 * 1500) / 1500);
}

#[test]
fn a_nearly_full_receiver_link_costs_as_much_as_a_full_one() {
    // 500 Mbit/s into 622 Mbit/s: not full before, but twice the flow does not fit.
    let (mut paths, room) = cell("D", 500_000_000, 100);
    paths.egress = Some(LinkView { capacity: Rate(622_080_000), ..paths.egress.unwrap() });
    let found = plain(Rate(500_000_000), Size(GBIT), room, Size(0), &paths);
    assert_eq!(found.limit, Limit::Window);
    assert!(found.lost_packets > 500, "{found:?}");
}

#[test]
fn a_longer_lightpath_overtakes_nothing() {
    let (mut paths, room) = cell("B", GBIT, 10);
    paths.lightpath_delay = Span::from_millis(6);
    let found = plain(Rate(GBIT), Size(GBIT), room, Size(0), &paths);
    assert_eq!((found.pause, found.min_rate_ppm), (Span::ZERO, 1_000_000));
    assert_eq!((found.overlap, found.overtaken_packets, found.cost), (Span::ZERO, 0, Size(0)));
}

#[test]
fn the_offload_weight_follows_the_load() {
    // B's core is at 40 %: a tenth counts. C's is full: all of it does, and the lightpath's cost comes off.
    let remaining = GBIT / 8 * 20;
    assert_eq!(of("B", GBIT, 100).gain, Size(remaining / 10));
    assert_eq!(of("C1", GBIT, 100).gain, Size(remaining));
    let (paths, room) = cell("C1", GBIT, 100);
    let paid = plain(Rate(GBIT), Size(remaining), room, Size(1_000_000), &paths);
    assert_eq!(paid.gain, Size(remaining - 1_000_000));
}

#[test]
fn the_area_under_cubics_curve_is_right() {
    // Against a sum over 100,000 steps of the formula in the module's text.
    for (packets, kept, shorter) in [(8333.0, 0.7, 1.0), (8333.0, 0.2, 1.4), (100.0, 0.5, 1.0), (8333.0, 0.12, 1.667)] {
        let k = cbrt((1.0 - kept) * packets / CUBIC_C);
        let steps = 100_000;
        let rate = |i: usize| shorter * (1.0 - (1.0 - kept) * (1.0 - (i as f64 + 0.5) / steps as f64).powi(3));
        let sum: f64 = (0..steps).map(|i| (1.0 - rate(i)).max(0.0)).sum::<f64>() * k / steps as f64;
        let found = deficit_s(packets, kept, shorter);
        assert!((found - sum).abs() < 1e-3 * sum, "{packets} {kept} {shorter}: {found}, not {sum}");
    }
    assert_eq!(deficit_s(8333.0, 0.7, 1.667), 0.0);
}
