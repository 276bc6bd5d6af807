use super::*;
use crate::policy::of_tests as policy;

const GBIT: u64 = 1_000_000_000;

/// 100 ms of which 50 one way; 10 ms over the lightpath of 2.488 Gbit/s; the sender's and the receiver's line of 1 Gbit/s are loaded so.
fn ways(sender_load: u64, receiver_load: u64, queue_packets: u64) -> Ways {
    let line = |capacity, load, queue| LinkView {
        capacity: Rate(capacity),
        load: Rate(load),
        queue: Size(queue),
        queue_limit: Size(750_000),
        dropped: 0,
    };
    Ways {
        ip_delay: Span::from_millis(50),
        lightpath_delay: Span::from_millis(10),
        return_delay: Span::from_millis(50),
        ingress: Some(line(GBIT, sender_load, 0)),
        core: line(2_488_000_000, receiver_load, 0),
        egress: Some(line(GBIT, receiver_load, queue_packets * 1500)),
        packet: Size(1500),
        means: Means::default(),
    }
}

/// A router that believes the ways to differ by `hold_ms`, and a sender that is told `trim_ms`; they do by 40.
fn means(hold_ms: u64, buffer: u64, trim_ms: Option<u64>) -> Means {
    let keeping = Keeping {
        delay: Span::from_millis(hold_ms),
        line: Rate(2_488_000_000),
        pacing: Pacing::default(),
        share_ppm: None,
        buffer: Size(buffer),
    };
    Means { difference: Span::from_millis(40), hold: Some(keeping), trim: trim_ms.map(Span::from_millis) }
}

fn planned(rate: u64, ways: Ways, means: Means) -> (Plan, Forecast) {
    let ways = &Ways { means, ..ways };
    let case = Case { rate: Rate(rate), remaining: Size(GBIT), room: Rate(2_488_000_000), price: Size(0), ways };
    plan(&case, &policy(), Size(0))
}

/// The sender's line is full (B), the receiver's not: it has room for that and 2.488 - 1 Gbit/s more.
fn roomy() -> Ways {
    let ways = ways(GBIT, GBIT, 0);
    let egress = LinkView { capacity: Rate(2_488_000_000), ..ways.egress.unwrap() };
    Ways { egress: Some(egress), ..ways }
}

#[test]
fn a_flow_that_its_own_line_limits_is_held_and_costs_nothing() {
    let (plan, thought) = planned(GBIT, roomy(), means(40, 5_000_000, Some(40)));
    // 40 ms at 1 Gbit/s.
    assert_eq!((plan.mitigation, plan.hold, plan.buffer), (Mitigation::Hold, Span::from_millis(40), Size(5_000_000)));
    assert_eq!(plan.keep_ppm, 1_000_000);
    assert_eq!((thought.cost, thought.overtaken_packets, thought.lost_packets), (Size(0), 0, 0));
    assert_eq!((thought.overlap, thought.least_ppm), (Span::ZERO, 1_000_000));
    // 5 MB are not sent again, and no window is cut.
    assert!(plan.saves >= Size(5_000_000), "{plan:?}");
}

#[test]
fn a_router_without_the_buffer_does_not_hold() {
    let (plan, thought) = planned(GBIT, roomy(), means(40, 4_999_999, None));
    assert_eq!((plan, thought.overtaken_packets), (Plan::NOTHING, 3333));
}

#[test]
fn a_hold_that_is_too_long_costs_its_pause_and_one_that_is_too_short_what_is_overtaken() {
    let (plan, long) = planned(GBIT, roomy(), means(44, 10_000_000, None));
    // 4 ms at 1 Gbit/s are 500,000 bytes, and 0.4 % of a second.
    assert_eq!((plan.mitigation, long.pause, long.cost), (Mitigation::Hold, Span::from_millis(4), Size(500_000)));
    assert_eq!((long.overtaken_packets, long.least_ppm), (0, 996_000));
    let (plan, short) = planned(GBIT, roomy(), means(36, 10_000_000, None));
    // 4 ms of packets are still on the old way: 333.
    assert_eq!(
        (plan.mitigation, short.overlap, short.overtaken_packets),
        (Mitigation::Hold, Span::from_millis(4), 333)
    );
    // 500,000 bytes sent again instead of 5 MB; the window is cut all the same.
    assert_eq!(plan.saves, Size(4_500_000));
}

#[test]
fn where_the_receivers_line_is_full_a_hold_is_no_help_and_a_trimmed_window_is() {
    let full = ways(GBIT, GBIT, 250);
    let (plan, held) = planned(GBIT, full, means(40, 10_000_000, None));
    // 5 MB do not fit the new way; 250 packets of 1500 B do fit the queue: (5,000,000 - 375,000) / 1500.
    assert_eq!(held.lost_packets, 3083);
    assert!(held.cost > Size(0) && held.least_ppm <= 200_000, "{plan:?} {held:?}");
    let (told, trimmed) = planned(GBIT, full, means(40, 10_000_000, Some(40)));
    assert_eq!((told.mitigation, trimmed.cost, trimmed.lost_packets), (Mitigation::HoldAndTrim, Size(0), 0));
    // 250 packets wait for 3 ms: 103 ms become 63.
    assert_eq!(told.keep_ppm, 611_650);
    // Without a buffer the pause alone keeps the order.
    let (alone, trimmed) = planned(GBIT, full, means(40, 1_000, Some(40)));
    assert_eq!((alone.mitigation, alone.buffer, trimmed.cost), (Mitigation::Trim, Size(0), Size(0)));
}

#[test]
fn a_hold_that_lets_go_as_the_receivers_line_sends_needs_no_trimmed_window() {
    // The mean rate is a little below the line's: nobody else is on it.
    let full = ways(GBIT, GBIT, 250);
    let paced = |others_mbit: u64| {
        let means = means(40, 10_000_000, Some(40));
        let hold = means.hold.map(|keeping| Keeping { line: Rate(GBIT), ..keeping });
        planned(990_000_000 - others_mbit * 1_000_000, full, Means { hold, ..means })
    };
    let (plan, thought) = paced(0);
    assert_eq!((plan.mitigation, plan.buffer, thought.cost), (Mitigation::Hold, Size(4_950_000), Size(0)));
    // With 200 Mbit/s of others there it is let go too fast: all of it comes to the queue.
    let (plan, thought) = paced(190);
    assert_eq!((plan.mitigation, thought.cost), (Mitigation::HoldAndTrim, Size(0)));
}

#[test]
fn what_waits_before_the_senders_line_is_overtaken_when_nobody_holds() {
    // 125 packets of 12 us before a sender's line that is full: 1.5 ms.
    let mut ways = roomy();
    ways.ingress = ways.ingress.map(|link| LinkView { queue: Size(125 * 1500), ..link });
    let (plan, thought) = planned(GBIT, ways, means(40, 1_000, Some(40)));
    assert_eq!((plan.mitigation, thought.overtaken_packets), (Mitigation::Trim, 125));
    let (plan, thought) = planned(GBIT, ways, means(40, 5_000_000, Some(40)));
    assert_eq!((plan.mitigation, thought.overtaken_packets), (Mitigation::Hold, 0));
}

#[test]
fn a_surplus_for_which_the_receivers_queue_has_room_needs_a_hold_alone() {
    // 6 ms of 1 Gbit/s are 750,000 bytes: just what the empty queue takes.
    let near = Ways { ip_delay: Span::from_millis(16), ..ways(GBIT, GBIT, 0) };
    let means = Means { difference: Span::from_millis(6), ..means(6, 10_000_000, Some(6)) };
    let (plan, thought) = planned(GBIT, near, means);
    assert_eq!((plan.mitigation, thought.lost_packets, thought.cost), (Mitigation::Hold, 0, Size(0)));
}

#[test]
fn a_flow_that_could_send_more_over_the_shorter_way_is_not_trimmed() {
    // No line is full: with a window of 500 Mbit/s x 100 ms it has 833 Mbit/s over the lightpath.
    let free = Ways { ingress: None, ..roomy() };
    let (plan, thought) = planned(500_000_000, free, means(40, 1_000, Some(40)));
    assert_eq!((thought.limit, plan.mitigation), (Limit::Window, Mitigation::None));
    let (plan, thought) = planned(500_000_000, free, means(40, 3_000_000, Some(40)));
    assert_eq!((plan.mitigation, plan.buffer), (Mitigation::Hold, Size(2_500_000)));
    assert_eq!(thought.rate_after, Rate(833_333_333));
}

#[test]
fn what_is_let_go_faster_than_the_receivers_line_sends_fills_its_queue() {
    // 500 Mbit/s held for 40 ms are 2.5 MB. At once: (2.488 - 1) / (2.488 - 0.5) of it come too much. A fifth faster than
    // it comes: 600 Mbit/s, for which the line has room.
    let lost = |share_ppm: Option<u32>| {
        let means = means(40, 3_000_000, None);
        let hold = means.hold.map(|keeping| Keeping { share_ppm, ..keeping });
        let ways = Ways { means: Means { hold, ..means }, ..ways(GBIT / 2, GBIT / 2, 0) };
        left(Mitigation::Hold, Rate(GBIT / 2), Span::from_millis(40), &ways).lost
    };
    assert_eq!((lost(None), lost(Some(200_000))), (2_500_000 * 1488 / 1988 - 750_000, 0));
    // Moved as it is both ways together bring 1 Gbit/s, which fits: so it is not held.
    let (plan, thought) = planned(GBIT / 2, ways(GBIT / 2, GBIT / 2, 0), means(40, 3_000_000, None));
    assert_eq!((plan.mitigation, thought.lost_packets), (Mitigation::None, 0));
}

#[test]
fn a_longer_way_needs_nothing() {
    let longer = Ways { lightpath_delay: Span::from_millis(60), ..roomy() };
    let means = Means { difference: Span::ZERO, ..means(0, 10_000_000, Some(0)) };
    let (plan, thought) = planned(GBIT, longer, means);
    assert_eq!((plan, thought.overtaken_packets, thought.lost_packets), (Plan::NOTHING, 0, 0));
}
