//! Gates: when what is kept back leaves, and what that takes.

use super::Bench;
use crate::{DropReason, Hold, Kept, Link, Pacer};
use proptest::prelude::*;
use units::{Rate, Span, Time};

/// Before a line of 1 Gbit/s: 1500 B in 12 us.
fn gate(limit_bytes: Option<u64>) -> Bench {
    Bench::of(Link::gate(&Pacer::new(Rate(1_000_000_000)), limit_bytes))
}

fn begin(bench: &mut Bench, delay: Span, share_ppm: Option<u32>) {
    let now = Time(bench.now);
    bench.link.begin_hold(now, Hold { delay, share_ppm });
}

/// Sends a packet of 1500 B every `gap_ns`, `count` of them, the first now.
fn send_every(bench: &mut Bench, gap_ns: u64, count: u64) {
    for _ in 0..count {
        bench.send(1500);
        bench.run_to(bench.now + gap_ns);
    }
}

#[test]
fn a_gate_without_a_hold_is_not_there() {
    let mut bench = gate(None);
    send_every(&mut bench, 5_000, 3);
    // Faster than the line beyond sends: that has its own queue.
    assert_eq!(bench.times(), [0, 5_000, 10_000]);
    assert_eq!(bench.link.kept(), Some(Kept::default()));
}

#[test]
fn a_hold_lets_go_what_it_kept_as_the_line_beyond_can_send() {
    let mut bench = gate(None);
    bench.run_to(1_000_000);
    begin(&mut bench, Span::from_micros(100), None);
    // 10 packets at half the line's rate from 1,000 us on: 5 come before 1,100 us.
    send_every(&mut bench, 24_000, 10);
    bench.run_dry();
    // Let go from 1,100 us on, one per 12 us, until one (the ninth, at 1,192 us) comes when nothing is left.
    let us: Vec<_> = bench.times().iter().map(|t| t / 1_000).collect();
    assert_eq!(us, [1_100, 1_112, 1_124, 1_136, 1_148, 1_160, 1_172, 1_184, 1_192, 1_216]);
    let kept = bench.link.kept().unwrap();
    // At 1,096 us five are inside, and nothing has left.
    assert_eq!(kept, Kept { packets: 8, most_bytes: 7_500, longest: Span::from_micros(100) });
    assert_eq!(bench.numbers(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_line_that_shrinks_lets_go_more_than_comes_by_its_share_and_no_more() {
    let mut bench = gate(None);
    begin(&mut bench, Span::from_micros(100), Some(250_000));
    // A packet every 50 us leaves every 40 us until 100 us (1 + s) / s = 500 us; then as it comes.
    send_every(&mut bench, 50_000, 13);
    bench.run_dry();
    let us: Vec<_> = bench.times().iter().map(|t| t / 1_000).collect();
    assert_eq!(us, [100, 140, 180, 220, 260, 300, 340, 380, 420, 460, 500, 550, 600]);
}

#[test]
fn a_line_that_never_shrinks_delays_for_ever() {
    let mut bench = gate(None);
    begin(&mut bench, Span::from_micros(100), Some(0));
    send_every(&mut bench, 50_000, 1_000);
    bench.run_dry();
    let late: Vec<_> = bench.delivered.iter().map(|(at, probe)| at - probe.came).collect();
    assert_eq!(late, vec![100_000; 1_000]);
}

#[test]
fn a_full_gate_drops_what_does_not_fit() {
    let mut bench = gate(Some(4_500));
    begin(&mut bench, Span::from_micros(100), None);
    send_every(&mut bench, 10_000, 5);
    bench.run_dry();
    let lost: Vec<_> = bench.dropped.iter().map(|(_, probe, reason)| (probe.number, *reason)).collect();
    assert_eq!(lost, [(4, DropReason::QueueFull), (5, DropReason::QueueFull)]);
    assert_eq!(bench.link.stats().dropped_by_queue, 2);
}

#[test]
fn a_second_hold_does_not_change_the_order() {
    let mut bench = gate(None);
    begin(&mut bench, Span::from_millis(1), None);
    send_every(&mut bench, 10_000, 10);
    begin(&mut bench, Span::ZERO, None);
    send_every(&mut bench, 10_000, 10);
    bench.run_dry();
    assert_eq!(bench.numbers(), (1..=20).collect::<Vec<_>>());
    assert_eq!(bench.times()[0], 1_000_000);
}

/// Gates for one line of 1 Gbit/s.
fn gates(count: usize) -> (Pacer, Vec<Bench>) {
    let pacer = Pacer::new(Rate(1_000_000_000));
    let gates = (0..count).map(|_| Bench::of(Link::gate(&pacer, None))).collect();
    (pacer, gates)
}

/// Sends a packet of 1500 B each at the given times (ns, gate), in order of time, and takes every event of any gate when it is due, as a
/// network does: arrivals last, of gates the first. Goes on until nothing is inside.
fn run(gates: &mut [Bench], arrivals: &[(u64, usize)]) {
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let due = (0..gates.len()).map(|gate| (gates[gate].link.poll_timeout().0, gate)).min().expect("a gate");
        match arrivals.peek() {
            Some(&&(at, gate)) if at < due.0 => {
                arrivals.next();
                gates[gate].now = at;
                gates[gate].send(1500);
            }
            _ if due.0 == u64::MAX => return,
            _ => gates[due.1].run_to(due.0),
        }
    }
}

/// When what gates let go left, in order: ns and gate.
fn left(gates: &[Bench]) -> Vec<(u64, usize)> {
    let of = |(gate, bench): (usize, &Bench)| bench.times().into_iter().map(move |at| (at, gate)).collect::<Vec<_>>();
    let mut all: Vec<_> = gates.iter().enumerate().flat_map(of).collect();
    all.sort_unstable();
    all
}

#[test]
fn gates_for_one_line_take_turns_and_together_send_as_it_does() {
    let (_, mut gates) = gates(2);
    for (gate, delay_us) in [(0, 100), (1, 130)] {
        begin(&mut gates[gate], Span::from_micros(delay_us), None);
    }
    // Five packets each are kept back by 60 us: the first gate opens at 100 us, the second at 130.
    let arrivals: Vec<_> = (0..5).flat_map(|i| [(i * 12_000, 0), (i * 12_000 + 1, 1)]).collect();
    run(&mut gates, &arrivals);
    let us: Vec<_> = left(&gates).into_iter().map(|(at, gate)| (at / 1_000, gate)).collect();
    let (first, both) = ([(100, 0), (112, 0), (124, 0)], [(136, 0), (148, 1), (160, 0), (172, 1)]);
    assert_eq!(us, [&first[..], &both[..], &[(184, 1), (196, 1), (208, 1)]].concat());
}

#[test]
fn what_was_there_before_does_not_wait_for_what_comes() {
    let (_, mut gates) = gates(2);
    begin(&mut gates[1], Span::from_micros(100), None);
    let mut arrivals: Vec<_> = (0..20).map(|i| (i * 12_000, 0)).chain((0..8).map(|i| (i * 12_000 + 5, 1))).collect();
    arrivals.sort_unstable();
    run(&mut gates, &arrivals);
    assert_eq!(gates[0].times(), (0..20).map(|i| i * 12_000).collect::<Vec<_>>());
    assert_eq!(gates[1].times(), (0..8).map(|i| 100_000 + i * 12_000).collect::<Vec<_>>());
}

#[test]
fn what_comes_in_one_piece_after_its_hold_waits_its_turn_with_those_that_moved_with_it() {
    let (_, mut gates) = gates(2);
    begin(&mut gates[0], Span::from_micros(100), None);
    begin(&mut gates[1], Span::from_micros(100), None);
    // The first flow's packets come before 100 us, the second's from then on.
    let arrivals: Vec<_> = (0..9).map(|i| (i * 12_000, 0)).chain((9..18).map(|i| (i * 12_000, 1))).collect();
    run(&mut gates, &arrivals);
    let all = left(&gates);
    // As the line sends, not faster; in turn from the second's first on.
    assert!(all.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 12_000), "{all:?}");
    assert_eq!(all.iter().map(|&(_, gate)| gate).collect::<Vec<_>>()[..6], [0, 0, 1, 0, 1, 0]);
    assert_eq!(all.last().unwrap().0, 100_000 + 17 * 12_000);
    // With nothing kept back any more they are not there.
    let now = gates[0].now.max(gates[1].now) + 1;
    run(&mut gates, &[(now, 0), (now + 1, 1), (now + 2, 0)]);
    assert_eq!(left(&gates)[18..], [(now, 0), (now + 1, 1), (now + 2, 0)]);
}

#[test]
fn a_pace_holds_for_all_gates_of_the_line() {
    let (_, mut gates) = gates(2);
    begin(&mut gates[0], Span::from_micros(100), None);
    begin(&mut gates[1], Span::from_micros(100), None);
    gates[0].link.set_pace(Rate(500_000_000));
    run(&mut gates, &[(0, 0), (1, 1), (2, 0), (3, 1)]);
    // Both open at once: the first one's event has its packet out and its next turn before the second's.
    assert_eq!(left(&gates), [(100_000, 0), (124_000, 0), (148_000, 1), (172_000, 1)]);
}

proptest! {
    /// Whatever comes: each gate keeps its order; two packets that were kept back never leave sooner after each other than the line
    /// sends one; while one that may leave waits, the line does not; and of gates that wait none is two packets behind another.
    #[test]
    fn turns_are_fair_and_the_line_never_waits(
        delays in proptest::collection::vec(0u64..400_000, 2..5),
        gaps in proptest::collection::vec((0u64..20_000, 0usize..5), 1..120),
    ) {
        let (_, mut gates) = gates(delays.len());
        for (gate, &delay) in gates.iter_mut().zip(&delays) {
            begin(gate, Span(delay), None);
        }
        let mut now = 0;
        let arrivals: Vec<_> = gaps.iter().map(|&(gap, gate)| { now += gap; (now, gate % delays.len()) }).collect();
        run(&mut gates, &arrivals);
        for bench in &gates {
            prop_assert_eq!(bench.numbers(), (1..=bench.numbers().len() as u64).collect::<Vec<_>>());
        }
        // Kept back: left later than it came. (ns left, gate, from when it might have left.)
        let mut kept = vec![];
        for (gate, bench) in gates.iter().enumerate() {
            let of_it = bench.delivered.iter().filter(|(at, probe)| *at > probe.came);
            kept.extend(of_it.map(|(at, probe)| (*at, gate, probe.came.max(delays[gate]))));
        }
        kept.sort_unstable();
        for pair in kept.windows(2) {
            prop_assert!(pair[1].0 - pair[0].0 >= 12_000, "{pair:?}");
        }
        // What leaves later than it might have done, and is its gate's oldest then, waited for others' turns: one each at most.
        for (gate, bench) in gates.iter().enumerate() {
            let mut before = 0;
            for (at, probe) in &bench.delivered {
                let oldest_from = probe.came.max(delays[gate]).max(before);
                // The turn of the one that is being sent, and one of each other gate.
                prop_assert!(at - oldest_from <= 12_000 * delays.len() as u64, "{gate}: {at} from {oldest_from}");
                before = *at;
            }
        }
        // The line is idle only when nothing might leave: between two, one may have had its turn when it came.
        for pair in kept.windows(2) {
            let ((before, ..), (at, _, from)) = (pair[0], pair[1]);
            let at_once = |bench: &Bench| bench.delivered.iter().any(|(t, probe)| *t == probe.came && *t >= before && *t < at);
            prop_assert!(at == from.max(before + 12_000) || gates.iter().any(at_once), "{pair:?}");
        }
    }
}
