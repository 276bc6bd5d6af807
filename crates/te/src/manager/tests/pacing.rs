//! Pacing rates of flows that share a link after their moves.

use super::*;

/// Flows that share a receiver's line of 400 Mbit/s, before which the queue is nearly full, after an IP path that is
/// 49 ms longer.
fn shared_receiver_link(load: u64) -> Driver {
    let mut driver = Driver::new(Policy { offload_weight_ppm: 1_000, ..policy() }, &[lightpath(1000 * MBIT)]);
    driver.net.ip_delay = Span::from_millis(50);
    driver.net.egress = LinkView { load: Rate(load), queue: Size(700_000), ..full_line(400, &driver.net.egress) };
    let pacing = Pacing { pacer: 3, load: Some(driver.net.egress.load), held_rate: Rate(0) };
    let hold = HoldConfig { line: Rate(400 * MBIT), pacing, ..hold(49, 10_000_000) };
    driver.net.allowed =
        AllowedMitigations { delay_difference: Span::from_millis(49), hold_buffer: Some(hold), cwnd_reduction: None };
    driver
}

fn rates_by_pacer(driver: &Driver) -> Vec<(u64, u64)> {
    let mbit = |&(second, decision): &(u64, Decision)| match decision {
        Decision::Pace { pacer: 3, rate } => Some((second, rate.0 / MBIT)),
        _ => None,
    };
    driver.seen.iter().filter_map(mbit).collect()
}

#[test]
fn held_flows_share_the_receiver_link_rate() {
    let mut driver = shared_receiver_link(400 * MBIT);
    driver.seconds(6, &[(1, 180), (2, 120), (3, 100)]);
    let entries = driver.manager.move_log().records();
    let assessment = |entry: &MoveRecord| (entry.plan.unwrap().mitigation, entry.forecast.unwrap().lost_packets);
    assert_eq!(entries.iter().map(assessment).collect::<Vec<_>>(), [(Mitigation::HoldBuffer, 0); 3], "{entries:?}");
    assert_eq!(driver.manager.totals().refusals, 0);
    // All three at once: the whole of the line is theirs.
    assert_eq!(rates_by_pacer(&driver), [(5, 400), (6, 400)]);
}

#[test]
fn held_flows_leave_other_flows_their_rate() {
    // 250 Mbit/s of what is no elephant's.
    let mut driver = shared_receiver_link(400 * MBIT);
    driver.seconds(6, &[(1, 150), (2, 90), (3, 90), (4, 70)]);
    assert_eq!(driver.manager.move_log().records()[0].forecast.unwrap().lost_packets, 0);
    assert_eq!(rates_by_pacer(&driver), [(5, 150), (6, 150)]);
    // They end: the line is the flow's. They come back and grow: what it had before is its own.
    for (load, sent) in [(150, 150), (400, 100)] {
        let hold = driver.net.allowed.hold_buffer.as_mut().unwrap();
        hold.pacing.load = Some(Rate(load * MBIT));
        driver.second(&[(1, sent)]);
    }
    assert_eq!(rates_by_pacer(&driver)[2..], [(7, 400), (8, 150)]);
    // Without held packets there is no pacing decision.
    driver.manager.handle_hold_stats(0, HoldStats::default());
    driver.second(&[(1, 100)]);
    assert_eq!(rates_by_pacer(&driver).len(), 4);
}
