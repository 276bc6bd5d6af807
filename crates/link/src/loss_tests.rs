//! Losses against the formulas of their models.

use super::*;

fn losses(model: LossModel, bytes: u32, packets: u64) -> Vec<u64> {
    let mut loss = Loss::new(&model, Framing::default(), 99);
    (1..=packets).filter(|_| loss.loses(bytes, || 0)).collect()
}

/// Fails when `count` of `n` is more than five standard deviations from probability `p`.
fn assert_binomial(count: usize, n: u64, p: f64, what: &str) {
    let (mean, deviation) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
    assert!((count as f64 - mean).abs() <= 5.0 * deviation, "{what}: {count} losses, {mean} +- {deviation} expected");
}

#[test]
fn independent_losses_are_binomial() {
    for (e12, n) in [(500_000_000_000, 100_000), (10_000_000_000, 1_000_000), (100_000_000, 5_000_000)] {
        let lost = losses(LossModel::Independent { probability_e12: e12 }, 1500, n);
        assert_binomial(lost.len(), n, e12 as f64 / 1e12, "independent");
    }
}

#[test]
fn distances_between_losses_are_as_of_one_drawing_per_packet() {
    let lost = losses(LossModel::Independent { probability_e12: 100_000_000_000 }, 1500, 1_000_000);
    let distances: Vec<u64> = lost.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for k in [1u64, 2, 5, 10, 20] {
        let count = distances.iter().filter(|&&d| d == k).count();
        let p = 0.1 * 0.9f64.powi(k as i32 - 1);
        assert_binomial(count, distances.len() as u64, p, &format!("distance {k}"));
    }
}

#[test]
fn certain_and_impossible_losses() {
    assert_eq!(losses(LossModel::None, 1500, 1000), []);
    assert_eq!(losses(LossModel::Independent { probability_e12: 0 }, 1500, 1000), []);
    assert_eq!(losses(LossModel::Independent { probability_e12: E12 }, 1500, 1000).len(), 1000);
    assert_eq!(losses(LossModel::BitErrorRate { probability_e18: E18 }, 40, 1000).len(), 1000);
    let ge = |loss_good_e12, loss_bad_e12, good_to_bad_e12| LossModel::GilbertElliott {
        good_to_bad_e12,
        bad_to_good_e12: E12 / 2,
        loss_good_e12,
        loss_bad_e12,
    };
    assert_eq!(losses(ge(0, 0, E12 / 2), 1500, 1000), []);
    assert_eq!(losses(ge(0, E12, 0), 1500, 1000), []);
    assert_eq!(losses(ge(E12, E12, E12 / 2), 1500, 1000).len(), 1000);
}

#[test]
fn an_absorbing_state_ends_the_search() {
    let stuck =
        LossModel::GilbertElliott { good_to_bad_e12: E12, bad_to_good_e12: 0, loss_good_e12: E12, loss_bad_e12: 0 };
    assert_eq!(losses(stuck, 1500, 1000), [], "the first packet is already in the bad state, which loses nothing");
    let stuck =
        LossModel::GilbertElliott { good_to_bad_e12: 0, bad_to_good_e12: 0, loss_good_e12: E12, loss_bad_e12: 0 };
    assert_eq!(losses(stuck, 1500, 1000).len(), 1000);
}

#[test]
fn every_nth_and_a_list_are_exact() {
    assert_eq!(losses(LossModel::EveryNth { n: 3 }, 1500, 10), [3, 6, 9]);
    assert_eq!(losses(LossModel::EveryNth { n: 1 }, 1500, 4), [1, 2, 3, 4]);
    let list = |packets: &[u64]| losses(LossModel::List { packets: packets.to_vec() }, 1500, 1000);
    assert_eq!(list(&[1, 2, 7, 500]), [1, 2, 7, 500]);
    assert_eq!(list(&[]), []);
}

#[test]
fn a_bit_error_rate_loses_by_size() {
    // 1e-6 per bit: 1500 B are lost with 1 - (1 - 1e-6)^12000 = 1.193 %, 40 B with 0.03199 %.
    for (bytes, n) in [(1500u32, 1_000_000u64), (40, 5_000_000)] {
        let lost = losses(LossModel::BitErrorRate { probability_e18: 1_000_000_000_000 }, bytes, n);
        let p = 1.0 - (1.0 - 1e-6f64).powi(bytes as i32 * 8);
        assert_binomial(lost.len(), n, p, &format!("{bytes} B"));
    }
}

#[test]
fn mixed_sizes_are_lost_each_by_its_own_size() {
    let mut loss = Loss::new(&LossModel::BitErrorRate { probability_e18: 10_000_000_000_000 }, Framing::default(), 5);
    let (mut large, mut small) = (0, 0);
    for _ in 0..500_000 {
        large += usize::from(loss.loses(1500, || 0));
        small += usize::from(loss.loses(100, || 0));
    }
    assert_binomial(large, 500_000, 1.0 - (1.0 - 1e-5f64).powi(12_000), "1500 B");
    assert_binomial(small, 500_000, 1.0 - (1.0 - 1e-5f64).powi(800), "100 B");
}

#[test]
fn bursts_of_gilbert_elliott_have_their_length_and_share() {
    // Bad 1 in 1000 packets, for 10 packets each: share 0.001 / (0.001 + 0.1).
    let n = 5_000_000;
    let model = LossModel::GilbertElliott {
        good_to_bad_e12: E12 / 1000,
        bad_to_good_e12: E12 / 10,
        loss_good_e12: 0,
        loss_bad_e12: E12,
    };
    let lost = losses(model, 1500, n);
    let bursts = 1 + lost.windows(2).filter(|pair| pair[1] > pair[0] + 1).count();
    let mean = lost.len() as f64 / bursts as f64;
    // Deviation of a burst is about 10: 5 of them over the root of about 5000 bursts.
    assert!((mean - 10.0).abs() < 0.75, "mean burst {mean}");
    let share = lost.len() as f64 / n as f64;
    assert!((share - 0.001 / 0.101).abs() < 0.0008, "share {share}");
}

#[test]
fn runs_have_one_length_and_begin_at_random() {
    let (n, length) = (5_000_000u64, 17);
    let lost = losses(LossModel::Runs { begins_e12: E12 / 1000, length }, 1500, n);
    // Runs that touch make one of a multiple of the length; the last may reach beyond the end.
    let mut runs = vec![1u64];
    for pair in lost.windows(2) {
        match pair[1] - pair[0] {
            1 => *runs.last_mut().unwrap() += 1,
            _ => runs.push(1),
        }
    }
    runs.pop();
    assert!(runs.iter().all(|run| run % length == 0), "{runs:?}");
    // Between two runs 999 packets pass on average.
    assert_binomial(lost.len() / length as usize, n, 1.0 / (999.0 + length as f64), "runs");
    assert_eq!(losses(LossModel::Runs { begins_e12: 0, length }, 1500, 1000), []);
    assert_eq!(losses(LossModel::Runs { begins_e12: E12, length }, 1500, 1000).len(), 1000);
}

#[test]
fn a_run_of_one_packet_is_an_independent_loss() {
    let n = 1_000_000;
    assert_binomial(losses(LossModel::Runs { begins_e12: E12 / 100, length: 1 }, 1500, n).len(), n, 0.01, "length 1");
}

#[test]
fn both_states_of_gilbert_elliott_lose_at_their_own_rate() {
    // Half of the time in each state: 0.2 % and 5 % give 2.6 %.
    let n = 2_000_000;
    let model = LossModel::GilbertElliott {
        good_to_bad_e12: E12 / 50,
        bad_to_good_e12: E12 / 50,
        loss_good_e12: E12 / 500,
        loss_bad_e12: E12 / 20,
    };
    let share = losses(model, 1500, n).len() as f64 / n as f64;
    assert!((share - 0.026).abs() < 0.0015, "share {share}");
}

#[test]
fn a_new_model_counts_from_its_first_packet() {
    let mut loss = Loss::new(&LossModel::EveryNth { n: 10 }, Framing::default(), 1);
    assert!(!(0..5).any(|_| loss.loses(1500, || 0)));
    loss.replace(&LossModel::EveryNth { n: 3 });
    let pattern: Vec<bool> = (0..6).map(|_| loss.loses(1500, || 0)).collect();
    assert_eq!(pattern, [false, false, true, false, false, true]);
}

fn bursts(good_to_bad_e18: u64, bad_to_good_e18: u64, error_bad_e18: u64) -> LossModel {
    LossModel::BitErrorBursts { good_to_bad_e18, bad_to_good_e18, error_bad_e18 }
}

#[test]
fn bursts_of_one_bit_lose_as_many_frames_as_independent_errors() {
    // A burst ends with its bit, so that p = 1e-6 per bit in both; a frame of 1000 B has 8000.
    let n = 1_000_000;
    let lost = losses(bursts(E18 / 1_000_000, E18, E18), 1000, n);
    assert_binomial(lost.len(), n, 1.0 - (1.0 - 1e-6f64).powi(8000), "bursts of one bit");
}

#[test]
fn a_burst_of_bit_errors_reaches_over_frames() {
    // Bursts of 40,000 bits on average, in which every second bit is wrong: 5 frames of 1000 B.
    let n = 2_000_000u64;
    let lost = losses(bursts(E18 / 100_000_000, E18 / 40_000, E18 / 2), 1000, n);
    // Of exponential length L and random place, a burst touches 1 + L / 8000 frames: 6 on average.
    let bursts = 1 + lost.windows(2).filter(|pair| pair[1] - pair[0] > 3).count();
    let frames = lost.len() as f64 / bursts as f64;
    assert!((5.0..7.0).contains(&frames), "{frames} frames per burst, {bursts} bursts");
    // Without overlap there are n * 8000 / (1e8 + 4e4) of them: 160.
    assert!((100..220).contains(&bursts), "{bursts}");
}

#[test]
fn bursts_without_error_lose_nothing_and_ones_without_end_all() {
    assert_eq!(losses(bursts(E18, E18 / 2, 0), 1500, 1000), []);
    assert_eq!(losses(bursts(0, E18, E18), 1500, 1000), []);
    assert_eq!(losses(bursts(E18, 1, E18), 1500, 1000).len(), 1000);
}

#[test]
fn bit_errors_hit_the_bits_of_the_frame() {
    // An IP packet of 46 B makes 64 B of frame; what lies between frames does not count.
    let ethernet = Framing { header_bytes: 18, min_frame_bytes: 64, gap_bytes: 20 };
    let mut loss = Loss::new(&LossModel::BitErrorRate { probability_e18: E18 / 10_000 }, ethernet, 4);
    let n = 200_000;
    let lost = (0..n).filter(|_| loss.loses(40, || 0)).count();
    assert_binomial(lost, n, 1.0 - (1.0 - 1e-4f64).powi(64 * 8), "a padded frame");
}
