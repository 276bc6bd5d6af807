//! A trial of the manager's detection, from JSON to a dict.

use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use te::evaluation::{run, Evaluation};
use te::traffic_model::Distribution;
use te::Thresholds;
use units::{Rate, Size, Span};

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Values {
    Pareto { index: f64, least: f64, most: f64 },
    Lognormal { median: f64, sigma: f64 },
}

impl Values {
    fn distribution(&self) -> Option<Distribution> {
        match *self {
            Values::Pareto { index, least, most } => (index > 0.0 && least > 0.0 && most > least)
                .then_some(Distribution::Pareto { shape: index, min: least, max: most }),
            Values::Lognormal { median, sigma } => {
                (median > 0.0 && sigma > 0.0).then_some(Distribution::Lognormal { median, sigma })
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrialSpec {
    seed: u64,
    duration_ns: u64,
    arrivals_per_s: f64,
    sizes_bytes: Values,
    rates_bps: Values,
    packet_bytes: u64,
    interval_ns: u64,
    sampling_rate: u64,
    flow_table_size: usize,
    rate_bps: u64,
    volume_bytes: u64,
    confidence_sigmas_e3: u32,
}

/// Runs a trial of detection (JSON: see `TrialSpec`) and returns its results, by name. ValueError says what is wrong.
#[pyfunction]
fn detection_trial<'py>(py: Python<'py>, spec_json: &str) -> PyResult<Bound<'py, PyDict>> {
    let spec: TrialSpec = serde_json::from_str(spec_json).map_err(error::json("the trial"))?;
    let (Some(sizes), Some(rates)) = (spec.sizes_bytes.distribution(), spec.rates_bps.distribution()) else {
        return Err(error::value("the trial: distributions need parameters above zero, and least below most"));
    };
    if spec.interval_ns == 0 || spec.packet_bytes == 0 || spec.arrivals_per_s <= 0.0 {
        return Err(error::value("the trial: interval, packet and arrivals above zero"));
    }
    let trial = Evaluation {
        seed: spec.seed,
        duration: Span(spec.duration_ns),
        arrivals_per_s: spec.arrivals_per_s,
        sizes,
        rates,
        packet: spec.packet_bytes,
        interval: Span(spec.interval_ns),
        one_in: spec.sampling_rate,
        flow_table_size: spec.flow_table_size,
        thresholds: Thresholds {
            rate: Rate(spec.rate_bps),
            volume: Size(spec.volume_bytes),
            confidence_sigmas_e3: spec.confidence_sigmas_e3,
            return_rate: Rate(0),
        },
    };
    let found = py.detach(|| run(&trial));
    let dict = PyDict::new(py);
    for (name, value) in [
        ("flows", found.flows),
        ("bytes", found.bytes),
        ("active_max", found.active_max),
        ("elephants", found.elephants),
        ("elephant_bytes", found.elephant_bytes),
        ("misses", found.misses),
        ("unfound_bytes", found.undetected_bytes),
        ("false_positives", found.false_positives),
        ("near_false_positives", found.near_false_positives),
        ("evictions", found.evictions),
    ] {
        dict.set_item(name, value)?;
    }
    dict.set_item("delay_sum_s", found.delay_sum_s)?;
    Ok(dict)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(detection_trial, module)?)
}
