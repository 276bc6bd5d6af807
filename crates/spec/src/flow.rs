//! One connection and what it carries.

use crate::{DistributionSpec, TransportSpec, WorkloadSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One TCP connection and what it carries.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name, unique: `name` or `name.3` for the third connection of a flow entry.
    pub name: String,
    /// Connections of one flow entry share their group: metrics are added up over it. Index from 0.
    pub group: usize,
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
    /// When the connection is opened, ns.
    pub start_ns: u64,
    /// When the application stops writing, ns.
    pub stop_ns: Option<u64>,
    /// What it carries.
    pub workload: WorkloadSpec,
    /// Whether the connections of its group share the workload; absent where each has its own.
    #[serde(default, skip_serializing_if = "DistributionSpec::is_each")]
    pub distribution: DistributionSpec,
}
