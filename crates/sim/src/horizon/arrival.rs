//! A packet on its way to a link where several inputs meet.

/// A packet on its way to a merged link.
#[derive(Clone, Copy)]
pub(super) struct Arrival<P> {
    pub at: u64,
    /// Source of the event that sends it or hands it on: the order of packets at one time.
    pub cause: u32,
    /// It comes from a link, by an event of its own.
    pub from_link: bool,
    pub packet: P,
}
