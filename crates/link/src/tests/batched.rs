//! Batches of segmentation and receive offload, and the wait for an interrupt.

use super::{gigabit, tail, Bench};
use crate::{Batching, ConfigError, DropReason, Framing, Jitter, JitterDistribution, LinkConfig, Stats};
use proptest::prelude::*;
use units::{Rate, Span};

const US: u64 = 1000;

/// 4 us for each batch (500 B at 1 Gbit/s), and 8 ns for each byte; no delay.
fn host(batching: Batching) -> LinkConfig {
    let framing = Framing { header_bytes: 500, min_frame_bytes: 0, gap_bytes: 0 };
    LinkConfig { framing, delay: Span(0), batching: Some(batching), ..gigabit(tail(1000)) }
}

fn joining(max_bytes: u32) -> Batching {
    Batching { max_bytes, wait: Span(0), wait_packets: None }
}

fn waiting(us: u64, wait_packets: Option<u64>) -> Batching {
    Batching { max_bytes: 0, wait: Span(us * US), wait_packets }
}

/// Times of departure, each with its number of packets.
fn bursts(bench: &Bench) -> Vec<(u64, usize)> {
    let mut found: Vec<(u64, usize)> = vec![];
    for time in bench.times() {
        match found.last_mut() {
            Some((last, count)) if *last == time => *count += 1,
            _ => found.push((time, 1)),
        }
    }
    found
}

#[test]
fn packets_that_wait_together_leave_as_full_segments_that_cost_one_packet_each() {
    let mut bench = Bench::new(host(joining(65_536)));
    for _ in 0..100 {
        bench.send(1500);
    }
    bench.run_dry();
    // 52 + 45 x 1448 B fit into 64 KiB. A batch takes 4 us and 12 us for each packet.
    let (full, rest) = (4 + 45 * 12, 4 + 10 * 12);
    assert_eq!(bursts(&bench), [(full * US, 45), (2 * full * US, 45), ((2 * full + rest) * US, 10)]);
    assert_eq!(bench.numbers(), (1..=100).collect::<Vec<_>>());
}

#[test]
fn packets_alone_are_as_on_a_link_without_batches() {
    let mut bench = Bench::new(host(joining(0)));
    let mut plain = Bench::new(LinkConfig { batching: None, ..host(joining(0)) });
    for at in [0, 0, 3, 40, 41, 200] {
        for bench in [&mut bench, &mut plain] {
            bench.run_to(at * US);
            bench.send(1500);
        }
    }
    bench.run_dry();
    plain.run_dry();
    assert_eq!(bench.times(), plain.times());
}

#[test]
fn a_segment_that_comes_during_a_batch_is_in_the_next_one() {
    let mut bench = Bench::new(host(joining(65_536)));
    bench.send(1500);
    bench.run_to(1);
    for _ in 0..3 {
        bench.send(1500);
    }
    bench.run_dry();
    assert_eq!(bursts(&bench), [(16 * US, 1), ((16 + 4 + 36) * US, 3)]);
}

#[test]
fn only_segments_of_one_flow_are_joined_up_to_a_shorter_one_and_none_without_data() {
    let mut bench = Bench::new(host(joining(65_536)));
    let sent = [(1500, 1), (1500, 2), (1500, 1), (52, 1), (1500, 1), (700, 2), (1500, 2), (1500, 1)];
    for (bytes, flow) in sent {
        bench.send_of(bytes, flow, false);
    }
    bench.run_dry();
    // Flow 1 up to its ACK; flow 2 up to the shorter segment; the ACK; the rest of each flow.
    assert_eq!(bench.numbers(), [1, 3, 2, 6, 4, 5, 8, 7]);
    let ns = |packets: &[u64]| (4000 + packets.iter().map(|bytes| bytes * 8).sum::<u64>(), packets.len());
    let mut at = 0;
    let expected = [&[1500, 1500][..], &[1500, 700], &[52], &[1500, 1500], &[1500]].map(|packets| {
        at += ns(packets).0;
        (at, packets.len())
    });
    assert_eq!(bursts(&bench), expected);
}

#[test]
fn an_interrupt_waits_for_its_time_and_a_poll_for_none() {
    let mut bench = Bench::new(host(waiting(50, None)));
    for at in [0, 10, 60] {
        bench.run_to(at * US);
        bench.send(1500);
    }
    // The third comes while the second is taken, and the ring is not empty until 98 us.
    bench.run_to(200 * US);
    bench.send(1500);
    bench.run_dry();
    assert_eq!(bench.times(), [66, 82, 98, 200 + 50 + 16].map(|us| us * US));
}

#[test]
fn an_interrupt_comes_at_its_number_of_packets() {
    let mut bench = Bench::new(host(waiting(50, Some(2))));
    for at in [0, 10, 100] {
        bench.run_to(at * US);
        bench.send(1500);
    }
    bench.run_dry();
    assert_eq!(bench.times(), [26, 42, 166].map(|us| us * US));
}

#[test]
fn a_ring_that_is_full_while_the_interrupt_is_waited_for_drops() {
    let mut bench = Bench::new(LinkConfig { queue: tail(3), ..host(waiting(50, None)) });
    for _ in 0..5 {
        bench.send(1500);
    }
    bench.run_dry();
    assert_eq!(bench.numbers(), [1, 2, 3]);
    let reasons: Vec<_> = bench.dropped.iter().map(|(_, probe, reason)| (probe.number, *reason)).collect();
    assert_eq!(reasons, [(4, DropReason::QueueFull), (5, DropReason::QueueFull)]);
    let Stats { enqueued, delivered, dropped_by_queue, max_queue_packets, .. } = *bench.link.stats();
    assert_eq!((enqueued, delivered, dropped_by_queue, max_queue_packets), (3, 3, 2, 3));
}

#[test]
fn a_busy_host_takes_exactly_its_rate() {
    let rate = 7_886_000_000;
    let mut bench = Bench::new(LinkConfig { rate: Rate(rate), queue: tail(100_000), ..host(joining(9000)) });
    for _ in 0..60_000 {
        bench.send(1500);
    }
    bench.run_dry();
    // Six of 1448 B and a header: 8740 B of 9000. 10,000 batches.
    let bits: u128 = 10_000 * (500 + 6 * 1500) * 8;
    let exact = (bits * 1_000_000_000).div_ceil(rate.into());
    assert_eq!(u128::from(*bench.times().last().unwrap()), exact);
}

#[test]
fn the_last_of_a_batch_is_followed_by_none() {
    let mut bench = Bench::new(host(joining(3000)));
    let mut followed = vec![];
    for _ in 0..3 {
        bench.send(1500);
    }
    while bench.link.poll_timeout() != units::Time::NEVER {
        bench.now = bench.link.poll_timeout().0;
        let event = bench.link.handle_event(units::Time(bench.now), &mut bench.pacers.borrow_mut());
        followed.extend(event.delivered.map(|_| bench.link.is_followed()));
    }
    assert_eq!(followed, [true, false, false]);
}

#[test]
fn batches_go_with_a_plain_queue_and_within_their_range() {
    let field = |config: &LinkConfig| config.check().map_err(|ConfigError { field, .. }| field);
    assert_eq!(field(&host(joining(1 << 20))), Ok(()));
    assert_eq!(field(&host(joining((1 << 20) + 1))), Err("batching.max_bytes"));
    assert_eq!(field(&host(waiting(1_000_001, None))), Err("batching.wait"));
    assert_eq!(field(&host(waiting(1, Some(0)))), Err("batching.wait_packets"));
    let jitter = Some(Jitter { distribution: JitterDistribution::Uniform, scale: Span(1), reordering: false });
    assert_eq!(field(&LinkConfig { jitter, ..host(joining(9000)) }), Err("batching"));
}

proptest! {
    /// Each packet leaves once, those of a flow in their order, and none before the time that it takes alone or later
    /// than the wait and the time of all that came before it and with it.
    #[test]
    fn nothing_is_lost_reordered_within_a_flow_or_later_than_the_wait_and_the_work(
        packets in prop::collection::vec((0u64..40, 0u64..3, prop_oneof![Just(52u32), Just(700), Just(1500)]), 1..200),
        max_bytes in prop_oneof![Just(0u32), 1500u32..70_000],
        wait_us in 0u64..100,
        wait_packets in prop::option::of(1u64..20),
    ) {
        let batching = Batching { max_bytes, wait: Span(wait_us * US), wait_packets };
        let mut bench = Bench::new(host(batching));
        let mut at = 0;
        let mut work = 0;
        let mut latest = vec![];
        for &(gap, flow, bytes) in &packets {
            at += gap * US;
            bench.run_to(at);
            bench.send_of(bytes, flow, false);
            // Of a server that begins with each packet a wait of its own: no batch takes longer than its packets alone.
            work = at.max(work) + (500 + u64::from(bytes)) * 8;
            latest.push(work + wait_us * US);
        }
        bench.run_dry();
        prop_assert_eq!(bench.delivered.len(), packets.len());
        for flow in 0..3 {
            let numbers: Vec<_> = bench.delivered.iter().filter(|d| d.1.flow == flow).map(|d| d.1.number).collect();
            prop_assert!(numbers.is_sorted(), "{:?}", numbers);
        }
        let end = bench.times().into_iter().max().unwrap();
        prop_assert!(end <= *latest.last().unwrap(), "{} {:?}", end, latest.last());
        for (time, probe) in &bench.delivered {
            prop_assert!(*time >= probe.arrived + (500 + u64::from(probe.bytes)) * 8);
        }
        // Nothing waits for ever, and the counters agree.
        prop_assert_eq!(bench.link.packets_inside(), 0);
        prop_assert_eq!(bench.link.stats().delivered, packets.len() as u64);
    }
}
