//! Horizons and single events give the same, whatever the run and the number of workers.

use crate::common::engines::compare;
use crate::common::random_runs::random_run;

/// Runs of the suite; `make soak` makes others.
const RUNS: u64 = 100;

#[test]
fn both_engines_give_the_same_of_runs_at_random() {
    let (mut with_horizons, mut shared, mut refused) = (0, 0, vec![]);
    for seed in 0..RUNS {
        match compare(&random_run(seed)) {
            Ok(found) => {
                with_horizons += u64::from(found.without_horizons.is_none());
                shared += u64::from(found.is_shared);
                assert!(found.differences.is_empty(), "seed {seed}: {:#?}", found.differences);
            }
            Err(error) => refused.push(format!("seed {seed}: {error}")),
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(with_horizons >= RUNS / 3, "{with_horizons} of {RUNS} runs have horizons");
    assert!(shared >= RUNS / 10, "several workers share {shared} of {RUNS} runs");
}
