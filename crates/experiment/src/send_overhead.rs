//! Random time that a sender takes before each packet, one packet after the other: their order stays.
//!
//! As ns-2's `overhead_` of Agent/TCP/FullTcp, against the phase effects of Floyd and Jacobson, *On Traffic Phase
//! Effects in Packet-Switched Gateways* (1992), whose sources take up to the bottleneck's time for a packet. As there
//! (tcp-full.cc, send_much), a sender that may send waits first and makes the packet then: its timestamp, its choice of
//! data and the retransmission timer are those of the time at which it leaves.

use crate::link_config::jitter_of;
use link::random::{stream_seed, Random};
use link::JitterSource;
use spec::{JitterSpec, SendOverheadSpec};
use tcp::Train;
use units::{Span, Time};

/// The overhead of one sender.
pub struct SendOverhead {
    times: JitterSource,
    /// Time at which the packet that the sender is at leaves.
    leaves: Option<Time>,
    /// Latest time at which the endpoint was asked for a packet.
    asked: Time,
}

/// One of the two things that a sender does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It makes a packet, which leaves.
    Sends,
    /// It is at a packet.
    Waits,
}

impl SendOverhead {
    /// That of flow `flow` in the run with seed `seed`.
    pub fn new(spec: SendOverheadSpec, seed: u64, flow: &str) -> SendOverhead {
        let SendOverheadSpec { distribution, scale_ns } = spec;
        let times = jitter_of(&JitterSpec { distribution, scale_ns, reordering: false });
        let random = Random::new(stream_seed(seed, &format!("send_overhead/{flow}")));
        SendOverhead { times: JitterSource::new(&times, random), leaves: None, asked: Time::ZERO }
    }

    /// Says what the sender does now; `has_packet` tells whether its endpoint has one to send.
    pub fn turn(&mut self, now: Time, has_packet: impl FnOnce() -> bool) -> Turn {
        self.asked = now;
        match self.leaves {
            Some(due) if now < due => return Turn::Waits,
            Some(_) => {
                self.leaves = None;
                return Turn::Sends;
            }
            None => {}
        }
        // An endpoint without a packet is asked, so that it learns that its burst has ended.
        if !has_packet() {
            return Turn::Sends;
        }
        match self.times.draw() {
            0 => Turn::Sends,
            time => {
                self.leaves = Some(now + Span(time));
                Turn::Waits
            }
        }
    }

    /// Returns true while the sender is at a packet.
    pub fn is_at_work(&self) -> bool {
        self.leaves.is_some()
    }

    /// Returns the time of the next call for a sender whose endpoint asks for one at `endpoint`.
    pub fn poll_timeout(&self, endpoint: Time) -> Time {
        match self.leaves {
            // A time that has come is that of the next packet, which waits for this one.
            Some(due) if endpoint <= self.asked => due,
            Some(due) => due.min(endpoint),
            None => endpoint,
        }
    }
}

impl Turn {
    /// `packet` of the endpoint where it sends now, none where it waits.
    pub fn train(self, packet: impl FnOnce() -> Train) -> Train {
        match self {
            Turn::Sends => packet(),
            Turn::Waits => Train { segments: 0, more: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::JitterKind;

    /// Times at which packets leave that are there from the start.
    fn departures(scale_ns: u64, packets: u32) -> Vec<Time> {
        let spec = SendOverheadSpec { distribution: JitterKind::Uniform, scale_ns };
        let mut overhead = SendOverhead::new(spec, 7, "backup");
        let (mut left, mut now) = (vec![], Time::ZERO);
        while left.len() < packets as usize {
            if overhead.turn(now, || true) == Turn::Sends {
                left.push(now);
            } else {
                assert!(overhead.is_at_work());
                // The endpoint has more to send at once, which asks for no call before this packet has left.
                now = overhead.poll_timeout(Time::ZERO);
            }
        }
        left
    }

    #[test]
    fn packets_take_their_times_one_after_the_other() {
        let left = departures(1_000_000, 10_000);
        let taken: Vec<u64> = left.windows(2).map(|pair| pair[1].since(pair[0]).0).collect();
        assert!(taken.iter().all(|&time| time <= 1_000_000));
        let mean = taken.iter().sum::<u64>() as f64 / taken.len() as f64;
        assert!((mean - 500_000.0).abs() < 15_000.0, "mean {mean}");
    }

    #[test]
    fn a_timer_of_the_endpoint_goes_before_a_packet_that_takes_longer() {
        let spec = SendOverheadSpec { distribution: JitterKind::Uniform, scale_ns: 1 << 40 };
        let mut overhead = SendOverhead::new(spec, 7, "backup");
        assert_eq!(overhead.poll_timeout(Time(9)), Time(9));
        assert_eq!(overhead.turn(Time(4), || false), Turn::Sends, "nothing to wait for");
        assert_eq!(overhead.turn(Time(5), || true), Turn::Waits);
        assert_eq!(overhead.poll_timeout(Time(9)), Time(9));
        assert!(overhead.poll_timeout(Time(5)) > Time(9));
        assert_eq!(overhead.turn(Time(9), || unreachable!("the sender is at a packet")), Turn::Waits);
    }
}
