//! Each estimator on a line that is known to the ns, and what it refuses.

use crate::exact_line::Line;
use path_test::estimate::Outcome;
use path_test::registry::estimator;

fn run(line: &Line, test: &str) -> Outcome {
    let json = if test.starts_with('{') { test.to_owned() } else { format!("{{\"test\": \"{test}\"}}") };
    line.clone().run(estimator(&json).expect("a right test"))
}

fn value(outcome: &Outcome, quantity: &str) -> f64 {
    let found = outcome.estimates.iter().find(|one| one.quantity == quantity);
    let found = found.unwrap_or_else(|| panic!("{quantity} in {outcome:?}"));
    assert!(found.low <= found.value && found.value <= found.high, "{found:?}");
    found.value
}

fn assert_near(found: f64, right: f64, share: f64) {
    assert!((found / right - 1.0).abs() <= share, "{found} is not within {share} of {right}");
}

fn refusal(outcome: &Outcome, word: &str) {
    let refused = outcome.refused.as_deref().unwrap_or_else(|| panic!("not refused: {outcome:?}"));
    assert!(refused.contains(word) && outcome.estimates.is_empty(), "{refused}");
    assert!(outcome.cost.packets > 0 && outcome.cost.bytes > 0, "a refusal has its cost: {outcome:?}");
}

#[test]
fn capacity_of_an_idle_line_is_exact_at_every_rate() {
    for rate in [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 5_000_000_000, 100_000_000_000] {
        let outcome = run(&Line { skew_e9: 20_000, ..Line::new(rate) }, "capacity");
        assert_near(value(&outcome, "capacity_bps"), rate as f64, 0.01);
        let share = outcome.cost.bytes as f64 * 8.0 / (rate as f64 * outcome.cost.seconds);
        assert!(share <= 0.0101, "{rate}: {share} of the line");
    }
}

#[test]
fn coarse_stamps_are_made_up_for_by_longer_groups_or_refused() {
    let line = Line { stamp_step_ns: 1_000, ..Line::new(1_000_000_000) };
    assert_near(value(&run(&line, "capacity"), "capacity_bps"), 1e9, 0.02);
    refusal(&run(&Line { stamp_step_ns: 10_000_000, ..Line::new(1_000_000_000) }, "capacity"), "step");
}

#[test]
fn a_receiver_that_coalesces_interrupts_is_refused() {
    let line = Line { coalescing_ns: 100_000, ..Line::new(1_000_000_000) };
    refusal(&run(&line, "capacity"), "coalesce");
}

#[test]
fn a_sender_that_is_too_slow_for_pairs_is_refused() {
    let line = Line { sender_gap_ns: 10_000, ..Line::new(1_000_000_000) };
    refusal(&run(&line, "capacity"), "too slowly");
    refusal(&run(&line, "available"), "too slowly");
}

#[test]
fn a_dead_path_is_refused() {
    let line = Line { bucket: Some((1_000, 10.0, false)), ..Line::new(1_000_000_000) };
    for test in ["capacity", "available", "queue", "policer"] {
        refusal(&run(&line, test), "arrived");
    }
}

#[test]
fn all_of_an_idle_line_is_available() {
    for rate in [10_000_000, 1_000_000_000, 5_000_000_000] {
        let outcome = run(&Line { skew_e9: 20_000, ..Line::new(rate) }, "available");
        assert_near(value(&outcome, "available_bps"), rate as f64, 0.02);
        let share = outcome.cost.bytes as f64 * 8.0 / (rate as f64 * outcome.cost.seconds);
        assert!(share <= 0.011, "{rate}: {share} of the line");
    }
}

#[test]
fn available_bandwidth_that_the_own_host_spoiled_is_refused() {
    let test = r#"{"test": "available", "capacity_bps": 200000000}"#;
    let idle = Line::new(200_000_000);
    refusal(&run(&Line { stalls: (200_000, 5), ..idle.clone() }, test), "packets left late");
    refusal(&run(&Line { stalls: (500_000, 61), ..idle.clone() }, test), "packets left late");
    // A host that is late from the beginning is not measured to the end.
    let whole = run(&idle, test).cost.packets;
    let early = run(&Line { stalls: (200_000, 5), ..idle.clone() }, test).cost.packets;
    assert!(early < whole / 2, "{early} of {whole} packets");
    // Few late packets: their groups do not count.
    for every in [97, 203, 409] {
        let outcome = run(&Line { stalls: (300_000, every), ..idle.clone() }, test);
        assert_near(value(&outcome, "available_bps"), 2e8, 0.02);
    }
}

#[test]
fn the_depth_of_a_queue_is_found_or_its_bound_named() {
    for queue_bytes in [30_000, 1_000_000, 5_000_000] {
        let line = Line { queue_bytes, ..Line::new(1_000_000_000) };
        let outcome = run(&line, "queue");
        assert_near(value(&outcome, "queue_bytes"), queue_bytes as f64, 0.15);
        assert_near(value(&outcome, "queue_delay_s"), queue_bytes as f64 * 8.0 / 1e9, 0.15);
        let of_bursts = outcome.cost.bytes as f64 - 3e6;
        assert!(of_bursts < 17.0 * queue_bytes as f64, "{queue_bytes}: {of_bursts}");
    }
    let test = r#"{"test": "queue", "max_bytes": 100000}"#;
    refusal(&run(&Line { queue_bytes: 1_000_000, ..Line::new(1_000_000_000) }, test), "max_bytes");
}

#[test]
fn a_policer_behind_a_late_host_is_told_right_or_refused() {
    let policed = Line { bucket: Some((50_000_000, 65_536.0, false)), ..Line::new(200_000_000) };
    for (stall_ns, every) in
        [(5_000_000, 90), (5_000_000, 300), (20_000_000, 400), (20_000_000, 2000), (60_000_000, 700)]
    {
        let outcome = run(&Line { stalls: (stall_ns, every), ..policed.clone() }, "policer");
        println!("{stall_ns} {every}: {outcome:?}");
        if outcome.refused.is_none() {
            assert_near(value(&outcome, "policer_rate_bps"), 5e7, 0.06);
        }
    }
}

#[test]
fn a_policer_is_no_queue() {
    let line = Line { bucket: Some((200_000_000, 200_000.0, false)), ..Line::new(1_000_000_000) };
    refusal(&run(&line, "queue"), "policer");
}

#[test]
fn policer_shaper_and_plain_link_are_told_apart() {
    for shaper in [false, true] {
        let line = Line { bucket: Some((200_000_000, 500_000.0, shaper)), ..Line::new(1_000_000_000) };
        let outcome = run(&line, "policer");
        assert_near(value(&outcome, "policer_rate_bps"), 2e8, 0.03);
        assert_near(value(&outcome, "policer_burst_bytes"), 500_000.0, 0.1);
        assert_eq!(outcome.notes[0].starts_with("a shaper"), shaper, "{outcome:?}");
    }
    for queue_bytes in [15_000, u64::MAX] {
        let outcome = run(&Line { queue_bytes, ..Line::new(1_000_000_000) }, "policer");
        assert!(outcome.estimates.is_empty() && outcome.refused.is_none(), "{outcome:?}");
    }
}

#[test]
fn a_known_capacity_is_not_measured() {
    let line = Line { queue_bytes: 1_000_000, ..Line::new(1_000_000_000) };
    let told = run(&line, r#"{"test": "available", "capacity_bps": 1000000000}"#);
    assert!(told.cost.bytes < run(&line, "available").cost.bytes);
    assert_near(value(&told, "available_bps"), 1e9, 0.02);
}

#[test]
fn wrong_settings_are_named() {
    for (json, words) in [
        (r#"{"test": "speed"}"#, "test = \"speed\": must be one of capacity"),
        (r#"{"test": "capacity", "packet_bytes": 1}"#, "packet_bytes = 1: must be from 64"),
        (r#"{"test": "capacity", "share_ppm": 0}"#, "share_ppm = 0: must be"),
        (r#"{"test": "capacity", "line_rate_bps": 5}"#, "line_rate_bps = 5: must be"),
        (r#"{"test": "capacity", "pace": 5}"#, "pace"),
    ] {
        let wrong = estimator(json).err().unwrap_or_else(|| panic!("{json} is right"));
        assert!(wrong.contains(words), "{wrong}");
    }
}

#[test]
fn loss_of_a_bare_line_is_none_and_a_drained_bucket_is_seen_in_runs() {
    let test = r#"{"test": "loss", "capacity_bps": 10000000, "share_ppm": 200000, "max_bytes": 3000000}"#;
    let outcome = run(&Line::new(10_000_000), test);
    assert_eq!(value(&outcome, "loss"), 0.0);
    assert_eq!(value(&outcome, "loss_run_packets"), 1.0);
    assert_eq!(outcome.cost.packets, 2000);
    // A bucket of half of the stream's rate loses every second packet, and nothing waits.
    let policed = Line { bucket: Some((1_000_000, 15_000.0, false)), tokens: 15_000.0, ..Line::new(10_000_000) };
    let outcome = run(&policed, test);
    assert_near(value(&outcome, "line_loss"), 0.5, 0.05);
    assert_near(value(&outcome, "loss_run_packets"), 1.0, 0.05);
}
