//! Counters of a gateway.

/// Messages and frames by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames that went to connections.
    pub sent_frames: u64,
    /// Frames delivered to local ports.
    pub received_frames: u64,
    /// Frames of local ports to a port without a session.
    pub no_session: u64,
    /// Frames of local ports that are not device traffic, or damaged.
    pub local_malformed: u64,
    /// Frames of local ports beyond the queue's bound.
    pub queue_full: u64,
    /// Frames that waited for a connection longer than IP_TOV, and frames thrown away with their session.
    pub expired: u64,
    /// Frames of peers that were too old.
    pub stale: u64,
    /// Other messages of peers that were refused.
    pub refused: u64,
    /// Sessions opened.
    pub sessions_opened: u64,
    /// Sessions, and attempts at one, that ended.
    pub sessions_ended: u64,
    /// Events that nobody polled in time.
    pub events_lost: u64,
}
