//! Rates, distances and credits of a link.

use super::{Counters, End, Link, PortSpeed, Settings, LINE_OVERHEAD_BYTES};
use proptest::prelude::*;
use units::Rate;

/// Bytes of a frame of the longest payload: header, payload, CRC.
const LONGEST: usize = 24 + 2112 + 4;

fn settings(speed: PortSpeed, km: u64, credits: u16) -> Settings {
    Settings { rate: speed.data_rate(), delay_ns: km * Settings::NS_PER_KM, credits, queue_frames: 1000 }
}

/// Sends `count` of the longest frames, released when they arrive; time of the last arrival, and the counters.
fn transfer(settings: Settings, count: usize) -> (u64, Counters) {
    let mut link = Link::new(settings).unwrap();
    let (mut sent, mut received, mut now_ns) = (0, 0, 0);
    while received < count {
        while sent < count && link.has_room(End::A) {
            link.handle_frame(End::A, sent, LONGEST, now_ns).unwrap();
            sent += 1;
        }
        now_ns = link.poll_timeout().unwrap();
        link.handle_timeout(now_ns);
        while let Some(number) = link.poll_frame(End::B) {
            assert_eq!(number, received);
            received += 1;
            link.handle_release(End::B, now_ns);
        }
    }
    (now_ns, link.counters(End::A))
}

#[test]
fn a_port_sends_at_its_rate_without_rounding() {
    for speed in PortSpeed::ALL {
        let count = 10_000;
        let (end_ns, counters) = transfer(settings(speed, 0, 2), count);
        let bits = ((LONGEST + LINE_OVERHEAD_BYTES) * count * 8) as u128;
        let exact = bits * 1_000_000_000 / u128::from(speed.data_rate().0);
        assert!(u128::from(end_ns).abs_diff(exact) <= 1, "{speed}: {end_ns} ns, {exact} would be right");
        assert_eq!((counters.frames, counters.credit_stalls), (count as u64, 0), "{speed}");
    }
}

#[test]
fn the_gigabit_port_carries_a_hundred_megabytes_per_second() {
    let (end_ns, _) = transfer(settings(PortSpeed::Gfc1, 0, 4), 10_000);
    let megabytes_per_second = 2112.0 * 10_000.0 * 1000.0 / end_ns as f64;
    assert!((103.2..103.4).contains(&megabytes_per_second), "{megabytes_per_second}");
}

#[test]
fn credits_bound_the_rate_over_a_distance() {
    // A credit is away for the frame's time and the round trip.
    let (km, count) = (100, 2000);
    let frame_ns = 20_442;
    let round_ns = frame_ns + 2 * km * Settings::NS_PER_KM;
    for credits in [1u16, 4, 16, 40] {
        let (end_ns, counters) = transfer(settings(PortSpeed::Gfc1, km, credits), count);
        let expected = count as u64 * round_ns / u64::from(credits);
        assert!(end_ns.abs_diff(expected) < expected / 20, "{credits} credits: {end_ns} ns for {expected}");
        assert!(counters.credit_stalls > 0 && counters.stalled_ns > counters.busy_ns / 10);
    }
    let (end_ns, counters) = transfer(settings(PortSpeed::Gfc1, km, 64), count);
    assert!(end_ns < count as u64 * (frame_ns + 1) + km * Settings::NS_PER_KM);
    assert_eq!((counters.credit_stalls, counters.stalled_ns), (0, 0));
}

#[test]
fn a_receiver_that_keeps_its_buffers_stops_the_sender_and_loses_nothing() {
    let mut link = Link::new(Settings { queue_frames: 3, ..settings(PortSpeed::Gfc4, 1, 2) }).unwrap();
    let mut refused = None;
    for number in 0..10 {
        if let Err(frame) = link.handle_frame(End::A, number, 100, 0) {
            refused.get_or_insert(frame);
        }
    }
    // One on the line and three that wait.
    assert_eq!(refused, Some(4));
    link.handle_timeout(1_000_000_000);
    assert_eq!(std::iter::from_fn(|| link.poll_frame(End::B)).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((link.credits(End::A), link.poll_timeout()), (0, None));
    // A release beyond what came gives no credit.
    (0..5).for_each(|_| link.handle_release(End::B, 1_000_000_000));
    link.handle_timeout(2_000_000_000);
    assert_eq!(std::iter::from_fn(|| link.poll_frame(End::B)).collect::<Vec<_>>(), [2, 3]);
    let counters = link.counters(End::A);
    assert_eq!(counters.credit_stalls, 1);
    assert_eq!(counters.stalled_ns, 1_000_000_000 + 5_000 - 2 * counters.busy_ns / 4);
    assert!(Link::<u32>::new(Settings { credits: 0, ..settings(PortSpeed::Gfc1, 0, 1) }).is_err());
}

#[test]
fn a_speed_is_written_as_it_is_read() {
    for speed in PortSpeed::ALL {
        assert_eq!(speed.to_string().parse(), Ok(speed));
    }
    assert!("1G".parse::<PortSpeed>().unwrap_err().to_string().contains("32GFC"));
}

proptest! {
    /// Both directions, frames of any size, releases at any time: all arrive once, in order, never more than credits
    /// allow, and never faster than the line.
    #[test]
    fn frames_arrive_once_in_order_within_credits(
        credits in 1u16..8,
        delay_ns in 0u64..50_000,
        steps in proptest::collection::vec((any::<bool>(), 28usize..2140, 0u64..30_000, any::<bool>()), 1..200),
    ) {
        let settings = Settings { rate: Rate(850_000_000), delay_ns, credits, queue_frames: 16 };
        let mut link = Link::new(settings).unwrap();
        let (mut now_ns, mut sent, mut received, mut held) = (0, [0u32; 2], [0u32; 2], [0u16; 2]);
        for (from_a, bytes, wait_ns, release) in steps {
            now_ns += wait_ns;
            link.handle_timeout(now_ns);
            let from = if from_a { End::A } else { End::B };
            if link.handle_frame(from, sent[from as usize], bytes, now_ns).is_ok() {
                sent[from as usize] += 1;
            }
            for end in [End::A, End::B] {
                let sender = end.other() as usize;
                while let Some(number) = link.poll_frame(end) {
                    prop_assert_eq!(number, received[sender]);
                    received[sender] += 1;
                    held[sender] += 1;
                }
                prop_assert!(held[sender] + link.credits(end.other()) <= credits);
                if release && held[sender] > 0 {
                    held[sender] -= 1;
                    link.handle_release(end, now_ns);
                }
            }
        }
        for _ in 0..1000 {
            for end in [End::A, End::B] {
                while link.poll_frame(end).is_some() {
                    received[end.other() as usize] += 1;
                    held[end.other() as usize] += 1;
                }
                (0..std::mem::take(&mut held[end.other() as usize])).for_each(|_| link.handle_release(end, now_ns));
            }
            let Some(next) = link.poll_timeout() else { break };
            now_ns = next;
            link.handle_timeout(now_ns);
        }
        prop_assert_eq!(sent, received);
    }
}
