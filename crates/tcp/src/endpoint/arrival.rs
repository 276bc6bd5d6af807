//! Input and output of `handle_run`.

use crate::segment::Segment;
use units::Time;

/// Takes what an endpoint sends in a run. A closure does, too; a method of one's own may be inlined always.
pub trait Output {
    /// `count` segments of which `segment` is the first go out at `at`.
    fn send(&mut self, at: Time, segment: &Segment, count: u32);
}

impl<F: FnMut(Time, &Segment, u32)> Output for F {
    #[inline]
    fn send(&mut self, at: Time, segment: &Segment, count: u32) {
        self(at, segment, count);
    }
}

/// A segment that arrives, as far as a common one tells anything.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Time of its arrival.
    pub at: Time,
    /// Number of the first byte.
    pub seq: u64,
    /// Next byte expected from the peer.
    pub ack: u64,
    /// Receive window offered, bytes, after scaling.
    pub window: u32,
    /// See [`crate::segment::flags`].
    pub flags: u16,
    /// SACK blocks that it has; with any it is not common.
    pub sack_count: u8,
    /// Timestamp value, ms of the sender's clock.
    pub ts_val: u32,
    /// Timestamp echoed, ms.
    pub ts_ecr: u32,
    /// Payload bytes.
    pub len: u32,
}
