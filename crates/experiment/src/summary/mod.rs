//! Metrics of a run. Names carry units; what does not apply is absent, never zero.

mod extrapolation;
mod fc;
mod fcp;
mod files;
mod flow;
mod interval;
mod messages;
mod network;
mod requests;
mod run;
mod stripe;
mod voice;
mod windows;

pub use interval::bottleneck;

use crate::counters::{MeasuredRun, WindowReduction};
use crate::manager::ManagerOutcome;
use crate::metric::{Metric, Metrics};
use crate::sender_command::MoveId;
use crate::series::{FlowSeries, LinkSeries};
use crate::validate::copied_flows;
use spec::RunSpec;
use units::{Span, Time};

/// Everything a run gives back.
#[derive(Debug)]
pub struct Outcome {
    /// Of the whole run.
    pub metrics: Metrics,
    /// CPU time that threads other than the caller's spent on the run, the time in which they waited for another one by
    /// looking included.
    pub other_threads_cpu: Span,
    /// Of each connection, in the order of the spec.
    pub flows: Vec<Metrics>,
    /// Of each workload that several connections share.
    pub entries: Vec<Metrics>,
    /// Of each link, in the order of the spec.
    pub links: Vec<Metrics>,
    /// Of each background source.
    pub background: Vec<Metrics>,
    /// Of each entry of short flows.
    pub short_flows: Vec<Metrics>,
    /// Outcome of the manager, if there is one.
    pub managed: Option<ManagerOutcome>,
    /// Extrapolation of a copy, or the reason that there is none.
    pub extrapolation: Option<Metrics>,
    /// Notes that a reader of the metrics needs.
    pub notes: Vec<String>,
    /// Time of each event, s since the run began; None: it did not happen.
    pub event_times_s: Vec<Option<f64>>,
    /// Of each window of the measurement: of the run, then of each connection, which has its name under `flow`.
    pub windows: Vec<Metrics>,
    /// Of each sender that got a command to reduce its window.
    pub window_reductions: Vec<Metrics>,
    /// Empty unless asked for.
    pub flow_series: FlowSeries,
    /// Empty unless asked for.
    pub link_series: LinkSeries,
}

/// Sums up a finished run. Counters and rates are those of the run proper; lag and drain tell of what came after as
/// well.
///
/// # Panics
/// When `measured` is of another spec: flows, links and background sources must be as many as the spec has.
pub fn summarize(spec: &RunSpec, measured: MeasuredRun) -> Outcome {
    assert_eq!(
        (measured.flows.len(), measured.network.links.len(), measured.network.background.len()),
        (spec.flows.len(), spec.links.len(), spec.background.len())
    );
    let mut notes = vec![];
    let mut flows: Vec<_> =
        spec.flows.iter().zip(&measured.flows).map(|(s, f)| flow::of_flow(spec, s, f, &measured, &mut notes)).collect();
    let mut entries: Vec<_> =
        measured.stripes.iter().map(|s| stripe::metrics(spec, s, &measured, &mut notes)).collect();
    let links =
        measured.network.links.iter().enumerate().map(|(i, l)| network::of_link(spec, i, l, measured.end)).collect();
    let background =
        spec.background.iter().zip(&measured.network.background).map(|(s, b)| network::of_background(s, b)).collect();
    let mut metrics = run::of_run(spec, &measured, &flows, &entries);
    let extrapolation = measured.copy.as_ref().map(|found| {
        let is_alone = copied_flows(spec).len() == spec.flows.len();
        let of_copy = if let Some(entry) = entries.first_mut() { entry } else { &mut flows[0] };
        let of_run = is_alone.then_some(&mut metrics);
        extrapolation::apply(spec, &measured, found, &mut of_run.into_iter().chain([of_copy]).collect::<Vec<_>>())
    });
    let event_times_s = measured.event_times.iter().map(|at| at.map(Time::as_secs_f64)).collect();
    let windows = windows::of_windows(spec, &measured);
    let window_reductions =
        measured.window_reductions.iter().map(|reduction| of_window_reduction(spec, reduction)).collect();
    notes.extend(measured.notes);
    let MeasuredRun { flow_series, link_series, short_flows, network, .. } = measured;
    Outcome {
        other_threads_cpu: Span(0),
        metrics,
        flows,
        entries,
        links,
        background,
        short_flows: short_flows.into_iter().map(|entry| entry.metrics).collect(),
        managed: network.managed,
        extrapolation,
        notes,
        event_times_s,
        windows,
        window_reductions,
        flow_series,
        link_series,
    }
}

/// Returns the metrics of a command to reduce a window; without `kept_segments` the sender did not.
fn of_window_reduction(spec: &RunSpec, reduction: &WindowReduction) -> Metrics {
    let mut metrics = Metrics::from([
        match reduction.why {
            MoveId::Event(event) => ("event", Metric::Integer(event as u64)),
            MoveId::Entry(entry) => ("entry", Metric::Integer(entry as u64)),
        },
        ("flow", Metric::Text(spec.flows[reduction.flow].name.clone())),
        ("at_s", Metric::Real(reduction.at.as_secs_f64())),
    ]);
    if let Some(srtt) = reduction.srtt {
        metrics.insert("srtt_s", Metric::Real(srtt.as_secs_f64()));
    }
    if let Some(reduced) = reduction.reduced {
        metrics.insert("window_segments", Metric::Integer(reduced.window.into()));
        metrics.insert("kept_segments", Metric::Integer(reduced.kept.into()));
    }
    metrics
}
