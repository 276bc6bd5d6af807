//! A workload over Fibre Channel gateways: pairs of N_Ports, and what they send each other.

use crate::writes::{ArrivalsSpec, WriteSizesSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pairs of N_Ports: the first of each behind the gateway that the flow leaves, the second behind the other. Every flow
/// of a group has the same.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FcSpec {
    /// Protocol between the gateways.
    pub protocol: FcProtocolSpec,
    /// Pairs of N_Ports of the group: as many as its connections with iFCP, at least as many with FCIP.
    pub pairs: u32,
    /// Load of each pair.
    pub load: FcLoadSpec,
}

/// Protocol between two gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FcProtocolSpec {
    /// RFC 4172: a TCP connection for each pair of N_Ports.
    Ifcp,
    /// RFC 3821: a tunnel of TCP connections that all pairs share.
    Fcip,
}

/// Frames that the first port of a pair sends to the second.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FcLoadSpec {
    /// Mean rate of their payload, bit/s.
    pub rate_bps: u64,
    /// Payload of a frame: fixed or a mix, 1 to 2112 bytes.
    pub sizes: WriteSizesSpec,
    /// Times of generation.
    pub arrivals: ArrivalsSpec,
    /// Frames that wait at the port before the generator pauses; at least 1.
    pub queue_frames: u32,
}
