//! Parameters that the ends of a session propose to each other.

use spec::IscsiSpec;
use storage::iscsi::{Digest, Settings};

/// Returns the proposals of the initiator and of the target of a session of `count` connections.
pub fn settings(spec: &IscsiSpec, count: usize) -> (Settings, Settings) {
    let IscsiSpec {
        initial_r2t,
        immediate_data,
        max_burst_bytes,
        first_burst_bytes,
        initiator_max_recv_bytes,
        target_max_recv_bytes,
        max_outstanding_r2t,
        header_digest,
        data_digest,
        // Of the session's traffic, not of its login.
        command_window: _,
        queue_depth: _,
        allegiance: _,
        disk: _,
        source: _,
    } = *spec;
    let digest = |on: bool| if on { Digest::Required } else { Digest::Off };
    let initiator = Settings {
        header_digest: digest(header_digest),
        data_digest: digest(data_digest),
        max_connections: u32::try_from(count).unwrap_or(u32::MAX),
        initial_r2t,
        immediate_data,
        max_recv_bytes: initiator_max_recv_bytes,
        max_burst_bytes,
        first_burst_bytes,
        max_outstanding_r2t,
        ..Settings::default()
    };
    let target = Settings { max_recv_bytes: target_max_recv_bytes, ..initiator };
    (initiator, target)
}
