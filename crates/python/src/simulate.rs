//! Running a spec without the GIL, and its outcome as Python values.

use crate::error;
use crate::progress::Progress;
use experiment::{simulate_with_engine, Engine, FlowSeries, LinkSeries, ManagerOutcome, Metric, Outcome};
use kernel::{NamedMetrics, OutcomeRecord};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use spec::RunSpec;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Result of a run: metrics as dicts, series as dicts of numpy arrays that own the core's memory.
#[pyclass(frozen, module = "elephan._native")]
pub(crate) struct RunResult {
    #[pyo3(get)]
    metrics: Py<PyDict>,
    /// CPU time that threads other than the caller's spent on it, s.
    #[pyo3(get)]
    other_threads_cpu_s: f64,
    #[pyo3(get)]
    flows: Vec<Py<PyDict>>,
    /// Of each workload that several connections share.
    #[pyo3(get)]
    flow_groups: Vec<Py<PyDict>>,
    #[pyo3(get)]
    links: Vec<Py<PyDict>>,
    #[pyo3(get)]
    background: Vec<Py<PyDict>>,
    #[pyo3(get)]
    short_flows: Vec<Py<PyDict>>,
    #[pyo3(get)]
    manager: Option<Py<PyDict>>,
    /// Extrapolation of a long copy, or the reason that there is none.
    #[pyo3(get)]
    extrapolation: Option<Py<PyDict>>,
    #[pyo3(get)]
    notes: Vec<String>,
    /// Time of each event, s since the run began; None: it did not happen.
    #[pyo3(get)]
    event_times_s: Vec<Option<f64>>,
    /// Of each window of the measurement: of the run, then of each connection, which has its name under `flow`.
    #[pyo3(get)]
    windows: Vec<Py<PyDict>>,
    /// Of each sender that got a command to reduce its window.
    #[pyo3(get)]
    cwnd_reductions: Vec<Py<PyDict>>,
    #[pyo3(get)]
    flow_series: Py<PyDict>,
    #[pyo3(get)]
    link_series: Py<PyDict>,
}

/// Returns the JSON Schema of a spec, as JSON.
#[pyfunction]
fn run_spec_schema() -> String {
    spec::schema().as_value().to_string()
}

/// Simulates the spec (JSON, form of the crate spec).
///
/// `progress(now_ns, end_ns)` is called at most every `progress_interval_s`; when it raises, the run stops and the
/// exception passes on; when it returns True, the run stops with Stopped. Up to `cores` threads share a run where that
/// is faster; the result is the same. ValueError: the spec or a file it names is wrong. OSError: the capture cannot be
/// written.
#[pyfunction]
#[pyo3(signature = (spec_json, progress=None, progress_interval_s=0.1, cores=1))]
fn simulate(
    py: Python<'_>,
    spec_json: &str,
    progress: Option<Py<PyAny>>,
    progress_interval_s: f64,
    cores: usize,
) -> PyResult<RunResult> {
    let spec: RunSpec = serde_json::from_str(spec_json).map_err(error::json("the run's spec"))?;
    let engine = NonZeroUsize::new(cores).map_or(Engine::Chosen, Engine::Cores);
    let mut progress = Progress::new(progress, progress_interval_s);
    let outcome = py.detach(|| simulate_with_engine(&spec, engine, &mut |at| progress.report(at.now.0, at.end.0)));
    progress.check()?;
    let outcome = outcome.map_err(error::run)?;
    convert(py, outcome)
}

/// Reads the trace at `path` and returns its summary, by name (`format` "auto": by its content; `columns`: the fields
/// of format "columns"). ValueError names file and place.
#[pyfunction]
#[pyo3(signature = (path, format, columns=None))]
fn check_trace<'py>(py: Python<'py>, path: &str, format: &str, columns: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| experiment::check_trace(path, format, columns));
    let (format, summary) = found.map_err(error::value)?;
    let dict = PyDict::new(py);
    dict.set_item("format", format.name())?;
    dict.set_item("requests", summary.requests)?;
    dict.set_item("reads", summary.reads)?;
    dict.set_item("writes", summary.writes())?;
    dict.set_item("read_bytes", summary.read_bytes)?;
    dict.set_item("written_bytes", summary.written_bytes)?;
    dict.set_item("smallest_bytes", summary.smallest_bytes)?;
    dict.set_item("largest_bytes", summary.largest_bytes)?;
    dict.set_item("first_ns", summary.first_ns)?;
    dict.set_item("span_ns", summary.span_ns())?;
    dict.set_item("sequential", summary.sequential)?;
    dict.set_item("end_lba", summary.end_lba)?;
    dict.set_item("responses", summary.responses)?;
    dict.set_item("response_ns", summary.response_ns)?;
    dict.set_item("devices", summary.devices)?;
    Ok(dict)
}

/// Checks the columns of a delimited trace. ValueError: what is wrong with them.
#[pyfunction]
fn check_trace_columns(columns: &str) -> PyResult<()> {
    experiment::TraceFormat::from_name("columns", Some(columns)).map(|_| ()).map_err(error::value)
}

/// The names of all trace formats.
#[pyfunction]
fn trace_formats() -> Vec<&'static str> {
    experiment::TraceFormat::ALL.map(experiment::TraceFormat::name).to_vec()
}

pub(crate) fn convert(py: Python<'_>, outcome: Outcome) -> PyResult<RunResult> {
    let all =
        |metrics: &[BTreeMap<&'static str, Metric>]| metrics.iter().map(|m| dict(py, m)).collect::<PyResult<Vec<_>>>();
    Ok(RunResult {
        metrics: dict(py, &outcome.metrics)?,
        other_threads_cpu_s: outcome.other_threads_cpu.0 as f64 / 1e9,
        flows: all(&outcome.flows)?,
        flow_groups: all(&outcome.entries)?,
        links: all(&outcome.links)?,
        background: all(&outcome.background)?,
        short_flows: all(&outcome.short_flows)?,
        manager: outcome.managed.map(|managed| manager(py, managed)).transpose()?,
        extrapolation: outcome.extrapolation.map(|how| dict(py, &how)).transpose()?,
        notes: outcome.notes,
        event_times_s: outcome.event_times_s,
        windows: all(&outcome.windows)?,
        cwnd_reductions: all(&outcome.window_reductions)?,
        flow_series: flow_columns(py, outcome.flow_series)?,
        link_series: link_columns(py, outcome.link_series)?,
    })
}

/// An outcome that an agent has sent, with its series.
pub(crate) fn convert_record(py: Python<'_>, record: OutcomeRecord, series: FlowSeries) -> PyResult<RunResult> {
    let all = |metrics: &[NamedMetrics]| metrics.iter().map(|m| dict(py, m)).collect::<PyResult<Vec<_>>>();
    Ok(RunResult {
        metrics: dict(py, &record.metrics)?,
        other_threads_cpu_s: 0.0,
        flows: all(&record.flows)?,
        flow_groups: all(&record.flow_groups)?,
        links: all(&record.links)?,
        background: all(&record.background)?,
        short_flows: vec![],
        manager: None,
        extrapolation: None,
        notes: record.notes,
        event_times_s: record.event_times_s,
        windows: all(&record.windows)?,
        cwnd_reductions: vec![],
        flow_series: flow_columns(py, series)?,
        link_series: link_columns(py, LinkSeries::default())?,
    })
}

fn dict<N: AsRef<str>>(py: Python<'_>, metrics: &BTreeMap<N, Metric>) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in metrics {
        let name = name.as_ref();
        match value {
            Metric::Integer(v) => dict.set_item(name, v)?,
            Metric::Real(v) => dict.set_item(name, v)?,
            Metric::Text(v) => dict.set_item(name, v)?,
            Metric::Table(v) => dict.set_item(name, v)?,
        }
    }
    Ok(dict.unbind())
}

fn manager(py: Python<'_>, managed: ManagerOutcome) -> PyResult<Py<PyDict>> {
    let all = |metrics: &[experiment::Metrics]| metrics.iter().map(|m| dict(py, m)).collect::<PyResult<Vec<_>>>();
    let (rows, timeline) = (managed.timeline, PyDict::new(py));
    timeline.set_item("time_s", rows.time_s)?;
    timeline.set_item("lightpath", rows.lightpath)?;
    timeline.set_item("state", rows.state)?;
    timeline.set_item("flows", rows.flows)?;
    timeline.set_item("carried_bps", rows.carried_bps)?;
    timeline.set_item("ip_bps", rows.ip_bps)?;
    timeline.set_item("ip_wait_s", rows.ip_wait_s)?;
    timeline.set_item("ip_dropped_packets", rows.ip_dropped_packets)?;
    let whole = PyDict::new(py);
    whole.set_item("metrics", dict(py, &managed.metrics)?)?;
    whole.set_item("lightpaths", all(&managed.lightpaths)?)?;
    whole.set_item("move_log", all(&managed.move_log)?)?;
    whole.set_item("timeline", timeline)?;
    Ok(whole.unbind())
}

fn flow_columns(py: Python<'_>, series: FlowSeries) -> PyResult<Py<PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("time_s", series.time_s.into_pyarray(py))?;
    columns.set_item("flow", series.flow.into_pyarray(py))?;
    columns.set_item("cwnd_packets", series.cwnd_packets.into_pyarray(py))?;
    let ssthresh = series.ssthresh_packets.into_iter().map(|packets| packets.map_or(f64::NAN, f64::from));
    let ssthresh = ssthresh.collect::<Vec<_>>();
    columns.set_item("ssthresh_packets", ssthresh.into_pyarray(py))?;
    columns.set_item("srtt_s", series.srtt_s.into_pyarray(py))?;
    columns.set_item("in_flight_bytes", series.in_flight_bytes.into_pyarray(py))?;
    columns.set_item("goodput_bps", series.goodput_bps.into_pyarray(py))?;
    columns.set_item("retransmitted_segments", series.retransmitted_segments.into_pyarray(py))?;
    if !series.duplicate_acks.is_empty() {
        columns.set_item("duplicate_acks", series.duplicate_acks.into_pyarray(py))?;
    }
    columns.set_item("lag_s", series.lag_s.into_pyarray(py))?;
    columns.set_item("lag_bytes", series.lag_bytes.into_pyarray(py))?;
    let udt = series.udt;
    if !udt.sending_rate_bps.is_empty() {
        columns.set_item("sending_rate_bps", udt.sending_rate_bps.into_pyarray(py))?;
        columns.set_item("lost_packets", udt.lost_packets.into_pyarray(py))?;
    }
    let reverse = series.reverse;
    if !reverse.cwnd_packets.is_empty() {
        columns.set_item("reverse_cwnd_packets", reverse.cwnd_packets.into_pyarray(py))?;
        columns.set_item("reverse_in_flight_bytes", reverse.in_flight_bytes.into_pyarray(py))?;
        columns.set_item("reverse_goodput_bps", reverse.goodput_bps.into_pyarray(py))?;
        columns.set_item("reverse_retransmitted_segments", reverse.retransmitted_segments.into_pyarray(py))?;
    }
    Ok(columns.unbind())
}

fn link_columns(py: Python<'_>, series: LinkSeries) -> PyResult<Py<PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("time_s", series.time_s.into_pyarray(py))?;
    columns.set_item("link", series.link.into_pyarray(py))?;
    columns.set_item("queue_packets", series.queue_packets.into_pyarray(py))?;
    columns.set_item("queue_bytes", series.queue_bytes.into_pyarray(py))?;
    columns.set_item("dropped_packets", series.dropped_packets.into_pyarray(py))?;
    columns.set_item("delivered_bytes", series.delivered_bytes.into_pyarray(py))?;
    Ok(columns.unbind())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("QUANTILES_PER_MILLE", experiment::QUANTILES_PER_MILLE)?;
    module.add_class::<RunResult>()?;
    module.add_function(wrap_pyfunction!(run_spec_schema, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(trace_formats, module)?)?;
    module.add_function(wrap_pyfunction!(check_trace_columns, module)?)?;
    module.add_function(wrap_pyfunction!(check_trace, module)?)
}
