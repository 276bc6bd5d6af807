//! Disks and traces played to them.

use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;
use storage::disk::{self, Device, OutOfRange, ReplayPlan, Times};
use storage::trace::ValidationReader;
use storage::Format;

/// Names of the disks that are built in.
#[pyfunction]
fn disk_names() -> Vec<&'static str> {
    disk::NAMES.to_vec()
}

/// Names of the orders of requests.
#[pyfunction]
fn disk_schedulers() -> Vec<&'static str> {
    disk::Scheduler::ALL.map(disk::Scheduler::name).to_vec()
}

/// Returns the name, size and parameters of a disk. ValueError names file, line and what would be right.
#[pyfunction]
fn disk_describe<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let device = disk::device(text).map_err(error::value)?;
    let dict = PyDict::new(py);
    dict.set_item("name", device.name())?;
    dict.set_item("blocks", device.blocks())?;
    dict.set_item("scheduler", device.scheduler().name())?;
    match &device {
        Device::Drive(drive) => {
            let spec = drive.spec();
            dict.set_item("kind", "drive")?;
            dict.set_item("rpm", spec.mechanics.rpm)?;
            dict.set_item("surfaces", spec.layout.surfaces())?;
            dict.set_item("cylinders", spec.mechanics.seek_ns.len())?;
            let zone = |z: &disk::Zone| (z.first_cylinder, z.last_cylinder, z.sectors, z.slips.len(), z.remaps.len());
            dict.set_item("zones", spec.layout.zones().iter().map(zone).collect::<Vec<_>>())?;
            let third = spec.mechanics.seek_ns.len() / 3;
            dict.set_item("seek_one_ns", spec.mechanics.seek_ns.get(1))?;
            dict.set_item("seek_third_ns", spec.mechanics.seek_ns.get(third))?;
            dict.set_item("seek_full_ns", spec.mechanics.seek_ns.last())?;
            dict.set_item("read_block_ns", spec.control.block_ns.0)?;
            dict.set_item("write_block_ns", spec.control.block_ns.1)?;
            dict.set_item("segments", spec.buffer.segments)?;
            dict.set_item("segment_blocks", spec.buffer.blocks)?;
            dict.set_item("write_back", spec.buffer.write_back)?;
        }
        Device::Flash(flash) => {
            let spec = flash.spec();
            dict.set_item("kind", "flash")?;
            dict.set_item("channels", spec.channels)?;
            dict.set_item("dies", spec.channels * spec.dies)?;
            dict.set_item("page_blocks", spec.page_blocks)?;
            dict.set_item("read_ns", spec.read_ns)?;
            dict.set_item("program_ns", spec.program_ns)?;
            dict.set_item("queue_depth", spec.queue_depth)?;
        }
    }
    Ok(dict)
}

/// Plays a trace to a disk; see `storage::disk::replay`. ValueError says what is wrong.
#[pyfunction]
#[pyo3(signature = (trace, format, columns, disk_text, scheduler, closed, device, out_of_range, time_scale_e6))]
#[allow(clippy::too_many_arguments, reason = "the keyword arguments of a Python function")]
fn disk_replay<'py>(
    py: Python<'py>,
    trace: &str,
    format: &str,
    columns: Option<&str>,
    disk_text: &str,
    scheduler: Option<&str>,
    closed: Option<usize>,
    device: Option<u32>,
    out_of_range: &str,
    time_scale_e6: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let target = disk::device(disk_text).map_err(error::value)?;
    let scheduler = disk::scheduler(scheduler, &target).map_err(error::value)?;
    let out_of_range = match out_of_range {
        "skip" => OutOfRange::Skip,
        "wrap" => OutOfRange::Wrap,
        _ => OutOfRange::Refuse,
    };
    let report = py.detach(|| {
        let format = Format::from_name(format, columns).map_err(error::value)?;
        let reader = storage::stream(trace, format).map_err(error::value)?;
        let format = reader.format();
        let plan = ReplayPlan { scheduler, closed, device, format, out_of_range, time_scale_e6 };
        disk::replay(reader, &target, &plan).map_err(error::replay)
    })?;
    let dict = PyDict::new(py);
    dict.set_item("disk", target.name())?;
    dict.set_item("scheduler", scheduler.name())?;
    dict.set_item("disks", report.disks)?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("out_of_range", report.out_of_range)?;
    dict.set_item("others", report.others)?;
    dict.set_item("span_ns", report.span_ns)?;
    dict.set_item("most_outstanding", report.most_outstanding)?;
    dict.set_item("mean_outstanding", report.mean_outstanding)?;
    dict.set_item("busy", report.busy)?;
    dict.set_item("recorded_response_ns", report.recorded.mean())?;
    let mut all = Times::default();
    for times in [&report.reads, &report.writes] {
        all.response.merge(&times.response);
        all.service.merge(&times.service);
    }
    for (name, times) in [("reads", &report.reads), ("writes", &report.writes), ("all", &all)] {
        dict.set_item(name, kind(py, times)?)?;
    }
    Ok(dict)
}

fn kind<'py>(py: Python<'py>, times: &Times) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("requests", times.response.count())?;
    for (name, histogram) in [("response", &times.response), ("service", &times.service)] {
        dict.set_item(format!("{name}_mean_ns"), histogram.mean())?;
        for (label, per_mille) in [("p50", 500), ("p95", 950), ("p99", 990), ("p999", 999)] {
            dict.set_item(format!("{name}_{label}_ns"), histogram.quantile(per_mille))?;
        }
        dict.set_item(format!("{name}_max_ns"), histogram.max())?;
    }
    Ok(dict)
}

/// Compares a drive with a validation trace; see `storage::disk::validate`. ValueError names the fault.
#[pyfunction]
fn disk_validate<'py>(py: Python<'py>, trace: &str, disk_text: &str) -> PyResult<Bound<'py, PyDict>> {
    let Device::Drive(drive) = disk::device(disk_text).map_err(error::value)? else {
        return Err(error::value(format!("disk {disk_text:?}: expected a drive: a validation trace is of one")));
    };
    let found = py.detach(|| {
        let file = user_files::open(Path::new(trace))
            .map_err(|error| error::value(format!("{trace}: cannot be opened: {error}")))?;
        let reader = ValidationReader::new(trace, std::io::BufReader::new(file));
        disk::validate(drive.spec().clone(), reader).map_err(error::value)
    })?;
    let dict = PyDict::new(py);
    dict.set_item("disk", &drive.spec().name)?;
    dict.set_item("requests", found.requests)?;
    dict.set_item("simulated_ns", found.simulated_ns)?;
    dict.set_item("measured_ns", found.measured_ns)?;
    dict.set_item("demerit_ns", found.demerit_ns)?;
    dict.set_item("disksim_rms_ns", found.disksim_rms_ns)?;
    dict.set_item("percentiles_ns", found.percentiles)?;
    Ok(dict)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(disk_names, module)?)?;
    module.add_function(wrap_pyfunction!(disk_schedulers, module)?)?;
    module.add_function(wrap_pyfunction!(disk_describe, module)?)?;
    module.add_function(wrap_pyfunction!(disk_replay, module)?)?;
    module.add_function(wrap_pyfunction!(disk_validate, module)?)
}
