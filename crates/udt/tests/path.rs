//! A path between two ends: a bottleneck with a queue, a delay, losses of one's choice.

use std::collections::VecDeque;
use udt::{Config, Endpoint, Segment, Version};
use units::{Rate, Size, Span, Time};

pub const MTU: u32 = 1500;

pub fn config(version: Version, window_packets: u32) -> Config {
    Config { version, mtu: MTU, window_packets, send_buffer: None, seed: 7 }
}

/// One direction: packets leave at `rate` after a queue of `limit`, and arrive `delay` later.
struct Direction {
    rate: Rate,
    delay: Span,
    limit: usize,
    free_at: Time,
    leaving: VecDeque<Time>,
    flying: VecDeque<(Time, Segment)>,
}

impl Direction {
    fn new(rate: Rate, delay: Span, limit: usize) -> Direction {
        Direction { rate, delay, limit, free_at: Time::ZERO, leaving: VecDeque::new(), flying: VecDeque::new() }
    }

    /// Returns false if the queue is full.
    fn send(&mut self, now: Time, segment: Segment) -> bool {
        while self.leaving.front().is_some_and(|&at| at <= now) {
            self.leaving.pop_front();
        }
        if self.leaving.len() >= self.limit {
            return false;
        }
        let start = self.free_at.max(now);
        self.free_at = start + self.rate.time_for(Size(u64::from(segment.packet_bytes())));
        self.leaving.push_back(self.free_at);
        self.flying.push_back((self.free_at + self.delay, segment));
        true
    }

    fn next(&self) -> Time {
        self.flying.front().map_or(Time::NEVER, |&(at, _)| at)
    }
}

/// Two ends and what lies between; end 0 opens the connection.
pub struct Path {
    pub ends: [Endpoint; 2],
    directions: [Direction; 2],
    pub now: Time,
    pub overflowed: u64,
    /// Data packets sent so far, first or again.
    pub sent: u64,
    /// Bytes that end 1 had received when its payload was last looked at.
    pub received: u64,
}

/// Tells whether packet `segment`, the `count`th of end `end`, is lost.
pub type Loss<'a> = &'a mut dyn FnMut(usize, u64, &Segment) -> bool;

impl Path {
    /// `rtt` is without queues; the queue of the data's direction takes `limit` packets.
    pub fn new(config: &Config, rate: Rate, rtt: Span, limit: usize) -> Path {
        let delay = Span(rtt.0 / 2);
        Path {
            ends: [Endpoint::new_client(config.clone(), Time::ZERO), Endpoint::new_server(config.clone(), Time::ZERO)],
            directions: [Direction::new(rate, delay, limit), Direction::new(rate, delay, usize::MAX)],
            now: Time::ZERO,
            overflowed: 0,
            sent: 0,
            received: 0,
        }
    }

    /// Runs until `end`, or until `done` says so.
    pub fn run(&mut self, end: Time, loss: Loss<'_>, mut done: impl FnMut(&Path) -> bool) {
        let mut counts = [0u64; 2];
        loop {
            for side in 0..2 {
                self.pump(side, &mut counts, loss);
            }
            let due = [self.ends[0].poll_timeout(), self.ends[1].poll_timeout()];
            let next = due.into_iter().chain(self.directions.iter().map(Direction::next)).min().unwrap_or(Time::NEVER);
            if next > end || done(self) {
                return;
            }
            assert!(next >= self.now, "time does not run backwards: {next:?} after {:?}", self.now);
            self.now = next;
            for (side, &due) in due.iter().enumerate() {
                while self.directions[side].next() <= next {
                    let Some((_, segment)) = self.directions[side].flying.pop_front() else { break };
                    self.ends[1 - side].handle_segment(next, &segment);
                }
                if due <= next {
                    self.ends[side].handle_timeout(next);
                }
            }
            self.received = self.ends[1].bytes_received();
        }
    }

    fn pump(&mut self, side: usize, counts: &mut [u64; 2], loss: Loss<'_>) {
        let mut segment = Segment::default();
        while self.ends[side].poll_train(self.now, &mut segment).segments > 0 {
            counts[side] += 1;
            self.sent += u64::from(matches!(segment, Segment::Data(_)));
            if !loss(side, counts[side], &segment) && !self.directions[side].send(self.now, segment) {
                self.overflowed += 1;
            }
        }
    }

    /// Goodput of end 0 between two times, bit/s, with all data that it wants.
    pub fn goodput(&mut self, from: Time, to: Time, loss: Loss<'_>) -> f64 {
        self.run(from, loss, |_| false);
        let before = self.received;
        self.run(to, loss, |_| false);
        (self.received - before) as f64 * 8.0 / to.since(from).as_secs_f64()
    }
}
