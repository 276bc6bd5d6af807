//! The losses of a line for packets whose sizes repeat, found without the packets.

use crate::config::LinkConfig;
use crate::loss::Loss;
use crate::random::stream_seed;

/// Numbers, from 0, of the packets of one flow that a line loses: as a [`crate::PrecomputedLink`] of the same
/// configuration and seed that meets them one by one. Costs the losses, not the packets.
pub struct LossSchedule {
    loss: Loss,
    flow: u64,
    /// Sizes of a round of packets, bytes.
    round: Vec<u32>,
    /// Distance (packets, or bits) from the beginning of a round to the end of each of its packets.
    ends: Vec<u64>,
    /// Number of the first packet that has not been passed.
    next: u64,
}

impl LossSchedule {
    /// Of a line from a checked configuration, `seed` being that of the link, for packets of flow `flow`
    /// ([`crate::Packet::flow_hash`]) with the sizes `round`, bytes, over and over.
    ///
    /// # Panics
    /// When `round` is empty.
    pub fn new(config: &LinkConfig, seed: u64, flow: u64, round: &[u32]) -> LossSchedule {
        assert!(!round.is_empty(), "a round has at least one packet");
        let loss = Loss::new(&config.loss, config.framing, stream_seed(seed, "loss"));
        let mut end = 0;
        let ends = round.iter().map(|&bytes| {
            end += loss.distance(bytes);
            end
        });
        let ends = ends.collect();
        LossSchedule { loss, flow, round: round.to_vec(), ends, next: 0 }
    }

    /// Number of the next packet that is lost if all enter the line from here on; None: none ever.
    pub fn peek(&mut self) -> Option<u64> {
        let gap = self.loss.gap_of(self.flow);
        if gap == u64::MAX {
            return None;
        }
        let round = u128::from(self.ends[self.ends.len() - 1]);
        let target = self.distance_to(self.next) + u128::from(gap);
        let place = self.ends.partition_point(|&end| u128::from(end) <= target % round) as u128;
        u64::try_from(target / round * self.ends.len() as u128 + place).ok()
    }

    /// Passes the packet that [`LossSchedule::peek`] names, which is lost.
    pub fn pass_loss(&mut self) {
        let Some(number) = self.peek() else { return };
        self.advance(number);
        let lost = self.loss.loses(self.round[(number % self.round.len() as u64) as usize], || self.flow);
        debug_assert!(lost, "the packet at the end of the distance is the lost one");
        self.next = number + 1;
    }

    /// Passes packet `number`, before that of [`LossSchedule::peek`] and not before one that was passed: it does not
    /// enter the line.
    pub fn leave_out(&mut self, number: u64) {
        self.advance(number);
        self.next = number + 1;
    }

    /// Passes the packets before `number`, none of which is lost.
    fn advance(&mut self, number: u64) {
        let distance = self.distance_to(number) - self.distance_to(self.next);
        self.loss.pass(self.flow, u64::try_from(distance).unwrap_or(u64::MAX));
    }

    /// Distance from the first packet to the beginning of packet `number`.
    fn distance_to(&self, number: u64) -> u128 {
        let (rounds, place) = (number / self.ends.len() as u64, (number % self.ends.len() as u64) as usize);
        let before = if place == 0 { 0 } else { self.ends[place - 1] };
        u128::from(rounds) * u128::from(self.ends[self.ends.len() - 1]) + u128::from(before)
    }
}
