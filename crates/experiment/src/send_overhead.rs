//! Random time that a sender takes for each packet, one packet after the other: their order stays.
//!
//! As ns-2's `overhead_` of Agent/TCP/FullTcp, against the phase effects of Floyd and Jacobson, *On Traffic Phase
//! Effects in Packet-Switched Gateways* (1992), whose sources take up to the bottleneck's time for a packet.

use crate::link_config::jitter_of;
use link::random::{stream_seed, Random};
use link::JitterSource;
use spec::{JitterSpec, SendOverheadSpec};
use tcp::Train;
use units::{Span, Time};

/// The overhead of one sender; `S` is what it sends.
pub struct SendOverhead<S> {
    times: JitterSource,
    /// The packet that the sender is at, and the time at which it leaves.
    at_work: Option<(S, Time)>,
    /// Latest time at which the endpoint was asked for a packet.
    asked: Time,
}

impl<S: Copy> SendOverhead<S> {
    /// That of flow `flow` in the run with seed `seed`.
    pub fn new(spec: SendOverheadSpec, seed: u64, flow: &str) -> SendOverhead<S> {
        let SendOverheadSpec { distribution, scale_ns } = spec;
        let times = jitter_of(&JitterSpec { distribution, scale_ns, reordering: false });
        let random = Random::new(stream_seed(seed, &format!("send_overhead/{flow}")));
        SendOverhead { times: JitterSource::new(&times, random), at_work: None, asked: Time::ZERO }
    }

    /// Puts a packet that leaves now into `segment`, and goes to work on the next that `endpoint` gives.
    pub fn poll(&mut self, now: Time, segment: &mut S, mut endpoint: impl FnMut(&mut S) -> Train) -> Train {
        self.asked = now;
        match self.at_work {
            Some((_, due)) if now < due => return Train { segments: 0, more: false },
            Some((ready, _)) => {
                *segment = ready;
                self.at_work = None;
                return Train { segments: 1, more: true };
            }
            None => {}
        }
        let train = endpoint(segment);
        if train.segments == 0 {
            return train;
        }
        match self.times.draw() {
            0 => train,
            time => {
                self.at_work = Some((*segment, now + Span(time)));
                Train { segments: 0, more: false }
            }
        }
    }

    /// Returns true while the sender is at a packet.
    pub fn is_at_work(&self) -> bool {
        self.at_work.is_some()
    }

    /// Returns the time of the next call for a sender whose endpoint asks for one at `endpoint`.
    pub fn poll_timeout(&self, endpoint: Time) -> Time {
        match self.at_work {
            // A time that has come is that of the next packet, which waits for this one.
            Some((_, due)) if endpoint <= self.asked => due,
            Some((_, due)) => due.min(endpoint),
            None => endpoint,
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
        let mut overhead = SendOverhead::<u32>::new(spec, 7, "backup");
        let (mut made, mut left, mut now) = (0, vec![], Time::ZERO);
        while left.len() < packets as usize {
            let mut segment = 0;
            let train = overhead.poll(now, &mut segment, |segment| {
                made += 1;
                *segment = made;
                Train { segments: 1, more: true }
            });
            if train.segments == 1 {
                left.push(now);
                assert_eq!(segment as usize, left.len(), "packets keep their order");
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
        let mut overhead = SendOverhead::<u32>::new(spec, 7, "backup");
        assert_eq!(overhead.poll_timeout(Time(9)), Time(9));
        overhead.poll(Time(5), &mut 0, |_| Train { segments: 1, more: true });
        assert_eq!(overhead.poll_timeout(Time(9)), Time(9));
        assert!(overhead.poll_timeout(Time(5)) > Time(9));
        let nothing = overhead.poll(Time(9), &mut 0, |_| unreachable!("the sender is at a packet"));
        assert_eq!(nothing.segments, 0);
    }
}
