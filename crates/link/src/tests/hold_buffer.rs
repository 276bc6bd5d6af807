//! Hold buffers: when held packets leave, and the buffer that this takes.

use super::Bench;
use crate::hold_buffer::{Config, Plan, Stats};
use crate::{DropReason, Link, PacerId, Pacers};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use units::{Rate, Span, Time};

fn bench(pacers: &Rc<RefCell<Pacers>>, pacer: PacerId, limit_bytes: Option<u64>) -> Bench {
    let link = Link::hold_buffer(Config { pacer, limit_bytes });
    Bench { pacers: pacers.clone(), ..Bench::of(link) }
}

/// Before a line of 1 Gbit/s: 1500 B in 12 us.
fn buffer(limit_bytes: Option<u64>) -> Bench {
    let pacers = Rc::new(RefCell::new(Pacers::default()));
    let pacer = pacers.borrow_mut().add(Rate(1_000_000_000));
    bench(&pacers, pacer, limit_bytes)
}

fn begin(bench: &mut Bench, delay: Span, share_ppm: Option<u32>) {
    let now = Time(bench.now);
    bench.hold_buffer().begin(now, Plan { delay, share_ppm });
}

/// Sends a packet of 1500 B every `gap_ns`, `count` of them, the first now.
fn send_every(bench: &mut Bench, gap_ns: u64, count: u64) {
    for _ in 0..count {
        bench.send(1500);
        bench.run_to(bench.now + gap_ns);
    }
}

#[test]
fn an_idle_buffer_adds_no_delay() {
    let mut bench = buffer(None);
    send_every(&mut bench, 5_000, 3);
    // Faster than the line beyond sends: that has its own queue.
    assert_eq!(bench.times(), [0, 5_000, 10_000]);
    assert_eq!(bench.hold_buffer().stats(), Stats::default());
}

#[test]
fn held_packets_leave_at_the_rate_of_the_link_behind() {
    let mut bench = buffer(None);
    bench.run_to(1_000_000);
    begin(&mut bench, Span::from_micros(100), None);
    // 10 packets at half the line's rate from 1,000 us on: 5 come before 1,100 us.
    send_every(&mut bench, 24_000, 10);
    bench.run_dry();
    // Let go from 1,100 us on, one per 12 us, until one (the ninth, at 1,192 us) comes when nothing is left.
    let us: Vec<_> = bench.times().iter().map(|t| t / 1_000).collect();
    assert_eq!(us, [1_100, 1_112, 1_124, 1_136, 1_148, 1_160, 1_172, 1_184, 1_192, 1_216]);
    let held = bench.hold_buffer().stats();
    // At 1,096 us five are inside, and nothing has left.
    assert_eq!(held, Stats { packets: 8, max_bytes: 7_500, max_delay: Span::from_micros(100) });
    assert_eq!(bench.numbers(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_shrinking_delay_raises_the_departure_rate_by_its_share() {
    let mut bench = buffer(None);
    begin(&mut bench, Span::from_micros(100), Some(250_000));
    // A packet every 50 us leaves every 40 us until 100 us (1 + s) / s = 500 us; then as it comes.
    send_every(&mut bench, 50_000, 13);
    bench.run_dry();
    let us: Vec<_> = bench.times().iter().map(|t| t / 1_000).collect();
    assert_eq!(us, [100, 140, 180, 220, 260, 300, 340, 380, 420, 460, 500, 550, 600]);
}

#[test]
fn a_share_of_zero_keeps_the_delay() {
    let mut bench = buffer(None);
    begin(&mut bench, Span::from_micros(100), Some(0));
    send_every(&mut bench, 50_000, 1_000);
    bench.run_dry();
    let late: Vec<_> = bench.delivered.iter().map(|(at, probe)| at - probe.arrived).collect();
    assert_eq!(late, vec![100_000; 1_000]);
}

#[test]
fn a_full_buffer_drops() {
    let mut bench = buffer(Some(4_500));
    begin(&mut bench, Span::from_micros(100), None);
    send_every(&mut bench, 10_000, 5);
    bench.run_dry();
    let lost: Vec<_> = bench.dropped.iter().map(|(_, probe, reason)| (probe.number, *reason)).collect();
    assert_eq!(lost, [(4, DropReason::QueueFull), (5, DropReason::QueueFull)]);
    assert_eq!(bench.link.stats().dropped_by_queue, 2);
}

#[test]
fn a_second_hold_does_not_change_the_order() {
    let mut bench = buffer(None);
    begin(&mut bench, Span::from_millis(1), None);
    send_every(&mut bench, 10_000, 10);
    begin(&mut bench, Span::ZERO, None);
    send_every(&mut bench, 10_000, 10);
    bench.run_dry();
    assert_eq!(bench.numbers(), (1..=20).collect::<Vec<_>>());
    assert_eq!(bench.times()[0], 1_000_000);
}

/// Hold buffers for one line of 1 Gbit/s.
fn buffers(count: usize) -> Vec<Bench> {
    let pacers = Rc::new(RefCell::new(Pacers::default()));
    let pacer = pacers.borrow_mut().add(Rate(1_000_000_000));
    (0..count).map(|_| bench(&pacers, pacer, None)).collect()
}

/// Sends a packet of 1500 B each at the given times (ns, buffer), in order of time, and takes every event of any
/// buffer when it is due, as a network does: arrivals last, of buffers the first. Goes on until nothing is inside.
fn run(buffers: &mut [Bench], arrivals: &[(u64, usize)]) {
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let due =
            (0..buffers.len()).map(|buffer| (buffers[buffer].link.poll_timeout().0, buffer)).min().expect("a buffer");
        match arrivals.peek() {
            Some(&&(at, buffer)) if at < due.0 => {
                arrivals.next();
                buffers[buffer].now = at;
                buffers[buffer].send(1500);
            }
            _ if due.0 == u64::MAX => return,
            _ => buffers[due.1].run_to(due.0),
        }
    }
}

/// Departures of held packets, in order: (ns, buffer).
fn left(buffers: &[Bench]) -> Vec<(u64, usize)> {
    let of =
        |(buffer, bench): (usize, &Bench)| bench.times().into_iter().map(move |at| (at, buffer)).collect::<Vec<_>>();
    let mut all: Vec<_> = buffers.iter().enumerate().flat_map(of).collect();
    all.sort_unstable();
    all
}

#[test]
fn buffers_of_one_pacer_alternate_and_share_its_rate() {
    let mut buffers = buffers(2);
    for (buffer, delay_us) in [(0, 100), (1, 130)] {
        begin(&mut buffers[buffer], Span::from_micros(delay_us), None);
    }
    // Five packets each arrive by 60 us and are held: the first buffer opens at 100 us, the second at 130.
    let arrivals: Vec<_> = (0..5).flat_map(|i| [(i * 12_000, 0), (i * 12_000 + 1, 1)]).collect();
    run(&mut buffers, &arrivals);
    let us: Vec<_> = left(&buffers).into_iter().map(|(at, buffer)| (at / 1_000, buffer)).collect();
    let (first, both) = ([(100, 0), (112, 0), (124, 0)], [(136, 0), (148, 1), (160, 0), (172, 1)]);
    assert_eq!(us, [&first[..], &both[..], &[(184, 1), (196, 1), (208, 1)]].concat());
}

#[test]
fn flows_that_did_not_move_do_not_wait() {
    let mut buffers = buffers(2);
    begin(&mut buffers[1], Span::from_micros(100), None);
    let mut arrivals: Vec<_> = (0..20).map(|i| (i * 12_000, 0)).chain((0..8).map(|i| (i * 12_000 + 5, 1))).collect();
    arrivals.sort_unstable();
    run(&mut buffers, &arrivals);
    assert_eq!(buffers[0].times(), (0..20).map(|i| i * 12_000).collect::<Vec<_>>());
    assert_eq!(buffers[1].times(), (0..8).map(|i| 100_000 + i * 12_000).collect::<Vec<_>>());
}

#[test]
fn a_burst_after_its_hold_shares_the_pacer_with_flows_that_moved_with_it() {
    let mut buffers = buffers(2);
    begin(&mut buffers[0], Span::from_micros(100), None);
    begin(&mut buffers[1], Span::from_micros(100), None);
    // The first flow's packets come before 100 us, the second's from then on.
    let arrivals: Vec<_> = (0..9).map(|i| (i * 12_000, 0)).chain((9..18).map(|i| (i * 12_000, 1))).collect();
    run(&mut buffers, &arrivals);
    let all = left(&buffers);
    // As the line sends, not faster; in turn from the second's first on.
    assert!(all.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 12_000), "{all:?}");
    assert_eq!(all.iter().map(|&(_, buffer)| buffer).collect::<Vec<_>>()[..6], [0, 0, 1, 0, 1, 0]);
    assert_eq!(all.last().unwrap().0, 100_000 + 17 * 12_000);
    // Idle buffers add no delay.
    let now = buffers[0].now.max(buffers[1].now) + 1;
    run(&mut buffers, &[(now, 0), (now + 1, 1), (now + 2, 0)]);
    assert_eq!(left(&buffers)[18..], [(now, 0), (now + 1, 1), (now + 2, 0)]);
}

#[test]
fn a_pace_applies_to_all_buffers_of_the_pacer() {
    let mut buffers = buffers(2);
    begin(&mut buffers[0], Span::from_micros(100), None);
    begin(&mut buffers[1], Span::from_micros(100), None);
    let pacers = buffers[0].pacers.clone();
    buffers[0].hold_buffer().set_pace(Rate(500_000_000), &mut pacers.borrow_mut());
    run(&mut buffers, &[(0, 0), (1, 1), (2, 0), (3, 1)]);
    // Both open at once: the first one's event has its packet out and its next turn before the second's.
    assert_eq!(left(&buffers), [(100_000, 0), (124_000, 0), (148_000, 1), (172_000, 1)]);
}

proptest! {
    /// For any packets each buffer keeps its order; two packets that were kept back never leave sooner after each
    /// other than the line sends one; while one that may leave waits, the line does not; and of buffers that wait none
    /// is two packets behind another.
    #[test]
    fn grants_are_fair_and_the_pacer_never_idles(
        delays in proptest::collection::vec(0u64..400_000, 2..5),
        gaps in proptest::collection::vec((0u64..20_000, 0usize..5), 1..120),
    ) {
        let mut buffers = buffers(delays.len());
        for (buffer, &delay) in buffers.iter_mut().zip(&delays) {
            begin(buffer, Span(delay), None);
        }
        let mut now = 0;
        let arrivals: Vec<_> = gaps.iter().map(|&(gap, buffer)| { now += gap; (now, buffer % delays.len()) }).collect();
        run(&mut buffers, &arrivals);
        for bench in &buffers {
            prop_assert_eq!(bench.numbers(), (1..=bench.numbers().len() as u64).collect::<Vec<_>>());
        }
        // Kept back: left later than it came. (ns left, buffer, from when it might have left.)
        let mut kept = vec![];
        for (buffer, bench) in buffers.iter().enumerate() {
            let of_it = bench.delivered.iter().filter(|(at, probe)| *at > probe.arrived);
            kept.extend(of_it.map(|(at, probe)| (*at, buffer, probe.arrived.max(delays[buffer]))));
        }
        kept.sort_unstable();
        for pair in kept.windows(2) {
            prop_assert!(pair[1].0 - pair[0].0 >= 12_000, "{pair:?}");
        }
        // A packet that leaves later than it might have done, and is its buffer's oldest then, waited for others'
        // turns: one each at most.
        for (buffer, bench) in buffers.iter().enumerate() {
            let mut before = 0;
            for (at, probe) in &bench.delivered {
                let oldest_from = probe.arrived.max(delays[buffer]).max(before);
                // The turn of the one that is being sent, and one of each other buffer.
                prop_assert!(at - oldest_from <= 12_000 * delays.len() as u64, "{buffer}: {at} from {oldest_from}");
                before = *at;
            }
        }
        // The line is idle only when nothing might leave: between two, one may have had its turn when it came.
        for pair in kept.windows(2) {
            let ((before, ..), (at, _, from)) = (pair[0], pair[1]);
            let at_once = |bench: &Bench| {
                bench.delivered.iter().any(|(t, probe)| *t == probe.arrived && *t >= before && *t < at)
            };
            prop_assert!(at == from.max(before + 12_000) || buffers.iter().any(at_once), "{pair:?}");
        }
    }
}
