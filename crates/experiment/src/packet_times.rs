//! One-way delays of a source's packets, and how they vary.

use std::collections::VecDeque;
use units::{Histogram, Span, Time};

/// Delays of packets with numbers in the order of sending. Memory follows the packets in flight.
#[derive(Debug, Default)]
pub struct PacketTimes {
    /// Number of the packet at the front of `sent`. Range: wraps; fewer than 2^32 are in flight.
    first: u32,
    /// Time of sending of each packet since then; [`Time::NEVER`]: it is no longer in flight.
    sent: VecDeque<Time>,
    /// Of those that arrived.
    pub delays: PacketDelays,
    /// Of the latest arrival.
    last: Option<Span>,
}

/// Distribution of one-way delays.
#[derive(Clone, Debug, Default)]
pub struct PacketDelays {
    /// Each, ns.
    pub each: Histogram,
    /// Differences between the delays of packets that arrived one after the other, absolute: RFC 3550, 6.4.1 averages
    /// these, the latest ones most.
    pub variations: Histogram,
}

impl PacketTimes {
    /// A packet is sent; returns its number.
    #[inline]
    pub fn send(&mut self, now: Time) -> u32 {
        self.sent.push_back(now);
        self.first.wrapping_add(self.sent.len() as u32 - 1)
    }

    /// Packet `number` arrives.
    #[inline]
    pub fn arrive(&mut self, now: Time, number: u32) {
        let Some(sent) = self.take(number) else { return };
        let delay = now.since(sent);
        self.delays.each.record(delay.0);
        if let Some(last) = self.last.replace(delay) {
            self.delays.variations.record(delay.0.abs_diff(last.0));
        }
    }

    /// Packet `number` is lost.
    pub fn lose(&mut self, number: u32) {
        self.take(number);
    }

    fn take(&mut self, number: u32) -> Option<Time> {
        let index = number.wrapping_sub(self.first) as usize;
        let sent = std::mem::replace(self.sent.get_mut(index)?, Time::NEVER);
        while self.sent.front() == Some(&Time::NEVER) {
            self.sent.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        (sent != Time::NEVER).then_some(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_of_the_packet_that_arrives_in_whatever_order() {
        let mut times = PacketTimes { first: u32::MAX, ..PacketTimes::default() };
        let numbers: Vec<u32> = (0..4).map(|ms| times.send(Time(ms * 1_000_000))).collect();
        assert_eq!(numbers, [u32::MAX, 0, 1, 2]);
        times.arrive(Time(5_000_000), 1);
        times.lose(0);
        times.arrive(Time(6_000_000), u32::MAX);
        assert_eq!(times.sent.len(), 1, "those that arrived or were lost are forgotten");
        times.arrive(Time(6_000_000), 2);
        // 3 ms, then 6 ms, then 3 ms.
        let PacketDelays { each, variations } = &times.delays;
        assert_eq!((each.count(), each.mean(), each.max()), (3, Some(4e6), Some(6_000_000)));
        assert_eq!((variations.count(), variations.mean()), (2, Some(3e6)));
        times.arrive(Time(9_000_000), 2);
        assert_eq!(times.delays.each.count(), 3, "a packet arrives once");
    }
}
