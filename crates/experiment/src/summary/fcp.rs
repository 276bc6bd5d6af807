//! Metrics of SCSI over Fibre Channel gateways.

use crate::fc_counters::FcCounters;
use crate::fcp_counters::ExchangeCounters;
use crate::metric::{Metric, Metrics};

/// Adds the metrics of exchanges, and of the frames that did not reach an N_Port.
pub fn insert_exchanges(metrics: &mut Metrics, exchanges: &ExchangeCounters, frames: &FcCounters) {
    for (name, value) in [
        ("fc_exchanges", exchanges.begun),
        ("fc_exchanges_unfinished", exchanges.unfinished),
        ("fc_aborts", exchanges.aborts),
        ("fc_retries", exchanges.retries),
        ("fc_stale_frames", exchanges.stale_frames),
        ("fc_discarded_frames", frames.stale),
        ("fc_frames_unfinished", frames.generated - frames.delivered - frames.stale),
    ] {
        metrics.insert(name, Metric::Integer(value));
    }
}
