//! Independent losses, drawn for each flow from a stream of its own.

use crate::random::{stream_seed, Geometric, Random};

/// An empty place of the index.
const EMPTY: u32 = u32::MAX;
/// Places of the index at first; a power of two.
const PLACES: usize = 8;

struct Stream {
    flow: u64,
    /// Packets, or bits, that still pass before this flow's next loss.
    gap: u64,
    random: Random,
}

/// The flows seen so far and what each will lose. 48 bytes per flow, and a packet costs a comparison while its flow has the
/// line to itself, a look into a hash table otherwise.
pub(crate) struct Streams {
    distance: Geometric,
    /// Whether distances count bits.
    by_bits: bool,
    seed: u64,
    streams: Vec<Stream>,
    /// Numbers of streams by hash of the flow, open addressing; at most half full.
    index: Vec<u32>,
    /// The stream of the packet before.
    last: usize,
}

impl Streams {
    pub fn new(distance: Geometric, by_bits: bool, seed: u64) -> Streams {
        Streams { distance, by_bits, seed, streams: Vec::new(), index: vec![EMPTY; PLACES], last: 0 }
    }

    /// Whether the next packet of `flow` is lost.
    #[inline]
    pub fn takes(&mut self, bytes: u32, flow: u64) -> bool {
        let same = self.streams.get(self.last).map(|stream| stream.flow) == Some(flow);
        if !same {
            self.last = self.find(flow);
        }
        let distance = if self.by_bits { u64::from(bytes) * 8 } else { 1 };
        let stream = &mut self.streams[self.last];
        if stream.gap >= distance {
            stream.gap -= distance;
            return false;
        }
        // A bit error ends its packet: what follows it there does not matter, and the bits of the next packet know nothing
        // of it.
        stream.gap = self.distance.sample(&mut stream.random);
        true
    }

    fn find(&mut self, flow: u64) -> usize {
        let place = self.place(flow);
        match self.index[place] {
            EMPTY => self.add(flow, place),
            number => number as usize,
        }
    }

    /// The place of `flow` in the index, or the empty one where it belongs.
    fn place(&self, flow: u64) -> usize {
        let mask = self.index.len() - 1;
        // Fibonacci hashing (Knuth, volume 3, section 6.4): the high half of a product with 2^64 / golden ratio.
        let mut place = (flow.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask;
        loop {
            match self.index[place] {
                EMPTY => return place,
                number if self.streams[number as usize].flow == flow => return place,
                _ => place = (place + 1) & mask,
            }
        }
    }

    #[cold]
    fn add(&mut self, flow: u64, place: usize) -> usize {
        let mut random = Random::new(stream_seed(self.seed, &format!("flow/{flow}")));
        let gap = self.distance.sample(&mut random);
        let number = self.streams.len();
        self.streams.push(Stream { flow, gap, random });
        self.index[place] = number as u32;
        if 2 * self.streams.len() > self.index.len() {
            self.index = vec![EMPTY; 2 * self.index.len()];
            for number in 0..self.streams.len() {
                let place = self.place(self.streams[number].flow);
                self.index[place] = number as u32;
            }
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the flow's first `n` packets are lost when `others` send as many each.
    fn losses(flow: u64, others: &[u64], n: u64) -> Vec<u64> {
        let mut streams = Streams::new(Geometric::new(1, 100), false, 3);
        let mut lost = vec![];
        for number in 0..n {
            for &other in others {
                streams.takes(1500, other);
            }
            if streams.takes(1500, flow) {
                lost.push(number);
            }
        }
        lost
    }

    #[test]
    fn other_flows_do_not_change_what_a_flow_loses() {
        let alone = losses(7, &[], 20_000);
        assert!(alone.len() > 100);
        assert_eq!(losses(7, &[1], 20_000), alone);
        let many: Vec<u64> = (100..1100).map(|i| i * 0x1_0000_0001).collect();
        assert_eq!(losses(7, &many, 2_000), alone.iter().copied().filter(|&n| n < 2_000).collect::<Vec<_>>());
        assert_ne!(losses(8, &[], 20_000), alone);
    }
}
