//! Measured values by name, and distributions as such values.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{Histogram, Span};

/// A measured value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Metric {
    /// A count or an amount in the unit of its name.
    Integer(u64),
    /// A ratio, a mean, a time in s, a rate in bit/s.
    Real(f64),
    /// A name.
    Text(String),
    /// A value for each of [`QUANTILES_PER_MILLE`].
    Table(Vec<f64>),
}

/// Metrics by name.
pub type Metrics = BTreeMap<&'static str, Metric>;

/// Of how many in a thousand a table has the value: the least, every 25, the tails more closely, the largest.
pub const QUANTILES_PER_MILLE: [u64; 47] = [
    0, 1, 5, 10, 25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300, 325, 350, 375, 400, 425, 450, 475, 500, 525,
    550, 575, 600, 625, 650, 675, 700, 725, 750, 775, 800, 825, 850, 875, 900, 925, 950, 975, 990, 995, 999, 1000,
];

/// Inserts the table of a distribution, s, where anything was counted.
pub fn insert_quantiles(metrics: &mut Metrics, name: &'static str, histogram: &Histogram) {
    let table: Vec<f64> = histogram.quantiles(&QUANTILES_PER_MILLE).into_iter().map(|ns| ns as f64 / 1e9).collect();
    if !table.is_empty() {
        metrics.insert(name, Metric::Table(table));
    }
}

/// Inserts the 99th percentile and the largest value of a distribution, s.
pub fn insert_ends(metrics: &mut Metrics, histogram: &Histogram, names: [&'static str; 2]) {
    let values = [histogram.quantile(990), histogram.max()].map(|ns| ns.map(|ns| Span(ns).as_secs_f64()));
    insert_values(metrics, names.into_iter().zip(values));
}

/// Inserts mean, median, 99th percentile and largest of a distribution, s.
pub fn insert_distribution(metrics: &mut Metrics, histogram: &Histogram, names: [&'static str; 4]) {
    let seconds = |ns: u64| Span(ns).as_secs_f64();
    let values = [
        histogram.mean().map(|ns| ns / 1e9),
        histogram.quantile(500).map(seconds),
        histogram.quantile(990).map(seconds),
        histogram.max().map(seconds),
    ];
    insert_values(metrics, names.into_iter().zip(values));
}

/// Inserts those that there are.
pub fn insert_values(metrics: &mut Metrics, values: impl Iterator<Item = (&'static str, Option<f64>)>) {
    for (name, value) in values {
        if let Some(value) = value {
            metrics.insert(name, Metric::Real(value));
        }
    }
}

/// The count `name`, where there is one.
pub fn integer(metrics: &Metrics, name: &str) -> Option<u64> {
    match metrics.get(name) {
        Some(Metric::Integer(value)) => Some(*value),
        _ => None,
    }
}

/// The ratio, mean, time or rate `name`, where there is one.
pub fn real(metrics: &Metrics, name: &str) -> Option<f64> {
    match metrics.get(name) {
        Some(Metric::Real(value)) => Some(*value),
        _ => None,
    }
}
