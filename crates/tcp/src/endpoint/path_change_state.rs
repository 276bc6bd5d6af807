//! State left by hints of a path change, and their outcome.

/// State left by the hints.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathChangeHint {
    /// (cwnd, ssthresh) before the reduction; None without one.
    pub(super) before: Option<(u32, u32)>,
    /// Until when reordering is tolerated, ns.
    pub(super) until: u64,
    /// Lateness that a segment may then have, ns; None = by RACK's own reordering window.
    pub(super) reo_wnd: Option<u64>,
}

/// A reduction of cwnd ahead of a path change, segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CwndReduction {
    /// The part of cwnd in use before it.
    pub window: u32,
    /// cwnd after it.
    pub kept: u32,
}
