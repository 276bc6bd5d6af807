//! One connection and its workload.

use crate::transport::TransportSpec;
use crate::workload::{DistributionSpec, WorkloadSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One TCP connection and its workload.
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
    /// Opening of the connection, ns.
    pub start_ns: u64,
    /// Last write of the application, ns; null = the end of its workload.
    pub stop_ns: Option<u64>,
    /// Workload.
    pub workload: WorkloadSpec,
    /// Owner of the workload: each connection, or the group; absent = each.
    #[serde(default, skip_serializing_if = "DistributionSpec::is_each")]
    pub distribution: DistributionSpec,
}
