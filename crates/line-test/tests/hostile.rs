//! Frames of others harm nobody: neither end panics, and a receiver's counts stay consistent.

use crate::line::{spec, FAR, OWN};
use line_test::{Answer, Description, Kind, Latency, Message, Now, Report, Responder, Sender, Stamp, Window};
use line_test::{HEADER_BYTES, STREAMS_MAX};
use proptest::prelude::*;

fn description() -> Description {
    Description { interface: "far".into(), method: "test".into(), mtu_bytes: 1500, is_busy: false, boot: 1 }
}

/// Numbers of which the ends of the range come as often as others.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0u64..100_000, Just(u64::MAX), Just(u64::MAX - 1), Just(0), Just(1 << 63)]
}

fn stamp() -> impl Strategy<Value = Stamp> {
    let kind = prop_oneof![Just(Kind::Test), Just(Kind::Ramp), Just(Kind::Message)];
    (kind, any::<u8>(), any::<u16>(), 0u32..20, number(), number()).prop_map(
        |(kind, pattern, content_bytes, stream, sequence, sent_ns)| Stamp {
            kind,
            pattern,
            content_bytes,
            stream,
            sequence,
            sent_ns,
        },
    )
}

fn report() -> impl Strategy<Value = Report> {
    (number(), number(), number(), any::<i64>(), any::<bool>()).prop_map(|(frames, lost, other, latency, is_timed)| {
        let same = Latency {
            min: latency,
            mean: latency,
            p50: latency,
            p90: latency,
            p99: latency,
            p999: latency,
            max: latency,
        };
        Report {
            frames,
            lost,
            bit_errors: other,
            errored_frames: other,
            latency_ns: is_timed.then_some(same),
            ..Report::default()
        }
    })
}

fn message() -> impl Strategy<Value = Message> {
    let window = (number(), any::<i64>(), any::<i64>()).prop_map(|(frames, sum, one)| Window {
        frames,
        latency_sum_ns: sum,
        latency_min_ns: one,
        latency_max_ns: one,
    });
    prop_oneof![
        Just(Message::Hello),
        Just(Message::Busy),
        Just(Message::Here(description())),
        any::<u32>().prop_map(|largest_bytes| Message::Begin { largest_bytes }),
        (64u32..9253).prop_map(|largest_bytes| Message::Begin { largest_bytes }),
        (number(), number(), any::<u64>()).prop_map(|(asked_ns, came_ns, boot)| Message::Begun {
            asked_ns,
            came_ns,
            boot
        }),
        (number(), proptest::option::of(number())).prop_map(|(number, sent)| Message::Ask { number, sent }),
        (0u64..4, number(), number(), report(), window).prop_map(|(number, asked_ns, came_ns, report, window)| {
            Message::Tell(Box::new(Answer { number, asked_ns, came_ns, report, window }))
        }),
    ]
}

/// Bytes behind the header of a frame.
fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..100),
        (stamp(), proptest::collection::vec(any::<u8>(), 0..2000)).prop_map(|(stamp, rest)| {
            let mut bytes = stamp.encode().to_vec();
            bytes.extend(rest);
            bytes
        }),
        (message(), 0u32..20, number()).prop_map(|(message, stream, now_ns)| {
            message.frame(OWN, FAR, None, stream, now_ns)[HEADER_BYTES..].to_vec()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_receiver_bears_any_frames(frames in proptest::collection::vec((0u8..3, content(), number()), 0..60)) {
        let mut responder = Responder::new(description());
        for (from, content, at_ns) in frames {
            responder.handle_frame([2, 0, 0, 0, 1, from], &content, 0, at_ns);
        }
        while responder.poll_frame(OWN, None, 5).is_some() {}
        let streams = responder.streams(5);
        prop_assert!(streams.len() <= STREAMS_MAX);
        for (_, _, report, _) in streams {
            prop_assert!(report.longest_loss <= report.lost && report.loss_events <= report.lost);
            prop_assert!(report.errored_frames <= report.frames && report.reordered <= report.frames);
        }
    }

    #[test]
    fn a_sender_bears_any_answers(messages in proptest::collection::vec((message(), number(), number()), 0..40)) {
        let spec = spec(
            r#"{"to": "02:00:00:00:00:02", "stream": 7, "sizes": [[64, 1]], "rate_bps": 1000000,
            "duration_ns": 50000000, "frames": null, "ramp_ns": 0, "payload": "zeros", "series_ns": 10000000,
            "drain_ns": 0, "pcp": null}"#,
        );
        let now = |steady_ns: u64| Now { steady_ns, day_ns: 1_790_000_000_000_000_000 + steady_ns };
        let mut sender = Sender::new(spec, OWN, 1500, None, 1, now(0)).unwrap();
        let mut at_ns = 0;
        for (message, sent_ns, came_ns) in messages {
            let stamp = Stamp { kind: Kind::Message, pattern: 0, content_bytes: 60, stream: 7, sequence: 0, sent_ns };
            sender.handle_message(FAR, &stamp, &message, came_ns, now(at_ns));
            at_ns = sender.poll_timeout().unwrap_or(at_ns).max(at_ns);
            let _ = sender.poll_message(now(at_ns));
            let _ = sender.poll_due(now(at_ns));
            prop_assert!(serde_json::to_string(&sender.take_rows()).is_ok());
        }
        prop_assert!(serde_json::to_string(&sender.outcome()).is_ok());
    }
}
