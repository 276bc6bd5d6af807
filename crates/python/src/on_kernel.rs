//! Running a spec with this machine's own TCP.

use crate::emulator::{parsed, report_dict, PyEmulator};
use crate::progress::Progress;
use crate::simulate::{convert, RunResult, Stopped};
use kernel::{HostPlan, KernelError};
use lab::spec::RunSpec;
use lab::{LabError, Verdict};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Runs the spec (JSON, form of crates/lab/src/spec.rs) with the sockets of the plan (JSON, form of crates/kernel/src/plan.rs)
/// over `emulator`, which has the plan's hosts, configured, and was not started; it is stopped afterwards. Returns what `simulate`
/// returns, and what the emulator did, as `Emulator.stop` gives it.
///
/// `progress(now_ns, end_ns)` is called at most every `progress_interval_s`; when it raises, the run stops and the exception
/// passes on; when it returns True, the run stops with Stopped. On the main thread a signal ends the run, too. ValueError: spec,
/// plan or a file they name is wrong. OSError: the kernel refused something; it names the flow.
#[pyfunction]
#[pyo3(signature = (spec_json, plan_json, emulator, progress=None, progress_interval_s=0.1))]
fn run_on_kernel<'py>(
    py: Python<'py>,
    spec_json: &str,
    plan_json: &str,
    emulator: &Bound<'py, PyEmulator>,
    progress: Option<Py<PyAny>>,
    progress_interval_s: f64,
) -> PyResult<(RunResult, Bound<'py, PyDict>)> {
    let spec: RunSpec = parsed("the run's spec", spec_json)?;
    let plan: HostPlan = parsed("the plan", plan_json)?;
    let mut progress = Progress::new(progress, progress_interval_s);
    let mut emulator = emulator.try_borrow_mut()?;
    let emulator = &mut emulator.0;
    let ran = py.detach(|| {
        kernel::run(&spec, &plan, emulator, &mut |now, end| match progress.hear_signals() {
            Verdict::Continue => progress.tell(now.0, end.0),
            Verdict::Stop => Verdict::Stop,
        })
    });
    progress.check()?;
    let (outcome, report) = ran.map_err(|e| match e {
        KernelError::Stopped | KernelError::Spec(LabError::Stopped) => Stopped::new_err(e.to_string()),
        KernelError::Spec(_) => PyValueError::new_err(e.to_string()),
        KernelError::Flow { .. } | KernelError::Machine { .. } => PyOSError::new_err(e.to_string()),
    })?;
    Ok((convert(py, outcome)?, report_dict(py, &report)?))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_on_kernel, module)?)
}
