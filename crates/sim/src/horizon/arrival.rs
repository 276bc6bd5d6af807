//! A packet on its way to a link where several inputs meet.

/// A packet on its way to a merged link.
#[derive(Clone, Copy)]
pub(super) struct Arrival<P> {
    pub at: u64,
    /// Source of the event that sends it or hands it on: the order of packets at one time.
    cause: u32,
    /// Twice the number of that event among those of its source at that time, as far as it matters; one more: the
    /// packet comes from a link, by an event of its own.
    nth: u32,
    pub packet: P,
}

impl<P> Arrival<P> {
    /// One that a host sends.
    #[inline]
    pub fn sent(at: u64, (cause, nth): (u32, u32), packet: P) -> Arrival<P> {
        Arrival { at, cause, nth: nth << 1, packet }
    }

    /// One that comes from a link.
    #[inline]
    pub fn delivered(at: u64, (cause, nth): (u32, u32), packet: P) -> Arrival<P> {
        Arrival { at, cause, nth: nth << 1 | 1, packet }
    }

    #[inline]
    pub fn is_from_link(&self) -> bool {
        self.nth & 1 == 1
    }

    /// Orders packets as their events are ordered.
    #[inline]
    pub fn key(&self) -> (u64, u64) {
        (self.at, u64::from(self.cause) << 32 | u64::from(self.nth))
    }

    #[inline]
    pub fn nth(&self) -> u32 {
        self.nth >> 1
    }

    #[inline]
    pub fn cause(&self) -> u32 {
        self.cause
    }
}
