//! The distance of two distributions of times.

/// The demerit figure of Ruemmler and Wilkes (IEEE Computer, March 1994): root mean square of the horizontal distance
/// between the distribution curves, ns. Both are sorted here; they must be as long.
///
/// # Panics
/// When one is empty or they are not as long.
pub fn demerit_ns(simulated: &mut [u64], measured: &mut [u64]) -> u64 {
    assert!(
        !simulated.is_empty() && simulated.len() == measured.len(),
        "two distributions of the same number of times"
    );
    simulated.sort_unstable();
    measured.sort_unstable();
    let square = |(a, b): (&u64, &u64)| u128::from(a.abs_diff(*b)).pow(2);
    let sum: u128 = simulated.iter().zip(measured.iter()).map(square).sum();
    root(sum / simulated.len() as u128)
}

/// The same as DiskSim's program `rms` computes it: both distributions are first counted in classes of 1 us and, above
/// 0.1 ms, of 1 % more (of 0.1 ms it is 2 us, of 0.2 ms 3 us, and so on), joined by straight lines, and compared at
/// 10,000 heights. ns.
///
/// # Panics
/// When one is empty.
pub fn disksim_rms_ns(simulated: &mut [u64], measured: &mut [u64]) -> u64 {
    assert!(!simulated.is_empty() && !measured.is_empty(), "two distributions");
    simulated.sort_unstable();
    measured.sort_unstable();
    let most = simulated.last().max(measured.last()).copied().unwrap_or(0);
    let mut edges = vec![0];
    while *edges.last().unwrap_or(&0) < most {
        let us = edges.last().unwrap_or(&0) / 1000;
        edges.push((us + us / 100 + 1) * 1000);
    }
    const HEIGHTS: u128 = 10_000;
    let sum: u128 = (1..=HEIGHTS)
        .map(|height| {
            at_height(&edges, simulated, height, HEIGHTS).abs_diff(at_height(&edges, measured, height, HEIGHTS))
        })
        .map(|apart| u128::from(apart).pow(2))
        .sum();
    root(sum / HEIGHTS)
}

/// Returns the time at which the curve of classes reaches `height` of `of`, ns.
fn at_height(edges: &[u64], sorted: &[u64], height: u128, of: u128) -> u64 {
    let count = |edge: u64| sorted.partition_point(|&time| time <= edge) as u128;
    let wanted = height * sorted.len() as u128;
    let upper = edges.partition_point(|&edge| count(edge) * of < wanted).clamp(1, edges.len() - 1);
    let (low, high) = (count(edges[upper - 1]) * of, count(edges[upper]) * of);
    let width = u128::from(edges[upper] - edges[upper - 1]);
    let part = (wanted.saturating_sub(low) * width).checked_div(high - low).unwrap_or(0);
    edges[upper - 1] + part as u64
}

fn root(square: u128) -> u64 {
    // Newton's way from above; times are below 2^64 ns.
    let mut root = square;
    loop {
        let next = (root + square.checked_div(root).unwrap_or(0)) / 2;
        if next >= root {
            return root as u64;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_that_between_equal_heights() {
        let measured = || vec![1_000_000, 2_000_000, 3_000_000, 4_000_000];
        assert_eq!(demerit_ns(&mut [4_000_000, 3_000_000, 2_000_000, 1_000_000], &mut measured()), 0);
        assert_eq!(demerit_ns(&mut [1_300_000, 2_300_000, 3_300_000, 4_300_000], &mut measured()), 300_000);
        assert_eq!(demerit_ns(&mut [1_000_000, 2_000_000, 3_000_000, 6_000_000], &mut measured()), 1_000_000);
    }

    #[test]
    fn classes_change_little_where_there_are_many_times() {
        let times = |more: u64| (0..10_000u64).map(|i| 500_000 + i * i % 9_999_991 + more).collect::<Vec<_>>();
        let exact = demerit_ns(&mut times(200_000), &mut times(0));
        let classes = disksim_rms_ns(&mut times(200_000), &mut times(0));
        assert_eq!(exact, 200_000);
        assert!(classes.abs_diff(exact) < 4_000, "{classes}");
    }
}
