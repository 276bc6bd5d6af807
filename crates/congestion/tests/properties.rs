//! Properties of every algorithm under any sequence of events, up to 400 Gbit/s x 1 s (34 million segments).

use congestion::{builtin, AckSample, Algorithm, CaEvent, CaState, Controller, RateSample};
use proptest::prelude::*;
use std::collections::BTreeMap;

const WIDEST: u32 = 34_000_000;

/// Algorithms that also lower the window on an ACK, by delay; for all others that would be a fault.
const LOWERS_ON_ACK: [&str; 4] = ["compound", "fast", "ledbat_plus_plus", "vegas"];

#[derive(Clone, Debug)]
enum Event {
    Ack { after_us: u64, acked: u32, rtt_us: i32, limited: bool, rate: Rate },
    Reduce { state: CaState },
    Recovered { state: CaState },
    Undo,
    Cwnd { event: CaEvent, idle_us: u64 },
    Clamp { segments: u32 },
    Pace { status: u8, rate: u64 },
}

/// The delivery rate sample of an ACK, beyond the ACK itself.
#[derive(Clone, Debug)]
struct Rate {
    delivered: i32,
    interval_us: i64,
    losses: u32,
    app_limited: bool,
    delayed: bool,
}

fn rate() -> impl Strategy<Value = Rate> {
    let delivered = prop_oneof![Just(-1), 0..100_i32, 0..i32::MAX];
    let interval = prop_oneof![Just(-1), 0..10_i64, 0..2_000_000_i64, 0..i64::from(u32::MAX)];
    let losses = prop_oneof![Just(0), 0..3_u32, 0..WIDEST];
    (delivered, interval, losses, any::<bool>(), any::<bool>()).prop_map(
        |(delivered, interval_us, losses, app_limited, delayed)| Rate {
            delivered,
            interval_us,
            losses,
            app_limited,
            delayed,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let time = prop_oneof![0..10_u64, 0..100_000_u64, 0..1_000_000_000_000_u64];
    let count = prop_oneof![1..3_u32, 1..100_000_u32, 1..WIDEST];
    let rtt = prop_oneof![Just(-1), 0..1_000_000_i32, 0..i32::MAX];
    let state = prop_oneof![Just(CaState::Cwr), Just(CaState::Recovery), Just(CaState::Loss)];
    let calm = prop_oneof![Just(CaState::Open), Just(CaState::Disorder)];
    let event = prop_oneof![
        Just(CaEvent::TxStart),
        Just(CaEvent::CwndRestart),
        Just(CaEvent::CompleteCwr),
        Just(CaEvent::Loss),
        Just(CaEvent::EcnNoCe),
        Just(CaEvent::EcnIsCe)
    ];
    prop_oneof![
        8 => (time.clone(), count.clone(), rtt, any::<bool>(), rate())
            .prop_map(|(after_us, acked, rtt_us, limited, rate)| Event::Ack { after_us, acked, rtt_us, limited, rate }),
        1 => state.prop_map(|state| Event::Reduce { state }),
        1 => calm.prop_map(|state| Event::Recovered { state }),
        1 => Just(Event::Undo),
        1 => (event, time).prop_map(|(event, idle_us)| Event::Cwnd { event, idle_us }),
        1 => count.prop_map(|segments| Event::Clamp { segments }),
        1 => (0..2_u8, any::<u64>()).prop_map(|(status, rate)| Event::Pace { status, rate }),
    ]
}

/// A value anywhere in each parameter's range, from 64 random bits each.
fn within_range(algorithm: &Algorithm, bits: &[u64]) -> BTreeMap<String, i64> {
    let value = |p: &congestion::ParamDesc, bits: u64| match bits % 4 {
        0 => p.min,
        1 => p.max,
        _ => p.min + (bits as i64 >> 2).rem_euclid(p.max - p.min + 1),
    };
    algorithm.params().iter().zip(bits).map(|(p, &b)| (p.name.clone(), value(p, b))).collect()
}

/// Plays `events`; after each the invariants hold. Returns the final state as text.
fn play(algorithm: &Algorithm, values: &BTreeMap<String, i64>, cwnd: u32, events: &[Event]) -> String {
    let mut control = Controller::new(algorithm, values).expect("values in range");
    control.sock_mut().snd_cwnd = cwnd;
    control.init();
    for event in events {
        step(&mut control, event);
        let sock = control.sock();
        assert!(sock.snd_cwnd >= 1 && sock.snd_ssthresh >= 2, "{event:?} left {sock:?}");
    }
    control.release();
    format!("{:?}", control.sock())
}

fn step(control: &mut Controller, event: &Event) {
    match *event {
        Event::Ack { after_us, acked, rtt_us, limited, ref rate } => {
            let sock = control.sock_mut();
            sock.tcp_mstamp_us += after_us;
            sock.packets_out = sock.snd_cwnd;
            sock.max_packets_out = sock.snd_cwnd / 3;
            sock.is_cwnd_limited = limited.into();
            sock.snd_una = sock.snd_una.wrapping_add(acked.wrapping_mul(1448));
            sock.snd_nxt = sock.snd_una.wrapping_add(sock.snd_cwnd.wrapping_mul(1448));
            sock.delivered = sock.delivered.wrapping_add(acked);
            let in_flight = sock.packets_out;
            let before = sock.snd_cwnd;
            control.pkts_acked(&AckSample { pkts_acked: acked, rtt_us, in_flight });
            assert_eq!(control.sock().snd_cwnd, before, "a sample alone moves no window");
            if control.has_cong_control() {
                let sample = rate_sample(control, acked, rtt_us, in_flight, rate);
                control.cong_control(control.sock().snd_una, 0, &sample);
            } else {
                control.cong_avoid(control.sock().snd_una, acked);
            }
            check_ack(control, before, acked);
        }
        Event::Reduce { state } => {
            control.sock_mut().prior_cwnd = control.sock().snd_cwnd;
            let before = control.sock().snd_cwnd;
            let threshold = control.ssthresh();
            assert!(threshold >= 2, "{before} to {threshold}");
            // One with its own window control only learns of the loss here.
            assert!(threshold <= before.max(2) || control.has_cong_control(), "{before} to {threshold}");
            assert_eq!(control.sock().snd_cwnd, before, "TCP, not the algorithm, lowers the window");
            control.sock_mut().snd_ssthresh = threshold;
            control.sock_mut().snd_cwnd = if state == CaState::Loss { 1 } else { threshold };
            control.set_state(state);
            assert_eq!(control.sock().ca_state, state as u8);
        }
        Event::Recovered { state } => control.set_state(state),
        Event::Undo => {
            let window = control.undo_cwnd();
            let sock = control.sock();
            let all = sock.snd_cwnd.max(sock.prior_cwnd);
            assert!(window == all || control.has_cong_control() && window == sock.snd_cwnd, "{window} of {all}");
            control.sock_mut().snd_cwnd = window;
        }
        Event::Cwnd { event, idle_us } => {
            let sock = control.sock_mut();
            sock.lsndtime_us = sock.tcp_mstamp_us;
            sock.tcp_mstamp_us += idle_us;
            control.cwnd_event(event);
        }
        Event::Clamp { segments } => {
            let sock = control.sock_mut();
            sock.snd_cwnd_clamp = segments;
            sock.snd_cwnd = sock.snd_cwnd.min(segments);
        }
        Event::Pace { status, rate } => {
            control.sock_mut().pacing_status = status;
            control.sock_mut().pacing_rate = rate;
        }
    }
}

/// The sample of an ACK that has just been counted.
fn rate_sample(control: &mut Controller, acked: u32, rtt_us: i32, in_flight: u32, rate: &Rate) -> RateSample {
    let sock = control.sock_mut();
    let prior_delivered = sock.delivered.wrapping_sub(acked);
    sock.lost = sock.lost.wrapping_add(rate.losses);
    sock.delivered_mstamp_us = sock.tcp_mstamp_us;
    RateSample {
        prior_delivered,
        delivered: rate.delivered,
        interval_us: rate.interval_us,
        rtt_us: rtt_us.into(),
        losses: rate.losses as i32,
        acked_sacked: acked,
        prior_in_flight: in_flight,
        is_app_limited: rate.app_limited.into(),
        is_ack_delayed: rate.delayed.into(),
        ..RateSample::default()
    }
}

/// Changes of the window that an ACK may make.
fn check_ack(control: &Controller, before: u32, acked: u32) {
    let (after, clamp) = (control.sock().snd_cwnd, control.sock().snd_cwnd_clamp);
    assert!(after <= clamp.max(before), "{before} to {after} past the clamp of {clamp}");
    if control.has_cong_control() {
        // Its own floor, and no flow without a rate.
        assert!(after >= 1 && control.sock().pacing_rate > 0);
        return;
    }
    if LOWERS_ON_ACK.contains(&control.algorithm().name()) {
        assert!(after >= before.min(clamp).min(2), "{before} to {after}: at least 2 remain");
    } else {
        assert!(after >= before.min(clamp), "{before} to {after}: an ACK takes nothing away");
    }
    // No faster than slow start, but for one segment of old credit.
    assert!(u64::from(after) <= u64::from(before) + u64::from(acked) + 1, "{before} to {after} by {acked}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_stay_in_bounds_and_a_replay_is_identical(
        bits in prop::collection::vec(any::<u64>(), 16),
        cwnd in prop_oneof![1..20_u32, 1..WIDEST],
        events in prop::collection::vec(event(), 1..200),
    ) {
        for algorithm in builtin() {
            let values = within_range(algorithm, &bits);
            let first = play(algorithm, &values, cwnd, &events);
            let second = play(algorithm, &values, cwnd, &events);
            prop_assert_eq!(first, second);
        }
    }
}
