//! Running a spec with this machine's own TCP.

use crate::emulator::{parsed, report_dict, PyEmulator};
use crate::error;
use crate::progress::Progress;
use crate::simulate::{convert, RunResult};
use experiment::{NetworkCounters, RunError, ValidRun};
use kernel::{Carrier, CarrierCounters, Clock, EmulatorReport, HostPlan};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use spec::RunSpec;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs the spec (JSON, form of the crate spec) with the sockets of the plan (JSON, form of
/// crates/kernel/src/plan.rs) over `carrier`: an `Emulator` that has the plan's hosts, configured, and was not started,
/// and that is stopped afterwards; or, where something else carries already, a function that returns its links'
/// counters (`delivered_packets`, `delivered_bytes`, `dropped_by_queue`, `dropped_by_loss`) in the spec's order.
/// Returns what `simulate` returns, and what the emulator did, as `Emulator.stop` gives it. What such a function does
/// not count is not in the result.
///
/// `progress(now_ns, end_ns)` is called at most every `progress_interval_s`; when it raises, the run stops and the
/// exception passes on; when it returns True, the run stops with Stopped. On the main thread a signal ends the run,
/// too. ValueError: spec, plan or a file they name is wrong. OSError: the kernel refused something; it names the flow.
#[pyfunction]
#[pyo3(signature = (spec_json, plan_json, carrier, progress=None, progress_interval_s=0.1))]
fn run_on_kernel<'py>(
    py: Python<'py>,
    spec_json: &str,
    plan_json: &str,
    carrier: &Bound<'py, PyAny>,
    progress: Option<Py<PyAny>>,
    progress_interval_s: f64,
) -> PyResult<(RunResult, Bound<'py, PyDict>)> {
    let spec: RunSpec = parsed("the run's spec", spec_json)?;
    let plan: HostPlan = parsed("the plan", plan_json)?;
    let mut progress = Progress::new(progress, progress_interval_s);
    let mut go = |carrier: &mut (dyn Carrier + Send)| {
        py.detach(|| {
            kernel::run(&spec, &plan, carrier, &mut |now, end| match progress.hear_signals() {
                ControlFlow::Continue(()) => progress.report(now.0, end.0),
                stop => stop,
            })
        })
    };
    let ran = if let Ok(emulator) = carrier.cast::<PyEmulator>() {
        go(&mut emulator.try_borrow_mut()?.0)
    } else {
        let mut counted = Counted { counters: carrier.clone().unbind(), error: Mutex::new(None) };
        let ran = go(&mut counted);
        if let Some(error) = counted.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        ran
    };
    progress.check()?;
    let (outcome, report) = ran.map_err(error::kernel_run)?;
    Ok((convert(py, outcome)?, report_dict(py, &report)?))
}

/// Something that carries by itself, whose counters Python reads.
struct Counted {
    counters: Py<PyAny>,
    error: Mutex<Option<PyErr>>,
}

impl Carrier for Counted {
    fn start(&mut self, _: ValidRun<'_>, _: &HostPlan, _: Clock, _: Arc<[AtomicU64]>) -> Result<(), RunError> {
        Ok(())
    }

    fn snapshot(&self) -> Option<CarrierCounters> {
        let links = Python::attach(|py| {
            let read = |link: &BTreeMap<String, u64>, name: &str| {
                link.get(name).copied().ok_or_else(|| PyKeyError::new_err(name.to_owned()))
            };
            let links: Vec<BTreeMap<String, u64>> = self.counters.call0(py)?.extract(py)?;
            let stats = links.iter().map(|link| {
                Ok(link::Stats {
                    delivered: read(link, "delivered_packets")?,
                    delivered_bytes: read(link, "delivered_bytes")?,
                    dropped_by_queue: read(link, "dropped_by_queue")?,
                    dropped_by_loss: read(link, "dropped_by_loss")?,
                    ..link::Stats::default()
                })
            });
            stats.collect::<PyResult<Vec<_>>>()
        });
        let counters = links.map(|links| CarrierCounters {
            network: NetworkCounters { links, ..NetworkCounters::default() },
            ..CarrierCounters::default()
        });
        counters.map_err(|error| *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error)).ok()
    }

    fn has_failed(&self) -> bool {
        false
    }

    fn stop(&mut self) -> Option<EmulatorReport> {
        None
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_on_kernel, module)?)
}
