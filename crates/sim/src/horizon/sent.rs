//! Packets that a process has sent in its turn.

use super::arrival::Arrival;
use super::arrivals::Arrivals;
use crate::routes::Train;
use units::Time;

/// Packets that a process sends together.
pub(super) struct Burst<P> {
    pub at: u64,
    /// The link into which they go.
    pub link: u32,
    /// Source of the event that sends them.
    pub cause: u32,
    /// Number of that event among those of its source at that time.
    pub nth: u32,
    pub count: u32,
    pub first: P,
}

impl<P: Train> Burst<P> {
    /// Its packets, one by one.
    #[inline]
    fn packets(&self) -> impl Iterator<Item = P> {
        let mut next = self.first;
        (0..self.count).map(move |_| {
            let packet = next;
            next = packet.following();
            packet
        })
    }

    pub fn arrive(&self, arrivals: &mut Arrivals<P>) {
        let (at, order) = (self.at, (self.cause, self.nth));
        self.packets().for_each(|packet| arrivals.push(Arrival::sent(at, order, packet)));
    }

    #[inline]
    pub fn expand(&self, tokens: &mut Vec<(u64, P)>) {
        tokens.extend(self.packets().map(|packet| (self.at, packet)));
    }
}

/// Takes what a host sends into one link.
pub struct Departures<'a, P> {
    pub(super) link: u32,
    pub(super) cause: u32,
    pub(super) nth: u32,
    pub(super) bursts: &'a mut Vec<Burst<P>>,
}

impl<P> Departures<'_, P> {
    /// The host sends `count` packets from `first` on at `at`.
    #[inline(always)]
    pub fn send(&mut self, at: Time, first: P, count: u32) {
        self.bursts.push(Burst { at: at.0, link: self.link, cause: self.cause, nth: self.nth, count, first });
    }
}

/// Packets that the process whose turn it is has sent and that no link has seen yet.
pub(super) struct Sent<P> {
    pub bursts: Vec<Burst<P>>,
    /// Packets on their way over a link, with their times: reused.
    pub tokens: Vec<(u64, P)>,
}

impl<P> Default for Sent<P> {
    fn default() -> Sent<P> {
        Sent { bursts: vec![], tokens: vec![] }
    }
}
