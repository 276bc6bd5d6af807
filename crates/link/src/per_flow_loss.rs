//! Independent losses, drawn for each flow from a stream of its own.

use crate::random::{stream_seed, Geometric, Random};
use std::num::NonZeroU32;

/// Initial slots of the index; a power of two.
const INITIAL_SLOTS: usize = 8;

/// Position in `streams`, stored as position + 1 so that an empty slot of the index takes no more space.
#[derive(Clone, Copy)]
struct StreamId(NonZeroU32);

impl StreamId {
    fn new(position: usize) -> StreamId {
        let number = u32::try_from(position + 1).ok().and_then(NonZeroU32::new);
        StreamId(number.expect("fewer than 2^32 flows"))
    }

    fn position(self) -> usize {
        self.0.get() as usize - 1
    }
}

struct FlowStream {
    flow: u64,
    /// Packets (or bits) before this flow's next loss; out of date while the flow is the present one.
    gap: u64,
    random: Random,
}

/// A stream of losses per flow: 48 bytes each. The caller keeps the gap of the present flow; a packet of another flow
/// costs a hash table look-up.
pub(crate) struct PerFlowLoss {
    distance: Geometric,
    seed: u64,
    streams: Vec<FlowStream>,
    /// Streams by hash of the flow, open addressing; at most half full.
    index: Vec<Option<StreamId>>,
    /// Position of the present flow's stream; ignored while there is no stream.
    present: usize,
}

impl PerFlowLoss {
    pub fn new(distance: Geometric, seed: u64) -> PerFlowLoss {
        PerFlowLoss { distance, seed, streams: Vec::new(), index: vec![None; INITIAL_SLOTS], present: 0 }
    }

    /// Stores `gap` of the present flow, makes `flow` the present one and returns its gap.
    pub fn switch(&mut self, flow: u64, gap: u64) -> u64 {
        if let Some(stream) = self.streams.get_mut(self.present) {
            stream.gap = gap;
        }
        self.present = self.find(flow);
        self.streams[self.present].gap
    }

    /// The next distance of the present flow.
    pub fn draw(&mut self) -> u64 {
        self.distance.sample(&mut self.streams[self.present].random)
    }

    fn find(&mut self, flow: u64) -> usize {
        let slot = self.slot(flow);
        match self.index[slot] {
            None => self.add(flow, slot),
            Some(stream) => stream.position(),
        }
    }

    /// The slot of `flow` in the index, or the empty slot for it.
    fn slot(&self, flow: u64) -> usize {
        let mask = self.index.len() - 1;
        // Fibonacci hashing (Knuth, volume 3, section 6.4): the high half of a product with 2^64 / golden ratio.
        let mut slot = (flow.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        loop {
            match self.index[slot] {
                None => return slot,
                Some(stream) if self.streams[stream.position()].flow == flow => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    #[cold]
    fn add(&mut self, flow: u64, slot: usize) -> usize {
        let mut random = Random::new(stream_seed(self.seed, &format!("flow/{flow}")));
        let gap = self.distance.sample(&mut random);
        let number = self.streams.len();
        self.streams.push(FlowStream { flow, gap, random });
        self.index[slot] = Some(StreamId::new(number));
        if 2 * self.streams.len() > self.index.len() {
            self.index = vec![None; 2 * self.index.len()];
            for number in 0..self.streams.len() {
                let slot = self.slot(self.streams[number].flow);
                self.index[slot] = Some(StreamId::new(number));
            }
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances that `flow` draws when `others` draw as many each.
    fn distances(flow: u64, others: &[u64]) -> Vec<u64> {
        let mut streams = PerFlowLoss::new(Geometric::new(1, 100), 3);
        let mut gap = streams.switch(u64::MAX, 0);
        let mut drawn = vec![];
        for _ in 0..100 {
            for &other in others {
                streams.switch(other, gap);
                gap = streams.draw();
            }
            drawn.push(streams.switch(flow, gap));
            gap = streams.draw();
        }
        drawn
    }

    #[test]
    fn other_flows_do_not_change_what_a_flow_loses() {
        let alone = distances(7, &[]);
        assert_eq!(distances(7, &[1]), alone);
        let many: Vec<u64> = (100..1100).map(|i| i * 0x1_0000_0001).collect();
        assert_eq!(distances(7, &many), alone);
        assert_ne!(distances(8, &[]), alone);
    }
}
