//! Arrival times of short flows, and their sizes.

use crate::active::Active;
use link::random::{stream_seed, Random};
use spec::{RunSpec, ShortFlowsSpec, SizesSpec};
use te::traffic_model::{exponential, Distribution};
use units::Time;

/// Returns the start time of each flow of `entry`.
pub fn arrivals(run: &RunSpec, entry: &ShortFlowsSpec) -> impl Iterator<Item = Time> {
    let mut arrivals = stream(run, entry, "arrivals");
    let gap_ns = 1e12 / entry.arrivals_per_ks as f64;
    let end = Time(entry.stop_ns.unwrap_or(run.duration_ns).min(run.duration_ns));
    let active = Active::new(entry.active, Time(entry.start_ns));
    let mut active_ns = 0u64;
    std::iter::from_fn(move || {
        active_ns = active_ns.saturating_add(exponential(gap_ns, &mut arrivals) as u64);
        let next = active.at(active_ns);
        (next < end).then_some(next)
    })
}

/// The random stream of `what` of an entry.
pub fn stream(run: &RunSpec, entry: &ShortFlowsSpec, what: &str) -> Random {
    // The streams keep the name that they had in 0.1.0: its runs are repeated to the byte.
    Random::new(stream_seed(run.seed, &format!("crowd/{}/{what}", entry.name)))
}

/// The distribution of `spec`; None: it is none.
pub fn distribution(spec: &SizesSpec) -> Option<Distribution> {
    Some(match *spec {
        SizesSpec::Pareto { pareto_shape_e3, min_bytes, max_bytes } => {
            if pareto_shape_e3 == 0 || min_bytes == 0 || min_bytes >= max_bytes {
                return None;
            }
            let (least, most) = (min_bytes as f64, max_bytes as f64);
            Distribution::Pareto { shape: f64::from(pareto_shape_e3) / 1e3, min: least, max: most }
        }
        SizesSpec::Lognormal { median_bytes, sigma_e3 } => {
            if median_bytes == 0 || sigma_e3 == 0 {
                return None;
            }
            Distribution::Lognormal { median: median_bytes as f64, sigma: f64::from(sigma_e3) / 1e3 }
        }
    })
}
