//! Extrapolation of a whole copy from its steady part.

use super::interval::bottleneck;
use crate::copy_study::{CopyResult, Refused, Steady};
use crate::counters::{MeasuredFlow, MeasuredRun};
use crate::metric::{Metric, Metrics};
use crate::validate::{copied_bytes, copied_flows};
use spec::RunSpec;
use units::Time;

/// Adds the extrapolated values to the metrics of the copy, and returns the method, or the reason that there are none
/// and the bounds of both. All other metrics stay those of the part that was simulated.
pub fn apply(spec: &RunSpec, measured: &MeasuredRun, found: &CopyResult, all: &mut [&mut Metrics]) -> Metrics {
    let bytes = copied_bytes(spec).unwrap_or(0);
    let received: u64 = measured.flows[copied_flows(spec)].iter().map(|flow| flow.counters.received_bytes).sum();
    let mut how = Metrics::from([
        ("bytes", Metric::Integer(bytes)),
        ("simulated_bytes", Metric::Integer(received)),
        ("simulated_s", Metric::Real(measured.end.as_secs_f64())),
    ]);
    let part = Part::of(found);
    let whole = Whole::of(spec, measured, &part, bytes);
    insert_rates(&mut how, &part);
    match found {
        CopyResult::Refused(refused) => {
            for metrics in all {
                whole.insert_bounds(metrics);
            }
            whole.insert_bounds(&mut how);
            how.insert("refused", Metric::Text(refused.why.clone()));
            how.insert("second_half_bps", Metric::Real(8.0 * refused.half_bytes_per_s));
            how.insert("episodes", Metric::Integer(refused.episodes));
        }
        CopyResult::Steady(steady) => {
            for metrics in all {
                whole.insert(metrics);
                metrics.insert("line_share", Metric::Real(whole.goodput_bps / line_bps(spec)));
            }
            whole.insert(&mut how);
            how.insert("steady_from_s", Metric::Real(steady.from.as_secs_f64()));
            how.insert("batches", Metric::Integer(steady.batches as u64));
            how.insert("batch_s", Metric::Real(steady.batch.as_secs_f64()));
            how.insert("episodes", Metric::Integer(steady.episodes));
        }
    }
    how
}

/// Inserts the goodput of the rest: expected, lowest, highest.
fn insert_rates(how: &mut Metrics, part: &Part) {
    for (name, rate) in ["rest_bps", "rest_low_bps", "rest_high_bps"].into_iter().zip(part.rates) {
        how.insert(name, Metric::Real(8.0 * rate));
    }
}

/// The simulated part of a copy, and the goodput of its rest.
struct Part {
    until: Time,
    received_bytes: u64,
    /// Expected, lowest and highest, bytes per s.
    rates: [f64; 3],
}

impl Part {
    fn of(found: &CopyResult) -> Part {
        match *found {
            CopyResult::Steady(Steady { until, received_bytes, half_width, bytes_per_s, .. }) => {
                let rates = [1.0, 1.0 - half_width, 1.0 + half_width].map(|part| part * bytes_per_s);
                Part { until, received_bytes, rates }
            }
            CopyResult::Refused(Refused { until, received_bytes, bytes_per_s, half_bytes_per_s, .. }) => {
                let [low, high] = bytes_per_s;
                Part { until, received_bytes, rates: [half_bytes_per_s.clamp(low, high), low, high] }
            }
        }
    }
}

fn line_bps(spec: &RunSpec) -> f64 {
    spec.links[bottleneck(spec, &spec.flows[0])].rate_bps as f64
}

/// A copy from its start to its end, or to the end of the run.
struct Whole {
    goodput_bps: f64,
    goodput_low_bps: f64,
    goodput_high_bps: f64,
    /// Time to its end: expected, and the ends of the 95 % interval; None: the run ends before.
    completion_s: Option<[f64; 3]>,
    /// Bytes at the end of the run, where that comes first.
    delivered_bytes: u64,
}

impl Whole {
    fn of(spec: &RunSpec, measured: &MeasuredRun, part: &Part, bytes: u64) -> Whole {
        let copied = copied_flows(spec);
        let start = spec.flows[copied.clone()].iter().map(|flow| flow.start_ns).min().unwrap_or(0);
        let from = Time(start.max(spec.measure.warmup_ns));
        let before = measured.flows[copied].iter().map(|flow: &MeasuredFlow| flow.received_at_warmup).sum::<u64>();
        let left = bytes.saturating_sub(part.received_bytes) as f64;
        let runs_on = Time(spec.duration_ns).since(part.until).as_secs_f64();
        let since = |time: Time, begin: Time| time.since(begin).as_secs_f64();
        let [expected, lowest, highest] = part.rates;
        // The faster, the sooner it ends.
        let rates = [expected, highest, lowest];
        let ahead = rates.map(|rate| left / rate.max(1.0));
        let in_time = ahead[0] <= runs_on;
        let goodput = |rate: f64, ahead: f64| {
            let ahead = ahead.min(runs_on);
            ((part.received_bytes - before) as f64 + rate * ahead) * 8.0 / (since(part.until, from) + ahead)
        };
        let goodputs = [0, 1, 2].map(|i| goodput(rates[i], ahead[i]));
        Whole {
            goodput_bps: goodputs[0],
            goodput_low_bps: goodputs[2],
            goodput_high_bps: goodputs[1],
            completion_s: in_time.then(|| ahead.map(|ahead| since(part.until, Time(start)) + ahead)),
            delivered_bytes: part.received_bytes + (rates[0] * ahead[0].min(runs_on)) as u64,
        }
    }

    fn insert(&self, metrics: &mut Metrics) {
        self.insert_bounds(metrics);
        metrics.insert("goodput_bps", Metric::Real(self.goodput_bps));
        metrics.insert("expected_bytes", Metric::Integer(self.delivered_bytes));
        if let Some([expected, ..]) = self.completion_s {
            metrics.insert("completion_s", Metric::Real(expected));
        }
    }

    fn insert_bounds(&self, metrics: &mut Metrics) {
        metrics.insert("goodput_low_bps", Metric::Real(self.goodput_low_bps));
        metrics.insert("goodput_high_bps", Metric::Real(self.goodput_high_bps));
        if let Some([_, soonest, latest]) = self.completion_s {
            metrics.insert("completion_low_s", Metric::Real(soonest));
            metrics.insert("completion_high_s", Metric::Real(latest));
        }
    }
}
