use super::*;
use crate::link_view::LinkView;
use crate::mitigation::{AllowedMitigations, Pacing};
use crate::policy::of_tests as policy;
use crate::residual::residual;
use units::Rate;

const GBIT: u64 = 1_000_000_000;

/// 100 ms of which 50 one way; 10 ms over the lightpath of 2.488 Gbit/s; the sender's and the receiver's line of 1
/// Gbit/s are loaded so.
fn paths(sender_load: u64, receiver_load: u64, queue_packets: u64) -> Paths {
    let line = |capacity, load, queue| LinkView {
        capacity: Rate(capacity),
        load: Rate(load),
        queue: Size(queue),
        queue_limit: Size(750_000),
        dropped: 0,
    };
    Paths {
        ip_delay: Span::from_millis(50),
        lightpath_delay: Span::from_millis(10),
        return_delay: Span::from_millis(50),
        ingress: Some(line(GBIT, sender_load, 0)),
        core: line(2_488_000_000, receiver_load, 0),
        egress: Some(line(GBIT, receiver_load, queue_packets * 1500)),
        packet: Size(1500),
        allowed: AllowedMitigations::default(),
    }
}

/// A router that believes the paths to differ by `hold_ms`, and a sender whose command says `trim_ms`; they do by 40.
fn allowed(hold_ms: u64, buffer: u64, trim_ms: Option<u64>) -> AllowedMitigations {
    let hold = HoldConfig {
        delay: Span::from_millis(hold_ms),
        line: Rate(2_488_000_000),
        pacing: Pacing::default(),
        share_ppm: None,
        buffer: Some(Size(buffer)),
    };
    AllowedMitigations {
        delay_difference: Span::from_millis(40),
        hold_buffer: Some(hold),
        cwnd_reduction: trim_ms.map(Span::from_millis),
    }
}

fn planned(rate: u64, paths: Paths, allowed: AllowedMitigations) -> (Plan, Forecast) {
    let paths = &Paths { allowed, ..paths };
    let case =
        Case { rate: Rate(rate), remaining: Size(GBIT), room: Rate(2_488_000_000), lightpath_cost: Size(0), paths };
    plan(&case, &policy(), Size(0))
}

/// The sender's line is full (B), the receiver's not: it has room for that and 2.488 - 1 Gbit/s more.
fn roomy() -> Paths {
    let paths = paths(GBIT, GBIT, 0);
    let egress = LinkView { capacity: Rate(2_488_000_000), ..paths.egress.unwrap() };
    Paths { egress: Some(egress), ..paths }
}

#[test]
fn a_sender_limited_flow_is_held_at_no_cost() {
    let (plan, assessment) = planned(GBIT, roomy(), allowed(40, 5_000_000, Some(40)));
    // 40 ms at 1 Gbit/s.
    assert_eq!(
        (plan.mitigation, plan.hold, plan.buffer),
        (Mitigation::HoldBuffer, Span::from_millis(40), Size(5_000_000))
    );
    assert_eq!(plan.cwnd_fraction_ppm, 1_000_000);
    assert_eq!((assessment.cost, assessment.overtaken_packets, assessment.lost_packets), (Size(0), 0, 0));
    assert_eq!((assessment.overlap, assessment.min_rate_ppm), (Span::ZERO, 1_000_000));
    // 5 MB are not sent again, and no window is cut.
    assert!(plan.saved_cost >= Size(5_000_000), "{plan:?}");
}

#[test]
fn a_router_without_buffer_does_not_hold() {
    let (plan, assessment) = planned(GBIT, roomy(), allowed(40, 4_999_999, None));
    assert_eq!((plan, assessment.overtaken_packets), (Plan::NOTHING, 3333));
}

#[test]
fn a_long_hold_costs_its_pause_and_a_short_one_reordering() {
    let (plan, long) = planned(GBIT, roomy(), allowed(44, 10_000_000, None));
    // 4 ms at 1 Gbit/s are 500,000 bytes, and 0.4 % of a second.
    assert_eq!((plan.mitigation, long.pause, long.cost), (Mitigation::HoldBuffer, Span::from_millis(4), Size(500_000)));
    assert_eq!((long.overtaken_packets, long.min_rate_ppm), (0, 996_000));
    let (plan, short) = planned(GBIT, roomy(), allowed(36, 10_000_000, None));
    // 4 ms of packets are still on the old path: 333.
    assert_eq!(
        (plan.mitigation, short.overlap, short.overtaken_packets),
        (Mitigation::HoldBuffer, Span::from_millis(4), 333)
    );
    // 500,000 bytes sent again instead of 5 MB; the window is cut all the same.
    assert_eq!(plan.saved_cost, Size(4_500_000));
}

#[test]
fn a_full_receiver_link_needs_a_cwnd_reduction() {
    let full = paths(GBIT, GBIT, 250);
    let (plan, held) = planned(GBIT, full, allowed(40, 10_000_000, None));
    // 5 MB do not fit the new path; 250 packets of 1500 B do fit the queue: (5,000,000 - 375,000) / 1500.
    assert_eq!(held.lost_packets, 3083);
    assert!(held.cost > Size(0) && held.min_rate_ppm <= 200_000, "{plan:?} {held:?}");
    let (planned_with, trimmed) = planned(GBIT, full, allowed(40, 10_000_000, Some(40)));
    assert_eq!(
        (planned_with.mitigation, trimmed.cost, trimmed.lost_packets),
        (Mitigation::HoldAndReduceCwnd, Size(0), 0)
    );
    // 250 packets wait for 3 ms: 103 ms become 63.
    assert_eq!(planned_with.cwnd_fraction_ppm, 611_650);
    // Without a buffer the pause alone keeps the order.
    let (alone, trimmed) = planned(GBIT, full, allowed(40, 1_000, Some(40)));
    assert_eq!((alone.mitigation, alone.buffer, trimmed.cost), (Mitigation::CwndReduction, Size(0), Size(0)));
}

#[test]
fn a_hold_paced_at_the_receiver_link_needs_no_cwnd_reduction() {
    // The mean rate is a little below the line's: no other flow is on it.
    let full = paths(GBIT, GBIT, 250);
    let paced = |others_mbit: u64| {
        let allowed = allowed(40, 10_000_000, Some(40));
        let hold = allowed.hold_buffer.map(|hold| HoldConfig { line: Rate(GBIT), ..hold });
        planned(990_000_000 - others_mbit * 1_000_000, full, AllowedMitigations { hold_buffer: hold, ..allowed })
    };
    let (plan, assessment) = paced(0);
    assert_eq!((plan.mitigation, plan.buffer, assessment.cost), (Mitigation::HoldBuffer, Size(4_950_000), Size(0)));
    // With 200 Mbit/s of other flows the buffer drains too fast: all of it arrives at the queue.
    let (plan, assessment) = paced(190);
    assert_eq!((plan.mitigation, assessment.cost), (Mitigation::HoldAndReduceCwnd, Size(0)));
}

#[test]
fn packets_queued_at_the_sender_are_overtaken_without_a_hold() {
    // 125 packets of 12 us before a sender's line that is full: 1.5 ms.
    let mut paths = roomy();
    paths.ingress = paths.ingress.map(|link| LinkView { queue: Size(125 * 1500), ..link });
    let (plan, assessment) = planned(GBIT, paths, allowed(40, 1_000, Some(40)));
    assert_eq!((plan.mitigation, assessment.overtaken_packets), (Mitigation::CwndReduction, 125));
    let (plan, assessment) = planned(GBIT, paths, allowed(40, 5_000_000, Some(40)));
    assert_eq!((plan.mitigation, assessment.overtaken_packets), (Mitigation::HoldBuffer, 0));
}

#[test]
fn a_surplus_that_fits_the_receiver_queue_needs_only_a_hold() {
    // 6 ms of 1 Gbit/s are 750,000 bytes: just what the empty queue takes.
    let near = Paths { ip_delay: Span::from_millis(16), ..paths(GBIT, GBIT, 0) };
    let allowed = AllowedMitigations { delay_difference: Span::from_millis(6), ..allowed(6, 10_000_000, Some(6)) };
    let (plan, assessment) = planned(GBIT, near, allowed);
    assert_eq!((plan.mitigation, assessment.lost_packets, assessment.cost), (Mitigation::HoldBuffer, 0, Size(0)));
}

#[test]
fn a_window_limited_flow_keeps_its_cwnd() {
    // No line is full: with a window of 500 Mbit/s x 100 ms it has 833 Mbit/s over the lightpath.
    let free = Paths { ingress: None, ..roomy() };
    let (plan, assessment) = planned(500_000_000, free, allowed(40, 1_000, Some(40)));
    assert_eq!((assessment.limit, plan.mitigation), (Limit::Window, Mitigation::None));
    let (plan, assessment) = planned(500_000_000, free, allowed(40, 3_000_000, Some(40)));
    assert_eq!((plan.mitigation, plan.buffer), (Mitigation::HoldBuffer, Size(2_500_000)));
    assert_eq!(assessment.rate_after, Rate(833_333_333));
}

#[test]
fn a_fast_drain_fills_the_receiver_queue() {
    // 500 Mbit/s held for 40 ms are 2.5 MB. At once: (2.488 - 1) / (2.488 - 0.5) of it come too much. A fifth faster
    // than it comes: 600 Mbit/s, for which the line has room.
    let lost = |share_ppm: Option<u32>| {
        let allowed = allowed(40, 3_000_000, None);
        let hold = allowed.hold_buffer.map(|hold| HoldConfig { share_ppm, ..hold });
        let paths =
            Paths { allowed: AllowedMitigations { hold_buffer: hold, ..allowed }, ..paths(GBIT / 2, GBIT / 2, 0) };
        residual(Mitigation::HoldBuffer, Rate(GBIT / 2), Span::from_millis(40), &paths).lost
    };
    assert_eq!((lost(None), lost(Some(200_000))), (2_500_000 * 1488 / 1988 - 750_000, 0));
    // Moved as it is both paths together bring 1 Gbit/s, which fits: so it is not held.
    let (plan, assessment) = planned(GBIT / 2, paths(GBIT / 2, GBIT / 2, 0), allowed(40, 3_000_000, None));
    assert_eq!((plan.mitigation, assessment.lost_packets), (Mitigation::None, 0));
}

#[test]
fn a_longer_path_needs_no_mitigation() {
    let longer = Paths { lightpath_delay: Span::from_millis(60), ..roomy() };
    let allowed = AllowedMitigations { delay_difference: Span::ZERO, ..allowed(0, 10_000_000, Some(0)) };
    let (plan, assessment) = planned(GBIT, longer, allowed);
    assert_eq!((plan, assessment.overtaken_packets, assessment.lost_packets), (Plan::NOTHING, 0, 0));
}
