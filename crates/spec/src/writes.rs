//! Writes that are drawn at random: their sizes and times.

use crate::active::ActiveSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Writes that are drawn at a mean rate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WritesSpec {
    /// Mean rate of their data while active, bit/s.
    pub rate_bps: u64,
    /// Bytes of each.
    pub sizes: WriteSizesSpec,
    /// Times of issue.
    pub arrivals: ArrivalsSpec,
    /// Bytes sent beside each write's data (replication header).
    pub header_bytes: u32,
    /// Exact periods; left out: writes are issued all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveSpec>,
}

/// Distribution of the sizes of writes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WriteSizesSpec {
    /// All of one size.
    #[schemars(title = "FixedSizeSpec")]
    Fixed {
        /// Bytes.
        bytes: u64,
    },
    /// Of several sizes.
    #[schemars(title = "MixedSizesSpec")]
    Mix {
        /// (bytes, weight), each below 2^32.
        sizes: Vec<[u64; 2]>,
    },
    /// Lognormal.
    #[schemars(title = "LognormalSizesSpec")]
    Lognormal {
        /// Half are below it, bytes.
        median_bytes: u64,
        /// Standard deviation of the natural logarithm, thousandths.
        sigma_e3: u32,
    },
    /// Bounded Pareto.
    #[schemars(title = "ParetoSizesSpec")]
    Pareto {
        /// Tail index, thousandths.
        shape_e3: u32,
        /// Least, bytes.
        min_bytes: u64,
        /// Most, bytes.
        max_bytes: u64,
    },
}

/// Times at which writes are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "process", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalsSpec {
    /// Each after the transmission time of the one before at the rate.
    #[schemars(title = "ConstantArrivalsSpec")]
    Constant,
    /// Independently of each other.
    #[schemars(title = "PoissonArrivalsSpec")]
    Poisson,
    /// Poisson while on, none while off.
    #[schemars(title = "OnOffArrivalsSpec")]
    OnOff {
        /// Mean time on, ns.
        on_ns: u64,
        /// Mean time off, ns.
        off_ns: u64,
        /// Tail index of the times on and off, thousandths, above 1000; null = exponential.
        pareto_shape_e3: Option<u32>,
    },
}
