//! Packets that move to another path, by hand.

use super::*;

/// A sender's link (0), the old path over two links (1, 2), the new one over one (3), all of 1 Gbit/s, on which a
/// probe of 1250 B takes 10 us; the receiver's link (4), on which it takes 10 ns.
fn diamond(old_ns: [u64; 2], new_ns: u64) -> Vec<LinkConfig> {
    let line = |delay| drop_tail(1_000_000_000, delay, None, LossModel::None);
    let last = drop_tail(1_000_000_000_000, 0, None, LossModel::None);
    vec![line(5_000), line(old_ns[0]), line(old_ns[1]), line(new_ns), last]
}

const OLD: [usize; 4] = [0, 1, 2, 4];
const NEW: [usize; 3] = [0, 3, 4];

/// Probes every 10 us, back to back, and moves.
fn stream(links: Vec<LinkConfig>, count: u64, moves: &[(u64, &[usize])]) -> Case {
    Case {
        links,
        routes: vec![OLD.to_vec()],
        sends: (0..count).map(|i| (i * 10_000, 0, 1250)).collect(),
        changes: vec![],
        moves: moves.iter().map(|(at, links)| (*at, 0, links.to_vec())).collect(),
        samples: vec![],
    }
}

/// Time at which each probe arrives; as links with events of their own and as precomputed links.
fn arrivals(case: &Case) -> Vec<(u64, u64)> {
    let (alone, ahead) = (run(case, false, UNBOUNDED).0, run(case, true, UNBOUNDED).0);
    assert_eq!(alone, ahead);
    assert_eq!(alone.delivered.len(), case.sends.len());
    alone.delivered.iter().map(|(time, _, probe)| (probe.number, time.0)).collect()
}

#[test]
fn a_packet_before_the_moving_router_takes_the_new_path() {
    // Probe i leaves at 10 i us and is at the router 15 us later: on the sender's link at the time of the move are 2
    // and 3.
    let case = stream(diamond([20_000, 20_000], 10_000), 6, &[(36_000, &NEW)]);
    let found = arrivals(&case);
    let at = |number: u64| found.iter().find(|probe| probe.0 == number).expect("it arrived").1;
    // Old: 15 + (10 + 20) + (10 + 20) us and 10 ns; new: 15 + (10 + 10) us and 10 ns.
    assert_eq!([at(0), at(1)], [75_010, 85_010]);
    // 2 is at the router at 35 us, before the move; 3 at 45 us, after it.
    assert_eq!([at(2), at(3)], [95_010, 65_010]);
    // They come to the receiver's link together with 0 and 1, which the lower link brings first.
    assert_eq!([at(4), at(5)], [75_020, 85_020]);
}

#[test]
fn the_delay_difference_of_the_paths_gives_the_number_of_overtaken_packets() {
    // (10 + 40) + (10 + 40) less 10 + 15 is 75 us: in which 7 packets of 10 us come.
    let case = stream(diamond([40_000, 40_000], 15_000), 60, &[(300_000, &NEW)]);
    let found = arrivals(&case);
    let mut most = None;
    let mut late = 0;
    for (number, _) in found {
        late += u64::from(most.is_some_and(|most| number < most));
        most = most.max(Some(number));
    }
    assert_eq!(late, 7);
}

#[test]
fn a_path_of_equal_delay_changes_nothing() {
    let stay = arrivals(&stream(diamond([20_000, 20_000], 50_000), 40, &[]));
    let moved = arrivals(&stream(diamond([20_000, 20_000], 50_000), 40, &[(123_456, &NEW)]));
    assert_eq!(stay, moved, "two links of 10 + 20 us, one of 10 + 50 us");
}

#[test]
fn a_packet_after_the_move_back_takes_the_first_path() {
    let moves: [(u64, &[usize]); 2] = [(100_000, &NEW), (200_000, &OLD)];
    let case = stream(diamond([20_000, 20_000], 10_000), 60, &moves);
    let found = arrivals(&case);
    for (number, time) in found {
        // At the router at 10 i + 15 us: from 100 to 200 us the short path is taken.
        let short = (9..19).contains(&number);
        let alone = number * 10_000 + if short { 35_010 } else { 75_010 };
        assert!((alone..=alone + 10).contains(&time), "probe {number}: {time}, {alone} were it alone on the last link");
    }
}

#[test]
fn packets_queued_for_the_old_path_stay_there() {
    // The old path begins with a slow line: probes queue at the router and are not taken out again.
    let mut links = diamond([20_000, 20_000], 10_000);
    links[1].rate = Rate(100_000_000);
    let case = stream(links, 8, &[(60_000, &NEW)]);
    let (outcome, _) = run(&case, true, UNBOUNDED);
    // 0 to 4 are at the router at 15 to 55 us: they go the slow path, however long they wait.
    assert_eq!([1, 3].map(|link| outcome.stats[link].delivered), [5, 3]);
}
