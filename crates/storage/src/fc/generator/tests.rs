//! Loads and what a receiver counts of them.

use super::{load_frame, stamp_of, Generator, Receiver, Settings, Size, Stamp, WrongSettings};
use super::{EndOfLoad, LoadResult, RESULT_PER_MILLE};
use crate::fc::link::{End, Link, PortSpeed, Settings as LinkSettings};
use bytes::BytesMut;
use proptest::prelude::*;
use wire::fc::{Eof, FcId, Frame, Sof};

const FROM: FcId = FcId::of(1, 1, 1);
const TO: FcId = FcId::of(1, 1, 2);

fn mix(share_per_mille: u32) -> Settings {
    let size = |payload_bytes, weight| Size { payload_bytes, weight };
    Settings {
        sizes: vec![size(64, 1), size(512, 2), size(2048, 5)],
        frames: Some(20_000),
        ..Settings::of(PortSpeed::Gfc1.data_rate(), share_per_mille, 2048)
    }
}

#[test]
fn a_load_takes_its_share_of_the_line() {
    for share in [100, 500, 900, 1000] {
        let settings =
            LinkSettings { rate: PortSpeed::Gfc1.data_rate(), delay_ns: 50_000, credits: 16, queue_frames: 9 };
        let mut link = Link::new(settings).unwrap();
        let mut generator = Generator::new(mix(share), 0).unwrap();
        let mut receiver = Receiver::new(0);
        while let Some(now_ns) = [generator.poll_timeout(), link.poll_timeout()].into_iter().flatten().min() {
            link.handle_timeout(now_ns);
            while let Some(due) = generator.poll_frame(now_ns) {
                let frame = due.frame(FROM, TO);
                let bytes = frame.content_bytes();
                link.handle_frame(End::A, frame, bytes, now_ns).unwrap();
            }
            while let Some(frame) = link.poll_frame(End::B) {
                receiver.handle_stamp(&stamp_of(&frame).unwrap(), frame.payload.len(), now_ns);
                link.handle_release(End::B, now_ns);
            }
        }
        let (report, counters) = (receiver.report(), link.counters(End::A));
        assert_eq!((report.received, report.lost, report.duplicates, report.out_of_order), (20_000, 0, 0, 0));
        assert_eq!(report.payload_bytes, generator.payload_bytes());
        let measured = counters.busy_ns * 1000 / report.span_ns;
        assert!(measured.abs_diff(u64::from(share)) <= 1, "{measured} per mille for {share}");
        // Sizes by their weights: (64 + 2 x 512 + 5 x 2048) / 8 bytes on average.
        assert!((report.payload_bytes / 20_000).abs_diff(1416) < 20, "{report:?}");
        // The line's time and the distance: nothing waits, since frames have gaps.
        let longest = receiver.latency().max().unwrap();
        assert!((69_000..70_900).contains(&longest), "{longest} ns");
    }
}

#[test]
fn a_stamp_goes_through_the_bytes_of_a_frame() {
    for payload_bytes in [0, 24, 513, 2112] {
        let stamp = Stamp { load: 7, sequence: 0x1234_5678_9abc, sent_ns: u64::MAX - 5 };
        let frame = load_frame(FROM, TO, &stamp, payload_bytes);
        let mut bytes = BytesMut::new();
        frame.encode_content(&mut bytes);
        let read = Frame::decode_content(Sof::Initiate3, &bytes.freeze(), Eof::Terminate).unwrap();
        assert_eq!((stamp_of(&read), read.payload.len()), (Some(stamp), usize::from(payload_bytes).max(24)));
    }
}

#[test]
fn a_sender_that_was_held_back_catches_up_for_a_while_and_no_more() {
    let settings = Settings::of(PortSpeed::Gfc1.data_rate(), 500, 2048);
    let mut generator = Generator::new(settings, 0).unwrap();
    let now_ns = 1_000_000_000;
    let burst = std::iter::from_fn(|| generator.poll_frame(now_ns)).count();
    // 1 ms at 39.7 us each.
    assert!((25..=27).contains(&burst), "{burst}");
    assert_eq!(generator.left_out_ns(), now_ns - 1_000_000);
}

#[test]
fn wrong_settings_are_refused_with_what_would_be_right() {
    let rate = PortSpeed::Gfc1.data_rate();
    let refused = |settings: Settings| Generator::new(settings, 0).unwrap_err();
    assert_eq!(refused(Settings::of(rate, 0, 100)), WrongSettings::Share(0));
    assert_eq!(refused(Settings::of(rate, 1001, 100)), WrongSettings::Share(1001));
    assert_eq!(refused(Settings::of(rate, 10, 23)), WrongSettings::Size(23));
    assert_eq!(refused(Settings::of(rate, 10, 2113)), WrongSettings::Size(2113));
    assert_eq!(refused(Settings { sizes: vec![], ..Settings::of(rate, 10, 100) }), WrongSettings::NoSizes);
    assert_eq!(refused(Settings::of(units::Rate(0), 10, 100)), WrongSettings::NoRate);
}

#[test]
fn numbers_far_apart_cost_no_more_than_the_window() {
    let mut receiver = Receiver::new(0);
    for sequence in [0, 1 << 60, u64::MAX - 1, 5, u64::MAX] {
        receiver.handle_stamp(&Stamp { load: 0, sequence, sent_ns: 10 }, 24, 5);
    }
    let report = receiver.report();
    assert_eq!((report.received, report.too_late, report.foreign, report.from_the_future), (3, 1, 1, 3));
    assert_eq!(report.lost, u64::MAX - 3);
}

proptest! {
    /// Counts of a receiver against a set of all numbers.
    #[test]
    fn counts_are_those_of_a_set(numbers in proptest::collection::vec(0u64..300, 1..400)) {
        let mut receiver = Receiver::new(3);
        let mut known = std::collections::BTreeSet::new();
        let (mut duplicates, mut out_of_order) = (0, 0);
        for &sequence in &numbers {
            let highest = known.last().copied();
            let new = known.insert(sequence);
            duplicates += u64::from(!new);
            out_of_order += u64::from(new && highest.is_some_and(|highest| sequence < highest));
            receiver.handle_stamp(&Stamp { load: 3, sequence, sent_ns: 0 }, 24, sequence);
        }
        let report = receiver.report();
        let highest = known.last().copied().unwrap();
        prop_assert_eq!(report.received, known.len() as u64);
        prop_assert_eq!(report.lost, highest + 1 - known.len() as u64);
        prop_assert_eq!((report.duplicates, report.out_of_order), (duplicates, out_of_order));
        prop_assert_eq!(receiver.latency().count(), report.received);
    }
}

#[test]
fn the_result_of_a_load_crosses_as_a_frame_and_counts_what_was_lost_at_its_end() {
    let mut receiver = Receiver::new(7);
    for sequence in [0, 1, 3] {
        receiver.handle_stamp(&Stamp { load: 7, sequence, sent_ns: 100 }, 2048, 300 + 10 * sequence);
    }
    let result = LoadResult::of(&receiver, Some(10));
    assert_eq!((result.report.received, result.report.lost, result.latency_mean_ns), (3, 7, 213));
    assert_eq!(result.latency_ns[RESULT_PER_MILLE.len() - 1], 230);
    assert_eq!(LoadResult::of(&receiver, None).report.lost, 1);
    for message in [EndOfLoad::Asks { load: 7, sent: 10 }, EndOfLoad::Tells { load: 7, result }] {
        let frame = message.frame(FROM, TO);
        assert_eq!((EndOfLoad::of(&frame), stamp_of(&frame)), (Some(message), None));
    }
    assert_eq!(EndOfLoad::of(&load_frame(FROM, TO, &Stamp { load: 7, sequence: 1, sent_ns: 2 }, 64)), None);
}
