//! CoDel (RFC 8289): drops by how long packets have waited, not by how many wait.
//!
//! The control law and its state follow the pseudocode of RFC 8289, section 5; marking instead of dropping follows
//! section 6 of RFC 8290 (a marked packet leaves the queue, and the schedule goes on as if it had been dropped).

use crate::counters::{DropReason, LinkCounters};
use crate::packet::Packet;
use std::collections::VecDeque;

/// Time after the last dropping state in which a new one starts from the old drop rate, in intervals (RFC 8289, section
/// 5.5).
const RECENT_INTERVALS: u64 = 16;

/// Packets with the times at which they came.
pub(crate) struct TimedQueue<P> {
    packets: VecDeque<(u64, u32, P)>,
    bytes: u64,
}

impl<P> TimedQueue<P> {
    pub fn new() -> TimedQueue<P> {
        TimedQueue { packets: VecDeque::new(), bytes: 0 }
    }

    pub fn push(&mut self, now: u64, bytes: u32, packet: P) {
        self.packets.push_back((now, bytes, packet));
        self.bytes += u64::from(bytes);
    }

    /// The oldest packet: (when it came, bytes, packet).
    pub fn pop(&mut self) -> Option<(u64, u32, P)> {
        let oldest = self.packets.pop_front()?;
        self.bytes -= u64::from(oldest.1);
        Some(oldest)
    }

    pub fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodelParams {
    /// ns.
    pub target: u64,
    /// ns, above zero.
    pub interval: u64,
    pub ecn: bool,
}

/// State of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    /// Time at which the delay will have been above the target for an interval; 0: it is not above.
    first_above: u64,
    dropping: bool,
    /// Time at which the next drop is due, in the dropping state.
    drop_next: u64,
    /// Drops since dropping began.
    count: u64,
    /// `count` when dropping last began.
    last_count: u64,
    /// Largest packet seen: a queue of no more than that cannot be shorter.
    max_packet: u64,
}

struct Candidate<P> {
    bytes: u32,
    packet: P,
    may_drop: bool,
}

impl Codel {
    /// The next packet to send at `now`. Drops go to the counters.
    pub fn dequeue<P: Packet>(
        &mut self,
        now: u64,
        params: &CodelParams,
        queue: &mut TimedQueue<P>,
        counters: &mut LinkCounters<P>,
    ) -> Option<(u32, P)> {
        let Some(mut next) = self.take(now, params, queue) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.dropping = next.may_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if mark(params, &mut next, counters) {
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                    break;
                }
                counters.drop_inside(next.packet, DropReason::Aqm);
                let Some(after) = self.take(now, params, queue) else {
                    self.dropping = false;
                    return None;
                };
                next = after;
                self.dropping = next.may_drop;
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                }
            }
        } else if next.may_drop {
            let marked = mark(params, &mut next, counters);
            self.dropping = true;
            // Section 5.5: when the last dropping state ended not long ago, its drop rate is a good start.
            let delta = self.count - self.last_count;
            let recent = now.saturating_sub(self.drop_next) < RECENT_INTERVALS * params.interval;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = control_law(now, params.interval, self.count);
            if !marked {
                counters.drop_inside(next.packet, DropReason::Aqm);
                next = match self.take(now, params, queue) {
                    Some(after) => after,
                    None => {
                        self.dropping = false;
                        return None;
                    }
                };
            }
        }
        Some((next.bytes, next.packet))
    }

    /// `dodequeue` of RFC 8289, section 5.6: the oldest packet, and whether the delay calls for a drop.
    fn take<P>(&mut self, now: u64, params: &CodelParams, queue: &mut TimedQueue<P>) -> Option<Candidate<P>> {
        let Some((came, bytes, packet)) = queue.pop() else {
            self.first_above = 0;
            return None;
        };
        self.max_packet = self.max_packet.max(u64::from(bytes));
        let mut may_drop = false;
        if now.saturating_sub(came) < params.target || queue.bytes() <= self.max_packet {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now.saturating_add(params.interval);
        } else {
            may_drop = now >= self.first_above;
        }
        Some(Candidate { bytes, packet, may_drop })
    }
}

fn mark<P: Packet>(params: &CodelParams, candidate: &mut Candidate<P>, counters: &mut LinkCounters<P>) -> bool {
    let marks = params.ecn && candidate.packet.is_ect();
    if marks {
        candidate.packet.mark_ce();
        counters.stats.marked += 1;
    }
    marks
}

/// The time of the drop after `time`: an interval divided by the square root of the drops so far.
fn control_law(time: u64, interval: u64, count: u64) -> u64 {
    // sqrt(count) with 16 fraction bits; count below 2^32 drops in one state.
    let root = square_root(count.min(u64::from(u32::MAX)) << 32);
    let step = (u128::from(interval) << 16) / u128::from(root.max(1));
    time.saturating_add(step as u64)
}

/// Square root, rounded down: one binary digit after the other.
fn square_root(value: u64) -> u64 {
    let (mut rest, mut root) = (value, 0u64);
    let mut bit = 1u64 << 62;
    while bit != 0 {
        if rest >= root + bit {
            rest -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
        bit >>= 2;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots() {
        for (value, root) in [(0, 0), (1, 1), (3, 1), (4, 2), (99, 9), (100, 10), (u64::MAX, u64::from(u32::MAX))] {
            assert_eq!(square_root(value), root, "root of {value}");
        }
    }

    #[test]
    fn the_control_law_divides_by_the_root_of_the_count() {
        let interval = 100_000_000u64;
        for count in [1u64, 2, 3, 4, 10, 100, 1000] {
            let exact = interval as f64 / (count as f64).sqrt();
            let got = control_law(0, interval, count) as f64;
            assert!((got - exact).abs() / exact < 2e-5, "count {count}: {got} instead of {exact}");
        }
    }
}
