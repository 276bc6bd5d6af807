//! Metrics of copies of files: of files, and of jobs where a flow has several.

use crate::metric::{insert_distribution, insert_quantiles, Metric, Metrics};
use crate::workload::{FileCopy, Stripe};
use spec::{CopySpec, RunSpec, WorkloadSpec};
use units::{Histogram, Span, Time};

/// The copies of a run or of one of its flows, summed up.
#[derive(Default)]
pub struct Copied {
    file_times: Histogram,
    job_times: Histogram,
    /// Sum of the times of the jobs that ended.
    taken: Span,
    /// Data of files that are whole at the far side, bytes.
    bytes: u64,
    has_several_jobs: bool,
    is_finished: bool,
    is_empty: bool,
}

impl Copied {
    pub fn new() -> Copied {
        Copied { is_finished: true, is_empty: true, ..Copied::default() }
    }

    /// Adds the copies of `stripe`.
    pub fn add(&mut self, run: &RunSpec, stripe: &Stripe, files: &FileCopy) {
        self.is_empty = false;
        self.file_times.merge(&files.file_times.measured);
        self.bytes += files.done().1;
        self.has_several_jobs |= files.jobs() > 1;
        for taken in times(run, stripe, files) {
            let Some(taken) = taken else {
                self.is_finished = false;
                continue;
            };
            self.job_times.record(taken.0);
            self.taken = self.taken + taken;
        }
    }

    pub fn insert(&self, metrics: &mut Metrics) {
        if self.is_empty {
            return;
        }
        insert_distribution(
            metrics,
            &self.file_times,
            ["file_time_mean_s", "file_time_p50_s", "file_time_p99_s", "file_time_max_s"],
        );
        insert_quantiles(metrics, "file_time_quantiles_s", &self.file_times);
        if self.has_several_jobs {
            insert_distribution(metrics, &self.job_times, ["job_mean_s", "job_p50_s", "job_p99_s", "job_max_s"]);
        }
        if self.is_finished && self.taken > Span::ZERO {
            let goodput = self.bytes as f64 * 8.0 / self.taken.as_secs_f64();
            metrics.insert("file_goodput_bps", Metric::Real(goodput));
        }
    }
}

/// From the opening of each job's first connection to its end; None: it did not end.
fn times<'a>(run: &'a RunSpec, stripe: &'a Stripe, files: &'a FileCopy) -> impl Iterator<Item = Option<Span>> + 'a {
    files.finished().enumerate().map(|(job, finished)| finished.map(|at| at.since(start_of(run, stripe, files, job))))
}

fn start_of(run: &RunSpec, stripe: &Stripe, files: &FileCopy, job: usize) -> Time {
    let lanes = files.lanes_of(job);
    let flows = &run.flows[stripe.first + lanes.start..stripe.first + lanes.end];
    Time(flows.iter().map(|flow| flow.start_ns).min().unwrap_or(0))
}

/// Inserts what a flow's copies came to, and a note where some did not end.
pub fn insert_files(metrics: &mut Metrics, run: &RunSpec, stripe: &Stripe, name: &str, is_cut: bool) -> Option<String> {
    let files = stripe.file_copy()?;
    let WorkloadSpec::Copy(spec) = &run.flows[stripe.first].workload else { return None };
    let (count, bytes) = files.done();
    metrics.insert("files", Metric::Integer(count));
    metrics.insert("file_bytes", Metric::Integer(bytes));
    if files.jobs() > 1 {
        let ended = files.finished().flatten().count() as u64;
        metrics.insert("jobs", Metric::Integer(ended));
        metrics.insert("late_jobs", Metric::Integer(late(run, stripe, files)));
    }
    let mut copied = Copied::new();
    copied.add(run, stripe, files);
    copied.insert(metrics);
    if files.jobs() == 1 {
        if let Some(taken) = times(run, stripe, files).next().flatten() {
            metrics.insert("completion_s", Metric::Real(taken.as_secs_f64()));
        }
    }
    let all = wanted(spec);
    (count < all && !is_cut).then(|| format!("flow {name}: {count} of {all} files were whole at the end"))
}

fn wanted(spec: &CopySpec) -> u64 {
    spec.count().saturating_mul(spec.jobs.into())
}

/// Jobs that had not ended when the next one began.
fn late(run: &RunSpec, stripe: &Stripe, files: &FileCopy) -> u64 {
    let ends: Vec<_> = files.finished().collect();
    let is_late = |job: &usize| ends[job - 1].is_none_or(|end| end > start_of(run, stripe, files, *job));
    (1..ends.len()).filter(is_late).count() as u64
}

/// The end of the one job of `stripe`, where it has no more and that one ended.
pub fn end_of(stripe: &Stripe) -> Option<Time> {
    let files = stripe.file_copy().filter(|files| files.jobs() == 1)?;
    files.finished().next().flatten()
}
