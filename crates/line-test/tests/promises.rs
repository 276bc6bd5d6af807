//! A receiver's counts are exactly what the line did.

use crate::line::{spec, Fate, Line, FAR};
use line_test::{Description, Message, Outcome, Report, Responder, Stamp, StreamSpec, HEADER_BYTES};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn stream(frames: u64) -> StreamSpec {
    let mut spec = spec(
        r#"{"to": "02:00:00:00:00:02", "stream": 7, "sizes": [[1518, 9], [64, 1]], "rate_bps": 1000000000,
        "duration_ns": null, "frames": 1, "ramp_ns": 0, "payload": "cjpat", "series_ns": null, "drain_ns": 200000000,
        "pcp": null}"#,
    );
    spec.frames = Some(frames);
    spec
}

fn received(outcome: &Outcome) -> &Report {
    assert_eq!(outcome.ended, None);
    outcome.received.as_ref().expect("the receiver answered")
}

#[test]
fn a_clean_line_loses_nothing_and_its_latency_is_its_delay() {
    let (outcome, rows) = Line::default().run(stream(50_000), |_| Fate::arrives());
    let report = received(&outcome);
    assert_eq!((outcome.sent.frames, report.frames, report.lost), (50_000, 50_000, 0));
    assert_eq!((outcome.sent.bytes, report.bytes), (50_000 / 10 * (9 * 1518 + 64), outcome.sent.bytes));
    assert_eq!((report.duplicates, report.reordered, report.bit_errors, report.bad_headers), (0, 0, 0, 0));
    // Without addresses, type, stamp and check sequence.
    assert_eq!(report.bits_checked, 8 * (report.bytes - 50_000 * 48));
    let latency = report.latency_ns.unwrap();
    assert_eq!((latency.min, latency.mean, latency.p50, latency.max), (8_600_000, 8_600_000, 8_600_000, 8_600_000));
    assert_eq!(report.ipdv_mean_ns, Some(0));
    assert_eq!(outcome.clock.map(|clock| (clock.offset_ns, clock.error_ns)), Some((0, 8_600_000)));
    // 1538 and 84 bytes on the line, at 1 Gbit/s.
    assert_eq!(outcome.sent.span_ns, 5000 * (9 * 1538 + 84) * 8);
    assert!(rows.is_empty());
}

#[test]
fn losses_are_counted_by_their_runs() {
    // Runs of 1, 3, 70,000 (more than the receiver remembers) and the last 5.
    let lost = |number: u64| matches!(number, 10 | 20..=22 | 1000..=70_999 | 99_995..);
    let (outcome, _) =
        Line::default().run(stream(100_000), |number| if lost(number) { Fate::default() } else { Fate::arrives() });
    let report = received(&outcome);
    assert_eq!((report.lost, report.loss_events, report.longest_loss), (70_009, 4, 70_000));
    assert_eq!(report.loss_lengths, [(1, 1), (2, 1), (4, 1), (2048, 1)]);
}

#[test]
fn wrong_bits_are_counted_where_they_are() {
    let fate = |number| match number {
        5 => Fate { flip: Some((44, 0b101)), ..Fate::arrives() },
        6 => Fate { flip: Some((59, 0x80)), ..Fate::arrives() },
        // In the stamp: whose frame it was is not known.
        7 => Fate { flip: Some((20, 1)), ..Fate::arrives() },
        _ => Fate::arrives(),
    };
    let (outcome, _) = Line::default().run(stream(1000), fate);
    let report = received(&outcome);
    assert_eq!((report.bit_errors, report.errored_frames, report.bad_headers, report.lost), (3, 2, 1, 1));
}

#[test]
fn a_frame_that_is_cut_short_is_wrong() {
    let fate = |number| Fate { cut: (number % 10 == 1).then_some(60), ..Fate::arrives() };
    let (outcome, _) = Line::default().run(stream(1000), fate);
    let report = received(&outcome);
    assert_eq!((report.frames, report.lost, report.bit_errors), (1000, 0, 0));
    assert_eq!((report.wrong_lengths, report.errored_frames), (100, 100));
}

#[test]
fn a_copy_of_the_announcement_takes_nothing_away() {
    let line = Line { first_again_ns: Some(30 * MS), ..Line::default() };
    let (outcome, _) = line.run(stream(10_000), |_| Fate::arrives());
    assert_eq!((received(&outcome).frames, received(&outcome).lost), (10_000, 0));
}

#[test]
fn frames_without_a_carrier_are_counted_as_such() {
    let mut spec = stream(1);
    (spec.frames, spec.duration_ns, spec.series_ns) = (None, Some(1000 * MS), Some(100 * MS));
    let line = Line { no_carrier_ns: 300 * MS..700 * MS, ..Line::default() };
    let (outcome, rows) = line.run(spec, |_| Fate::arrives());
    let (sent, due) = (outcome.sent, 1000 * MS * 10 / (8 * (9 * 1538 + 84)));
    assert_eq!((received(&outcome).lost, sent.left_out_frames), (0, 0));
    assert!((sent.frames + sent.no_carrier_frames).abs_diff(due) <= 2, "{sent:?} of {due}");
    assert!(sent.no_carrier_frames.abs_diff(due * 2 / 5) < due / 50, "{sent:?} of {due}");
    assert_eq!(rows.iter().map(|row| row.no_carrier_frames).sum::<u64>(), sent.no_carrier_frames);
    assert!(rows[4].sent == 0 && rows[4].no_carrier_frames > 0, "{:?}", rows[4]);
    // A line that stays down ends the stream all the same.
    let mut spec = stream(1);
    (spec.frames, spec.duration_ns) = (None, Some(1000 * MS));
    let (outcome, _) = Line { no_carrier_ns: 300 * MS..u64::MAX, ..Line::default() }.run(spec, |_| Fate::arrives());
    assert!(outcome.sent.frames > 0 && outcome.sent.no_carrier_frames > outcome.sent.frames);
}

#[test]
fn one_stream_is_received_at_a_time() {
    let description =
        Description { interface: "far".into(), method: "test".into(), mtu_bytes: 1500, is_busy: false, boot: 1 };
    let mut responder = Responder::new(description);
    let mut begin = |from: u8, stream: u32, at_ns: u64| {
        let frame = Message::Begin { largest_bytes: 64 }.frame([2, 0, 0, 0, 0, from], FAR, None, stream, at_ns);
        responder.handle_frame([2, 0, 0, 0, 0, from], &frame[HEADER_BYTES..], 0, at_ns);
        let answer = responder.poll_frame(FAR, None, at_ns).expect("an answer");
        let content = &answer[HEADER_BYTES..];
        Message::decode(&Stamp::decode(content).unwrap(), content).unwrap()
    };
    assert!(matches!(begin(1, 7, 0), Message::Begun { .. }));
    assert_eq!(begin(2, 7, 100 * MS), Message::Busy);
    assert_eq!(begin(1, 8, 200 * MS), Message::Busy);
    assert!(matches!(begin(1, 7, 300 * MS), Message::Begun { .. }));
    // The first was silent for too long: it is over.
    assert!(matches!(begin(2, 7, 2500 * MS), Message::Begun { .. }));
}

#[test]
fn copies_and_late_frames_are_neither_lost_nor_counted_twice() {
    let fate = |number| match number {
        100 => Fate { copies: vec![0, 0, MS], ..Fate::default() },
        // Some 160 frames of 12 us and less late.
        200 => Fate { copies: vec![2 * MS], ..Fate::default() },
        _ => Fate::arrives(),
    };
    let (outcome, _) = Line::default().run(stream(10_000), fate);
    let report = received(&outcome);
    assert_eq!((report.frames, report.lost, report.duplicates, report.reordered), (10_000, 0, 2, 1));
    assert!((160..200).contains(&report.reorder_extent_max), "{}", report.reorder_extent_max);
    assert_eq!(report.latency_ns.unwrap().max, 10_600_000);
}

#[test]
fn the_other_clock_is_taken_off_within_its_error() {
    for ahead_ns in [-3_600_000_000_000, 123_456_789] {
        let (outcome, _) = Line { ahead_ns, ..Line::default() }.run(stream(20_000), |_| Fate::arrives());
        let clock = outcome.clock.unwrap();
        assert_eq!((clock.offset_ns, clock.error_ns), (ahead_ns, 8_600_000));
        assert_eq!(received(&outcome).latency_ns.unwrap().mean, 8_600_000);
    }
}

#[test]
fn a_series_adds_up_to_the_whole() {
    let mut spec = stream(1);
    (spec.frames, spec.duration_ns, spec.series_ns) = (None, Some(1_050 * MS), Some(100 * MS));
    let (outcome, rows) =
        Line::default().run(spec, |number| if number % 100 == 0 { Fate::default() } else { Fate::arrives() });
    let report = received(&outcome);
    assert_eq!(rows.len(), 11);
    assert!(rows.iter().all(|row| row.is_answered && row.latency_mean_ns == Some(8_600_000)));
    assert_eq!(rows.iter().map(|row| row.sent).sum::<u64>(), outcome.sent.frames);
    assert_eq!(rows.iter().map(|row| row.received).sum::<u64>(), report.frames);
    assert_eq!(rows.iter().map(|row| row.lost).sum::<i64>(), report.lost as i64);
    assert_eq!(rows[4].time_ns, 500 * MS);
}

#[test]
fn a_ramp_is_sent_and_not_counted() {
    let mut spec = stream(1000);
    spec.ramp_ns = 500 * MS;
    let (outcome, _) = Line::default().run(spec, |_| Fate::arrives());
    assert_eq!((outcome.sent.frames, received(&outcome).frames), (1000, 1000));
}

#[test]
fn what_the_generator_cannot_send_is_not_the_lines_loss() {
    let mut spec = stream(1);
    (spec.frames, spec.duration_ns) = (None, Some(200 * MS));
    // Half of the rate is what the generator does.
    let slow = Line { cost_ns: 22_285, ..Line::default() };
    let (outcome, _) = slow.run(spec, |_| Fate::arrives());
    let (sent, report) = (outcome.sent, received(&outcome));
    assert_eq!((report.lost, report.frames), (0, sent.frames));
    let due = 200 * MS / 11_142;
    assert!((sent.frames + sent.left_out_frames).abs_diff(due) < due / 50, "{sent:?} of {due}");
    assert!(sent.left_out_frames.abs_diff(due / 2) < due / 20 && sent.late_frames > 0, "{sent:?}");
}

#[test]
fn a_generator_that_stands_still_beyond_the_end_leaves_out_no_more_than_was_due() {
    let mut spec = stream(1);
    (spec.frames, spec.duration_ns) = (None, Some(200 * MS));
    let (outcome, _) = Line { cost_ns: 700 * MS, ..Line::default() }.run(spec, |_| Fate::arrives());
    let due = 200 * MS * 10 / (8 * (9 * 1538 + 84));
    assert_eq!(outcome.sent.frames, 1);
    assert!((1 + outcome.sent.left_out_frames).abs_diff(due) <= 1, "{:?} of {due}", outcome.sent);
    assert_eq!(outcome.sent.span_ns, 200 * MS);
}

#[test]
fn questions_and_answers_may_be_lost() {
    let mut spec = stream(1);
    (spec.frames, spec.duration_ns, spec.series_ns) = (None, Some(2_000 * MS), Some(500 * MS));
    let (outcome, rows) = Line { message_of: 3, ..Line::default() }.run(spec, |_| Fate::arrives());
    assert_eq!(received(&outcome).frames, outcome.sent.frames);
    assert_eq!(rows.iter().map(|row| row.received).sum::<u64>(), outcome.sent.frames);
}

#[test]
fn a_receiver_that_is_not_there_is_said() {
    let (outcome, _) = Line { message_of: u64::MAX, ..Line::default() }.run(stream(10), |_| Fate::arrives());
    assert_eq!(outcome.ended.as_deref(), Some("the receiver did not answer"));
    assert_eq!((outcome.sent.frames, outcome.received, outcome.clock), (0, None, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn counts_are_what_the_line_did(seed: u64) {
        let mut state = seed | 1;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let (mut lost, mut copies, mut wrong) = (0, 0, 0);
        let (outcome, _) = Line::default().run(stream(3000), |_| {
            let mut fate = Fate::arrives();
            match random() % 20 {
                0 => {
                    fate.copies.clear();
                    lost += 1;
                }
                1 => {
                    fate.copies = vec![0, random() % (10 * MS)];
                    copies += 1;
                }
                2 => fate.copies = vec![random() % (10 * MS)],
                3 => {
                    fate.flip = Some((44 + (random() % 16) as usize, 1 << (random() % 8)));
                    wrong += 1;
                }
                _ => {}
            }
            fate
        });
        let report = received(&outcome);
        prop_assert_eq!((report.lost, report.duplicates, report.bit_errors), (lost, copies, wrong));
        prop_assert_eq!((report.frames, report.errored_frames), (3000 - lost, wrong));
        let runs: u64 = report.loss_lengths.iter().map(|(_, count)| count).sum();
        prop_assert_eq!(runs, report.loss_events);
    }
}
