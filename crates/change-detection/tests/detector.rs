//! A detector learns a path, finds what left it, and goes on from its state.

use crate::series::{config, feed, kinds, rtt_s, settings, Noise, DAY_S, START_S};
use change_detection::{Change, Config, Detector, Kind};
use serde_json::json;

const MINUTE: f64 = 60.0;

/// A detector of an RTT that has seen two weeks and three hours, and when they ended.
fn taught(config: Config, noise: &mut Noise) -> (Detector, f64) {
    let mut detector = Detector::new(config);
    let end_s = START_S + 14.0 * DAY_S + 10_800.0;
    let changes =
        feed(&mut detector, MINUTE, (START_S, end_s), |at_s| Some(rtt_s(at_s) * (1.0 + 0.01 * noise.gaussian())));
    assert_eq!(changes, []);
    (detector, end_s)
}

#[test]
fn a_step_of_20_percent_is_found_within_5_samples_and_its_end_too() {
    let mut noise = Noise(1);
    let (mut detector, at_s) = taught(config("rtt_s", MINUTE), &mut noise);
    let step = |at_s: f64, noise: &mut Noise| Some(1.2 * rtt_s(at_s) * (1.0 + 0.01 * noise.gaussian()));
    let changes = feed(&mut detector, MINUTE, (at_s, at_s + 300.0), |at_s| step(at_s, &mut noise));
    assert_eq!(kinds(&changes), [Kind::Step]);
    assert!((changes[0].since_s - at_s).abs() <= MINUTE, "{changes:?}");
    assert!((changes[0].before.unwrap() / 0.032 - 1.0).abs() < 0.02, "{changes:?}");
    assert!((changes[0].after.unwrap() / 0.0384 - 1.0).abs() < 0.02, "{changes:?}");
    assert_eq!(changes[0].worse, Some(true));
    assert!(changes[0].confidence > 0.9);
    let changes = feed(&mut detector, MINUTE, (at_s + 300.0, at_s + DAY_S), |at_s| step(at_s, &mut noise));
    assert_eq!(changes, [], "the working hours of a day are part of its pattern, also at the new level");
    let back_s = at_s + DAY_S;
    let changes = feed(&mut detector, MINUTE, (back_s, back_s + 600.0), |at_s| Some(rtt_s(at_s)));
    assert_eq!(kinds(&changes), [Kind::Recovered]);
}

#[test]
fn what_lasts_becomes_the_benchmark() {
    let mut noise = Noise(2);
    let (mut detector, at_s) = taught(config("rtt_s", MINUTE), &mut noise);
    let (_, before, _) = detector.benchmark(at_s).unwrap();
    let changes = feed(&mut detector, MINUTE, (at_s, at_s + 7.0 * DAY_S), |at_s| {
        Some(1.5 * rtt_s(at_s) * (1.0 + 0.01 * noise.gaussian()))
    });
    assert_eq!(kinds(&changes), [Kind::Step, Kind::NewBenchmark]);
    assert!(!changes[1].note.is_empty());
    let (low, mid, high) = detector.benchmark(at_s).unwrap();
    assert!((mid / before / 1.5 - 1.0).abs() < 0.03, "{before} {mid}");
    assert!(low < mid && mid < high);
}

#[test]
fn a_slow_drift_is_found() {
    let mut noise = Noise(3);
    let (mut detector, at_s) = taught(config("rtt_s", MINUTE), &mut noise);
    let changes = feed(&mut detector, MINUTE, (at_s, at_s + 4.0 * DAY_S), |now_s| {
        let part = (now_s - at_s) / (4.0 * DAY_S);
        Some((1.0 + 0.4 * part) * rtt_s(now_s) * (1.0 + 0.01 * noise.gaussian()))
    });
    assert_eq!(changes.first().map(|change| change.kind), Some(Kind::Drift), "{changes:?}");
}

#[test]
fn stray_samples_and_small_steps_are_no_changes() {
    let mut noise = Noise(4);
    let (mut detector, at_s) = taught(config("rtt_s", MINUTE), &mut noise);
    let changes = feed(&mut detector, MINUTE, (at_s, at_s + 2.0 * DAY_S), |at_s| {
        let stray = if noise.uniform() < 0.01 { 3.0 } else { 1.0 };
        Some(1.04 * stray * rtt_s(at_s) * (1.0 + 0.01 * noise.gaussian()))
    });
    assert_eq!(changes, []);
}

#[test]
fn silence_and_its_end_are_changes_and_gaps_are_not() {
    let mut noise = Noise(5);
    let (mut detector, at_s) = taught(config("rtt_s", MINUTE), &mut noise);
    let mut usual = |at_s: f64| Some(rtt_s(at_s) * (1.0 + 0.01 * noise.gaussian()));
    assert_eq!(feed(&mut detector, MINUTE, (at_s, at_s + 240.0), |_| None), []);
    let changes = feed(&mut detector, MINUTE, (at_s + 240.0, at_s + 3600.0), |_| None);
    assert_eq!(kinds(&changes), [Kind::Silent]);
    assert_eq!((changes[0].since_s, changes[0].samples), (at_s, 5));
    let changes = feed(&mut detector, MINUTE, (at_s + 3600.0, at_s + 7200.0), &mut usual);
    assert_eq!(kinds(&changes), [Kind::Answered]);
    let changes = feed(&mut detector, MINUTE, (at_s + 3.0 * DAY_S, at_s + 4.0 * DAY_S), &mut usual);
    assert_eq!(changes, []);
}

#[test]
fn a_clock_that_goes_backwards_is_named() {
    let mut noise = Noise(6);
    let (mut detector, at_s) = taught(config("rtt_s", MINUTE), &mut noise);
    let back = detector.handle_sample(at_s - 3600.0, Some(0.032)).unwrap();
    assert_eq!(back.kind, Kind::ClockStep);
    assert_eq!(feed(&mut detector, MINUTE, (at_s - 3540.0, at_s), |at_s| Some(rtt_s(at_s))), []);
    assert_eq!(detector.handle_sample(f64::NAN, Some(1.0)), None);
}

#[test]
fn a_state_goes_on_as_if_nothing_had_been() {
    let mut noise = Noise(7);
    let (mut whole, at_s) = taught(config("rtt_s", MINUTE), &mut noise);
    let mut resumed = Detector::resume(config("rtt_s", MINUTE), &whole.state().unwrap()).unwrap();
    for index in 0..2000 {
        let now_s = at_s + MINUTE * f64::from(index);
        let value = (index % 97 != 0)
            .then(|| (if index > 500 { 1.3 } else { 1.0 }) * rtt_s(now_s) * (1.0 + 0.01 * noise.gaussian()));
        // JSON keeps all but the last digit of a number.
        let seen = |change: Option<Change>| change.map(|change| (change.kind, change.since_s, change.samples));
        assert_eq!(seen(whole.handle_sample(now_s, value)), seen(resumed.handle_sample(now_s, value)));
    }
    assert!(whole.state().unwrap().len() < 24_000, "{}", whole.state().unwrap().len());
}

#[test]
fn a_state_of_another_quantity_or_form_is_refused() {
    let loss = Detector::new(config("loss", MINUTE)).state().unwrap();
    for (state, says) in [(loss.as_str(), "another kind"), ("{}", "missing field"), ("no", "expected")] {
        let error = Detector::resume(config("rtt_s", MINUTE), state).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let other = loss.replace("\"format\":2", "\"format\":7");
    assert!(Detector::resume(config("loss", MINUTE), &other).is_err());
}

#[test]
fn what_was_agreed_takes_the_place_of_what_is_learned() {
    let agreed = settings(json!({"quantity": "available_bps", "period_s": 300.0, "agreed": 400e6}));
    let mut detector = Detector::new(agreed);
    let (low, mid, high) = detector.benchmark(START_S).unwrap();
    assert!((low / 360e6 - 1.0).abs() < 1e-4 && (mid / 400e6 - 1.0).abs() < 1e-4 && high.is_infinite());
    let mut noise = Noise(8);
    let mut at = |from: f64, to: f64, level: f64| {
        let times = (START_S + 300.0 * from, START_S + 300.0 * to);
        kinds(&feed(&mut detector, 300.0, times, |_| Some(level * (1.0 + 0.02 * noise.gaussian()))))
    };
    assert_eq!(at(0.0, 200.0, 420e6), []);
    assert_eq!(at(200.0, 210.0, 300e6), [Kind::AgreedMissed]);
    assert_eq!(at(210.0, 400.0, 300e6), []);
    assert_eq!(at(400.0, 430.0, 500e6), [Kind::Recovered]);
}

#[test]
fn a_level_at_the_edge_of_what_was_agreed_does_not_alternate() {
    let agreed = settings(json!({"quantity": "rtt_s", "period_s": 10.0, "agreed": 0.02}));
    let mut detector = Detector::new(agreed);
    let mut noise = Noise(10);
    let mut at = |from: f64, to: f64, level: f64| {
        let times = (START_S + 10.0 * from, START_S + 10.0 * to);
        kinds(&feed(&mut detector, 10.0, times, |_| Some(level * (1.0 + 0.01 * noise.gaussian()))))
    };
    assert_eq!(at(0.0, 5000.0, 0.022), [Kind::AgreedMissed], "one, and it stays");
    assert_eq!(at(5000.0, 5100.0, 0.0202), [Kind::Recovered]);
}

#[test]
fn tests_that_wait_for_their_budget_are_judged_all_the_same() {
    let agreed = settings(json!({"quantity": "available_bps", "period_s": 300.0, "agreed": 400e6}));
    let mut detector = Detector::new(agreed);
    // Every half an hour in place of every five minutes.
    let changes = feed(&mut detector, 1800.0, (START_S, START_S + 30.0 * 1800.0), |at_s| {
        Some(if at_s < START_S + 20.0 * 1800.0 { 420e6 } else { 200e6 })
    });
    assert_eq!(kinds(&changes), [Kind::AgreedMissed]);
    assert!(changes[0].found_s <= START_S + 23.0 * 1800.0);
}

#[test]
fn a_ttl_changes_when_three_samples_agree() {
    let mut detector = Detector::new(config("ttl", 1.0));
    let mut at = |from: f64, to: f64, ttl: fn(f64) -> f64| {
        kinds(&feed(&mut detector, 1.0, (START_S + from, START_S + to), |at_s| Some(ttl(at_s))))
    };
    assert_eq!(at(0.0, 100.0, |at_s| if (at_s as u64).is_multiple_of(10) { 57.0 } else { 58.0 }), []);
    assert_eq!(at(100.0, 105.0, |_| 56.0), [Kind::Step]);
    assert_eq!(at(105.0, 110.0, |_| 58.0), [Kind::Recovered]);
}

#[test]
fn settings_that_cannot_be_are_named() {
    for (json, says) in [
        (json!({"quantity": "rtt_s", "period_s": 0}), "period_s: 0 is not a number above 0"),
        (json!({"quantity": "", "period_s": 1}), "quantity: \"\" is not a name as in rtt_s"),
        (json!({"quantity": "rtt_s", "period_s": 1, "agreed": -1}), "agreed: -1 is not a number of 0 or above"),
        (json!({"quantity": "rtt_s", "period_s": 1, "silence_samples": 0}), "silence_samples: 0 is not 1 or above"),
    ] {
        let config: Config = serde_json::from_value(json).unwrap();
        assert_eq!(config.check().unwrap_err().to_string(), says);
    }
}
