//! Parameters that the ends of a session propose to each other.

use spec::IscsiSpec;
use storage::iscsi::{Digest, Settings};

/// Returns the proposals of the initiator and of the target of a session of `count` connections.
pub fn settings(spec: &IscsiSpec, count: usize) -> (Settings, Settings) {
    let digest = |on: bool| if on { Digest::Required } else { Digest::Off };
    let initiator = Settings {
        header_digest: digest(spec.header_digest),
        data_digest: digest(spec.data_digest),
        max_connections: u32::try_from(count).unwrap_or(u32::MAX),
        initial_r2t: spec.initial_r2t,
        immediate_data: spec.immediate_data,
        max_recv_bytes: spec.initiator_max_recv_bytes,
        max_burst_bytes: spec.max_burst_bytes,
        first_burst_bytes: spec.first_burst_bytes,
        max_outstanding_r2t: spec.max_outstanding_r2t,
        ..Settings::default()
    };
    let target = Settings { max_recv_bytes: spec.target_max_recv_bytes, ..initiator };
    (initiator, target)
}
