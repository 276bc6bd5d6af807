//! The emulator as a Python object.

use crate::error;
use experiment::ValidRun;
use kernel::{CarrierCounters, Clock, Direction, Emulator, EmulatorReport, HostPlan, HostSpec, NetworkChange};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use spec::RunSpec;
use units::{Span, Time};

/// TUN devices in network namespaces with the network of a spec between them.
#[pyclass(module = "elephan._native", name = "Emulator")]
pub(crate) struct PyEmulator(pub Emulator);

/// Reads JSON that Python handed over. ValueError begins with `what`.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(error::json(what))
}

#[pymethods]
impl PyEmulator {
    /// Makes the devices of `hosts_json`, the hosts of a plan (crates/kernel/src/plan.rs). OSError says what failed.
    #[new]
    fn new(py: Python<'_>, hosts_json: &str) -> PyResult<PyEmulator> {
        let hosts: Vec<HostSpec> = parsed("the plan's hosts", hosts_json)?;
        py.detach(|| Emulator::open(&hosts)).map(PyEmulator).map_err(error::machine)
    }

    /// Carries packets over the network of `spec_json` from now on, and begins the run. The spec's flows are not run:
    /// where the plan names them, their packets are told by their ports; events that wait for a flow's rate never
    /// happen. ValueError: spec or plan are wrong.
    fn start(&mut self, py: Python<'_>, spec_json: &str, plan_json: &str) -> PyResult<()> {
        let mut spec: RunSpec = parsed("the run's spec", spec_json)?;
        // No caller takes series from here, and a path may be open for days.
        spec.measure.series_interval_ns = None;
        let plan: HostPlan = parsed("the plan", plan_json)?;
        let emulator = &mut self.0;
        py.detach(|| emulator.start(ValidRun::new(&spec)?, &plan, Clock::starting_in(Span::ZERO), [].into()))
            .map_err(error::value)
    }

    /// Packets of flow `flow` go over `links` from now on: its data, or, with `back`, its acknowledgements. ValueError:
    /// there is no such flow, or the links do not lead there.
    #[pyo3(signature = (flow, links, back=false))]
    fn set_route(&self, py: Python<'_>, flow: usize, links: Vec<usize>, back: bool) -> PyResult<()> {
        let direction = if back { Direction::Reverse } else { Direction::Forward };
        py.detach(|| self.0.set_route(flow, direction, &links)).map_err(error::value)
    }

    /// Changes the network, all at one time; `change_json` is a change (crates/kernel/src/emulator/change.rs).
    /// ValueError: it does not fit the network, and nothing is changed.
    fn change(&self, py: Python<'_>, change_json: &str) -> PyResult<()> {
        let change: NetworkChange = parsed("the change", change_json)?;
        py.detach(|| self.0.change(change)).map_err(error::value)
    }

    /// Time of each event since the run began, s; None: it has not happened. Empty when nothing is carried.
    fn event_times(&self, py: Python<'_>) -> Vec<Option<f64>> {
        let times = py.detach(|| self.0.event_times()).unwrap_or_default();
        times.into_iter().map(|at| at.map(Time::as_secs_f64)).collect()
    }

    /// Returns true if it has ended by itself.
    fn has_failed(&self) -> bool {
        self.0.has_failed()
    }

    /// The network's counters now, as a dict; None when nothing is carried.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        let Some(counters) = py.detach(|| self.0.snapshot()) else { return Ok(None) };
        let dict = PyDict::new(py);
        insert_counters(&dict, &counters)?;
        Ok(Some(dict.unbind()))
    }

    /// Ends it; returns its report as a dict, or None if it was not started.
    fn stop(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        let emulator = &mut self.0;
        py.detach(|| emulator.stop()).map(|report| report_dict(py, &report).map(Bound::unbind)).transpose()
    }
}

/// Returns the emulator's report: its own counters beside the network's.
pub(crate) fn report_dict<'py>(py: Python<'py>, report: &EmulatorReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    insert_counters(&dict, &report.counters)?;
    for (name, histogram) in [("late", &report.lateness), ("waited", &report.waited)] {
        dict.set_item(format!("{name}_count"), histogram.count())?;
        dict.set_item(format!("{name}_p50_ns"), histogram.quantile_bound(500))?;
        dict.set_item(format!("{name}_p99_ns"), histogram.quantile_bound(990))?;
        dict.set_item(format!("{name}_max_ns"), histogram.max())?;
    }
    dict.set_item("refused_packets", report.refused)?;
    dict.set_item("joined_packets", report.joined)?;
    dict.set_item("unroutable_packets", report.unroutable)?;
    let routers = PyDict::new(py);
    routers.set_item("expired_packets", report.routers.expired)?;
    routers.set_item("too_big_packets", report.routers.too_big)?;
    routers.set_item("fragmented_packets", report.routers.fragmented)?;
    routers.set_item("icmp_messages", report.routers.messages)?;
    dict.set_item("routers", routers)?;
    dict.set_item("stalls", report.stalls)?;
    dict.set_item("stalled_ns", report.stalled_ns)?;
    dict.set_item("cpu_ns", report.cpu_ns)?;
    dict.set_item("traffic_cpu_ns", report.traffic_cpu_ns)?;
    dict.set_item("elapsed_ns", report.elapsed_ns)?;
    dict.set_item("precedence", report.precedence)?;
    dict.set_item("failure", report.failure.as_deref())?;
    let event_times: Vec<_> = report.event_times.iter().map(|at| at.map(Time::as_secs_f64)).collect();
    dict.set_item("event_times_s", event_times)?;
    let commands = PyList::empty(py);
    for given in &report.commands {
        let command = PyDict::new(py);
        command.set_item("event", given.event)?;
        command.set_item("flow", given.flow)?;
        command.set_item("number", given.number)?;
        command.set_item("due_s", given.due.as_secs_f64())?;
        command.set_item("due_monotonic_ns", given.due_monotonic_ns)?;
        command.set_item("given_monotonic_ns", given.given_monotonic_ns)?;
        command.set_item("refused", given.refused.as_deref())?;
        commands.append(command)?;
    }
    dict.set_item("commands", commands)?;
    Ok(dict)
}

fn insert_counters(dict: &Bound<'_, PyDict>, counters: &CarrierCounters) -> PyResult<()> {
    let py = dict.py();
    let links = PyList::empty(py);
    for stats in &counters.network.links {
        let link = PyDict::new(py);
        link.set_item("delivered_packets", stats.delivered)?;
        link.set_item("delivered_bytes", stats.delivered_bytes)?;
        link.set_item("dropped_packets", stats.dropped())?;
        link.set_item("dropped_by_queue", stats.dropped_by_queue)?;
        link.set_item("dropped_by_aqm", stats.dropped_by_aqm)?;
        link.set_item("dropped_by_loss", stats.dropped_by_loss)?;
        link.set_item("dropped_by_outage", stats.dropped_by_outage)?;
        link.set_item("dropped_by_policer", stats.dropped_by_policer)?;
        link.set_item("marked_packets", stats.marked)?;
        link.set_item("queue_max_packets", stats.max_queue_packets)?;
        link.set_item("queue_max_bytes", stats.max_queue_bytes)?;
        links.append(link)?;
    }
    let background = PyList::empty(py);
    for source in &counters.network.background {
        let one = PyDict::new(py);
        one.set_item("sent_packets", source.sent)?;
        one.set_item("received_packets", source.received)?;
        one.set_item("dropped_packets", source.dropped)?;
        background.append(one)?;
    }
    dict.set_item("at_ns", counters.at.0)?;
    dict.set_item("links", links)?;
    dict.set_item("background", background)?;
    dict.set_item("flow_dropped_packets", &counters.flow_drops)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyEmulator>()
}
