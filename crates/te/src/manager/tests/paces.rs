//! Flows that share a line after their moves: how fast what is kept back of them is let go.

use super::*;

/// Flows that share a receiver's line of 400 Mbit/s, before which the queue is nearly full, after an IP way that is 49 ms longer.
fn receivers_line_shared(load: u64) -> Driver {
    let mut driver = Driver::new(Policy { offload_worth_ppm: 1_000, ..policy() }, &[lightpath(1000 * MBIT)]);
    driver.net.ip_delay = Span::from_millis(50);
    driver.net.egress = LinkView { load: Rate(load), queue: Size(700_000), ..full_line(400, &driver.net.egress) };
    let pacing = Pacing { number: 3, load: Some(driver.net.egress.load), beside: Rate(0) };
    let keeping = Keeping { line: Rate(400 * MBIT), pacing, ..keeping(49, 10_000_000) };
    driver.net.means = Means { difference: Span::from_millis(49), hold: Some(keeping), trim: None };
    driver
}

fn paces(driver: &Driver) -> Vec<(u64, u64)> {
    let mbit = |&(second, decision): &(u64, Decision)| match decision {
        Decision::Pace { number: 3, rate } => Some((second, rate.0 / MBIT)),
        _ => None,
    };
    driver.seen.iter().filter_map(mbit).collect()
}

#[test]
fn flows_that_share_the_receivers_line_are_let_go_together_as_it_sends() {
    let mut driver = receivers_line_shared(400 * MBIT);
    driver.seconds(6, &[(1, 180), (2, 120), (3, 100)]);
    let entries = driver.manager.ledger().entries();
    let thought = |entry: &Entry| (entry.plan.unwrap().mitigation, entry.forecast.unwrap().lost_packets);
    assert_eq!(entries.iter().map(thought).collect::<Vec<_>>(), [(Mitigation::Hold, 0); 3], "{entries:?}");
    assert_eq!(driver.manager.totals().refusals, 0);
    // All three at once: the whole of the line is theirs.
    assert_eq!(paces(&driver), [(5, 400), (6, 400)]);
}

#[test]
fn what_is_let_go_leaves_others_on_the_line_what_they_had() {
    // 250 Mbit/s of what is no elephant's.
    let mut driver = receivers_line_shared(400 * MBIT);
    driver.seconds(6, &[(1, 150), (2, 90), (3, 90), (4, 70)]);
    assert_eq!(driver.manager.ledger().entries()[0].forecast.unwrap().lost_packets, 0);
    assert_eq!(paces(&driver), [(5, 150), (6, 150)]);
    // They end: the line is the flow's. They come back and grow: what it had before is its own.
    for (load, sent) in [(150, 150), (400, 100)] {
        let keeping = driver.net.means.hold.as_mut().unwrap();
        keeping.pacing.load = Some(Rate(load * MBIT));
        driver.second(&[(1, sent)]);
    }
    assert_eq!(paces(&driver)[2..], [(7, 400), (8, 150)]);
    // When nothing is kept back any more nobody is told.
    driver.manager.handle_held(0, Held::default());
    driver.second(&[(1, 100)]);
    assert_eq!(paces(&driver).len(), 4);
}
