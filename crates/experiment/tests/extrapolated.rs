//! Long copies of which a part is simulated: the extrapolation agrees with the whole, and a refusal gives its reason.

use crate::common::*;
use experiment::{Metric, Metrics, Outcome};
use serde_json::{json, Value};

fn copy(bytes: u64) -> Value {
    json!({"kind": "bulk", "bytes": bytes})
}

/// 100 Mbit/s and 20 ms with one packet in 1000 lost: some 26 round trips from one loss to the next.
fn lossy(seed: u64, bytes: u64, congestion: &str) -> Dumbbell {
    let loss = json!({"kind": "independent", "probability_e12": 1_000_000_000u64});
    let run =
        Dumbbell { seed, loss, duration_ns: 100_000 * S, stop_when_done: true, ..Dumbbell::new(100_000_000, 20 * MS) };
    run.flow("copy", transport(congestion, json!({})), copy(bytes))
}

fn simulate(run: &Dumbbell, least_episodes: u64, most_packets: u64) -> Outcome {
    let mut spec = run.spec();
    spec.extrapolate = serde_json::from_value(json!({
        "from_ns": 0, "interval_ns": run.rtt_ns, "first_packets": 20_000, "most_packets": most_packets,
        "least_episodes": least_episodes, "error_ppm": 50_000,
    }))
    .unwrap();
    experiment::simulate(&spec, &mut |_| std::ops::ControlFlow::Continue(())).expect("the run ends")
}

fn number(metrics: &Metrics, name: &str) -> f64 {
    match metrics.get(name) {
        Some(Metric::Real(value)) => *value,
        Some(Metric::Integer(value)) => *value as f64,
        other => panic!("{name} is {other:?}"),
    }
}

fn refusal(outcome: &Outcome) -> &str {
    match outcome.extrapolation.as_ref().expect("it was looked at").get("refused") {
        Some(Metric::Text(why)) => why,
        other => panic!("refused is {other:?}"),
    }
}

#[test]
fn the_band_holds_what_the_whole_copy_takes() {
    let (mut held, mut found) = (0, 0);
    for seed in 1..=8 {
        let run = lossy(seed, 2_500_000_000, "reno");
        let exact = real(&run.run(), "completion_s");
        let outcome = simulate(&run, 30, 600_000);
        let how = outcome.extrapolation.as_ref().expect("it was looked at");
        if how.contains_key("refused") {
            continue;
        }
        found += 1;
        let [low, expected, high] =
            ["completion_low_s", "completion_s", "completion_high_s"].map(|n| real(&outcome, n));
        assert!(low < expected && expected < high && (expected / exact - 1.0).abs() < 0.1, "{expected} s, {exact} s");
        held += u32::from(low <= exact && exact <= high);
        assert!(number(how, "simulated_bytes") < 0.4 * number(how, "bytes"));
        let goodput = real(&outcome, "goodput_bps");
        assert!((goodput - 2.5e9 * 8.0 / expected).abs() < 1e-6 * goodput);
        assert_eq!(goodput, number(&outcome.flows[0], "goodput_bps"));
        assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    }
    // 19 in 20 are expected, and a series that looks as if it had not settled is one in 20 at most.
    assert!(found >= 7 && held >= found - 1, "{held} of {found}");
}

#[test]
fn a_copy_over_several_connections_is_extrapolated_as_one() {
    let mut run = lossy(3, 4_000_000_000, "cubic");
    let one = run.flows.remove(0);
    for number in 1..=4 {
        let mut flow = one.clone();
        flow["name"] = json!(format!("copy.{number}"));
        flow["distribution"] = json!("striped");
        run.flows.push(flow);
    }
    let exact = real(&run.run(), "completion_s");
    let outcome = simulate(&run, 30, 1_000_000);
    let expected = real(&outcome, "completion_s");
    assert!((expected / exact - 1.0).abs() < 0.03, "{expected}, {exact}");
    assert_eq!(number(&outcome.entries[0], "completion_s"), expected);
    assert!(outcome.flows.iter().all(|flow| !flow.contains_key("completion_high_s")), "not of a connection");
}

#[test]
fn a_window_that_limits_is_steady_without_any_loss() {
    let run = Dumbbell { duration_ns: 100_000 * S, stop_when_done: true, ..Dumbbell::new(1_000_000_000, 20 * MS) };
    let run = run.flow("copy", transport("cubic", json!({"window_bytes": 500_000})), copy(4_000_000_000));
    let exact = real(&run.run(), "completion_s");
    let outcome = simulate(&run, 5, 1_000_000);
    let expected = real(&outcome, "completion_s");
    assert!((expected / exact - 1.0).abs() < 1e-3, "{expected}, {exact}");
    assert!(number(outcome.extrapolation.as_ref().unwrap(), "simulated_bytes") < 100e6);
}

#[test]
fn a_window_that_still_grows_before_the_first_loss_is_not_taken_for_steady() {
    // The line is full, so that the goodput stands; the queue, and the window with it, grows to its first loss later.
    let queue = json!({"kind": "drop_tail", "limit_bytes": 1u64 << 40, "limit_packets": null});
    let run = Dumbbell { queue, duration_ns: 100_000 * S, stop_when_done: true, ..Dumbbell::new(100_000_000, 20 * MS) };
    let run = run.flow("copy", transport("reno", json!({"initial_ssthresh": 300})), copy(4_000_000_000));
    let outcome = simulate(&run, 5, 200_000);
    assert_eq!(refusal(&outcome), "nothing was lost yet, and its window was still changing");
    assert!(!outcome.metrics.contains_key("completion_s"));
}

#[test]
fn too_few_losses_are_said_and_nothing_is_made_up() {
    let run = lossy(1, 4_000_000_000, "reno");
    let outcome = simulate(&run, 30, 20_000);
    let why = refusal(&outcome);
    assert!(why.starts_with("only ") && why.ends_with("loss episodes were seen, 30 are wanted"), "{why}");
    assert!(!outcome.metrics.contains_key("completion_s"));
    // Between the line's payload and what Reno has left at some three times the loss (Mathis et al. 1997).
    let [low, high] = ["completion_low_s", "completion_high_s"].map(|name| real(&outcome, name));
    let line_s = 4e9 * 8.0 / (100e6 * 1448.0 / 1500.0);
    let reno_s = |loss: f64| 4e9 * 8.0 * 0.02 / ((1.5 / loss).sqrt() * 1448.0 * 8.0);
    assert!((low / line_s - 1.0).abs() < 0.02, "{low} s, {line_s} s");
    // Several losses may be of one episode, which halves the window once.
    assert!((0.95 * reno_s(1e-3)..reno_s(4e-3)).contains(&high), "{high} s, {} s", reno_s(1e-3));
    let tenth_s = real(&lossy(1, 400_000_000, "reno").run(), "completion_s");
    assert!((low..=high).contains(&(10.0 * tenth_s)), "{tenth_s} s for a tenth, {low} to {high} s");
    let how = outcome.extrapolation.as_ref().unwrap();
    assert!((20_000.0 * 1448.0..21_000.0 * 1448.0).contains(&number(how, "simulated_bytes")), "{how:?}");
    // No loss where some would come is no steadiness either.
    let rare = json!({"kind": "bit_error_rate", "probability_e18": 1});
    let outcome = simulate(&Dumbbell { loss: rare, ..run }, 30, 40_000);
    assert!(outcome.extrapolation.is_some_and(|how| how.contains_key("refused")));
}

#[test]
fn a_copy_that_ends_sooner_is_simulated_to_its_end() {
    let run = lossy(2, 30_000_000, "reno");
    let (exact, outcome) = (run.run(), simulate(&run, 30, 1_000_000));
    assert!(outcome.extrapolation.is_none());
    assert_eq!(
        exact.metrics,
        Metrics::from_iter(outcome.metrics.into_iter().map(|(name, value)| match name {
            // The observer's own.
            "events" => (name, exact.metrics["events"].clone()),
            _ => (name, value),
        }))
    );
}

#[test]
fn a_run_that_ends_before_the_copy_says_how_far_it_would_come() {
    let run = Dumbbell { duration_ns: 600 * S, ..lossy(4, 100_000_000_000, "reno") };
    let outcome = simulate(&run, 30, 1_000_000);
    assert!(!outcome.metrics.contains_key("completion_s"));
    let expected = number(outcome.extrapolation.as_ref().unwrap(), "expected_bytes");
    assert!((expected * 8.0 / 600.0 / real(&outcome, "goodput_bps") - 1.0).abs() < 1e-6, "{expected}");
}

#[test]
fn a_copy_beside_others_is_extrapolated_from_its_own_packets() {
    // Both have half of a queue's line: 100 Mbit/s, and a queue that holds two round trips.
    let queue = json!({"kind": "drop_tail", "limit_bytes": 500_000, "limit_packets": null});
    let run = Dumbbell { queue, duration_ns: 100_000 * S, ..Dumbbell::new(100_000_000, 20 * MS) };
    let run = run.flow("copy", transport("cubic", json!({})), copy(20_000_000_000));
    let run = run.flow("other", transport("cubic", json!({})), bulk());
    let outcome = simulate(&run, 10, 400_000);
    let how = outcome.extrapolation.as_ref().expect("it was looked at");
    assert_eq!(number(how, "bytes"), 20e9);
    let other = number(&outcome.flows[1], "delivered_bytes");
    assert!(number(how, "simulated_bytes") < 1.1 * 400_000.0 * 1448.0, "{how:?}");
    assert!(other > 100e6 && !outcome.flows[1].contains_key("completion_s"));
    let rest = number(how, "rest_bps");
    assert!((20e6..80e6).contains(&rest), "{rest}");
    // The run's own goodput is that of both.
    assert!(real(&outcome, "goodput_bps") > 85e6 && !outcome.metrics.contains_key("completion_s"));
}

#[test]
fn a_copy_at_its_pacing_rate_is_steady_however_few_losses_there_were() {
    let queue = json!({"kind": "drop_tail", "limit_bytes": 20_000, "limit_packets": null});
    let run = Dumbbell { queue, duration_ns: 100_000 * S, ..Dumbbell::new(100_000_000, 20 * MS) };
    let run = run.flow("copy", transport("cubic", json!({"max_pacing_bps": 40_000_000})), copy(20_000_000_000));
    let outcome = simulate(&run, 30, 400_000);
    let expected = real(&outcome, "completion_s");
    assert!((expected / (20e9 * 8.0 / 40e6) - 1.0).abs() < 0.01, "{expected}");
}

#[test]
fn what_is_no_single_copy_is_refused() {
    for run in [
        lossy(1, 1_000_000, "reno").flow("other", transport("reno", json!({})), copy(1_000_000)),
        Dumbbell::new(100_000_000, 20 * MS).flow("f", transport("reno", json!({})), bulk()),
    ] {
        let mut spec = run.spec();
        spec.extrapolate = serde_json::from_value(json!({"from_ns": 0, "interval_ns": 1, "first_packets": 1,
            "most_packets": 1, "least_episodes": 1, "error_ppm": 1}))
        .unwrap();
        let error = experiment::simulate(&spec, &mut |_| std::ops::ControlFlow::Continue(()))
            .expect_err("it is refused")
            .to_string();
        assert!(error.contains("extrapolate: "), "{error}");
    }
}
