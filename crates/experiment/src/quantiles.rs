//! Tables of quantiles: enough of a distribution to draw it, in half a kilobyte.

use crate::outcome::{Metric, Metrics};
use units::Histogram;

/// Of how many in a thousand a table has the value: the least, every 25, the tails more closely, the largest.
pub const QUANTILES_PER_MILLE: [u64; 47] = [
    0, 1, 5, 10, 25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300, 325, 350, 375, 400, 425, 450, 475, 500, 525,
    550, 575, 600, 625, 650, 675, 700, 725, 750, 775, 800, 825, 850, 875, 900, 925, 950, 975, 990, 995, 999, 1000,
];

/// Inserts the table of a distribution, s, where anything was counted.
pub(crate) fn insert_quantiles(metrics: &mut Metrics, name: &'static str, histogram: &Histogram) {
    let table: Vec<f64> = histogram.quantiles(&QUANTILES_PER_MILLE).into_iter().map(|ns| ns as f64 / 1e9).collect();
    if !table.is_empty() {
        metrics.insert(name, Metric::Table(table));
    }
}
