//! Counters of SCSI over Fibre Channel between gateways.

use crate::fc_counters::FcCounters;
use crate::request_counters::RequestCounters;

/// Exchanges of SCSI commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeCounters {
    /// Exchanges that initiators began; a command that is sent again has a new one.
    pub begun: u64,
    /// Aborts (ABTS) that initiators sent.
    pub aborts: u64,
    /// Commands that initiators sent again.
    pub retries: u64,
    /// Those that had not ended when the run did.
    pub unfinished: u64,
    /// Frames that ports received of no exchange that they knew.
    pub stale_frames: u64,
}

impl ExchangeCounters {
    /// Adds those of other ports.
    pub fn add(&mut self, other: ExchangeCounters) {
        self.begun += other.begun;
        self.aborts += other.aborts;
        self.retries += other.retries;
        self.unfinished += other.unfinished;
        self.stale_frames += other.stale_frames;
    }
}

/// The pairs of initiators and targets that a connection carries.
pub struct FcpCounters {
    /// Their frames.
    pub frames: FcCounters,
    /// Their requests.
    pub requests: RequestCounters,
    /// Their exchanges.
    pub exchanges: ExchangeCounters,
}

impl FcpCounters {
    /// Of `frames`, without requests.
    pub fn new(frames: FcCounters) -> FcpCounters {
        FcpCounters { frames, requests: RequestCounters::default(), exchanges: ExchangeCounters::default() }
    }
}
