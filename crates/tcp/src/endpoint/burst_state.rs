//! State of the bursts of a sender (see `segmentation`).

use crate::config::{Config, Recovery};
use crate::consts::GSO_MAX_BYTES;

/// The burst that goes now, and the packet in the write queue from which the next one is taken.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Bursts {
    /// Longest packet, bytes; 0: each segment goes alone.
    pub max_bytes: u32,
    /// Segments that still belong to the burst that goes now.
    pub left: u32,
    /// Length of the burst that the next segment begins, segments; 0 counts as 1.
    pub next: u32,
    /// Segments left of the packet in the write queue; 0: the next packet is a whole one.
    pub packet_left: u32,
    /// Time at which the last burst began, ns.
    pub begun_ns: u64,
    /// End of its segments so far.
    pub end: u64,
    /// Its lateness, ns, as far as pacing has not made up for it.
    pub late_ns: u64,
    pub deferred: Deferral,
}

/// Decision to let new data wait although the windows have room. It holds until something happens to the connection,
/// whoever asks meanwhile, since it depends on the time.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Deferral {
    #[default]
    None,
    /// By the peer's window or by the application.
    Other,
    /// By the congestion window.
    Cwnd,
}

impl Bursts {
    pub fn new(cfg: &Config) -> Bursts {
        let is_linux = cfg.tso_autosizing && cfg.recovery == Recovery::Rack;
        Bursts { max_bytes: if is_linux { GSO_MAX_BYTES } else { 0 }, ..Bursts::default() }
    }

    /// Returns whether a burst goes at `now` to which further segments belong.
    #[inline]
    pub fn is_open(&self, now: u64) -> bool {
        self.left > 0 && self.begun_ns == now
    }

    /// Counts `segments` from `seq` to `end` that go at `now`: to the burst that they belong to, or to a new one, whose
    /// length it returns.
    #[inline]
    pub fn add(&mut self, now: u64, seq: u64, end: u64, segments: u32) -> Option<u32> {
        let is_new = !(self.is_open(now) && self.end == seq);
        if is_new {
            self.left = self.next.max(segments);
            self.next = 0;
            self.begun_ns = now;
        }
        let length = self.left;
        self.left -= segments;
        self.end = end;
        is_new.then_some(length)
    }

    /// Something happened to the connection: a segment or data has come, or a timer has fired.
    #[inline]
    pub fn end_deferral(&mut self) {
        self.deferred = Deferral::None;
    }

    /// Returns whether new data waits and the congestion window is the limit.
    #[inline]
    pub fn is_cwnd_limited(&self) -> bool {
        self.deferred == Deferral::Cwnd
    }

    /// Part of a gap behind segments, `most_ns` at most, that makes up for the lateness of the timer or of the
    /// application.
    #[inline]
    pub fn make_up(&mut self, most_ns: u64) -> u64 {
        let part = self.late_ns.min(most_ns);
        self.late_ns -= part;
        part
    }
}
