//! Short flows that come and go.

use crate::active::ActiveSpec;
use crate::transport::TransportSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TCP flows that begin at random (Poisson), each with an amount of data of its own. They are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShortFlowsSpec {
    /// Name, unique.
    pub name: String,
    /// Sending node.
    pub source: usize,
    /// Receiving node.
    pub destination: usize,
    /// Links for data, in order.
    pub route: Vec<usize>,
    /// Links for ACKs, in order.
    pub return_route: Vec<usize>,
    /// Transport.
    pub transport: TransportSpec,
    /// Flows that begin in 1000 s of active time, on average.
    pub arrivals_per_ks: u64,
    /// Bytes of each.
    pub sizes: SizesSpec,
    /// First begin of a flow, ns.
    pub start_ns: u64,
    /// Last begin of a flow, ns; null = the end of the run.
    pub stop_ns: Option<u64>,
    /// Exact periods; left out: flows begin all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveSpec>,
}

/// Distribution of the flows' sizes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SizesSpec {
    /// Bounded Pareto.
    #[schemars(title = "ParetoFlowsSpec")]
    Pareto {
        /// Tail index, thousandths.
        pareto_shape_e3: u32,
        /// Least, bytes.
        min_bytes: u64,
        /// Most, bytes.
        max_bytes: u64,
    },
    /// Lognormal.
    #[schemars(title = "LognormalFlowsSpec")]
    Lognormal {
        /// Half are below it, bytes.
        median_bytes: u64,
        /// Standard deviation of the natural logarithm, thousandths.
        sigma_e3: u32,
    },
}
