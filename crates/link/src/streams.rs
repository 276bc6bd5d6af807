//! Independent losses, drawn for each flow from a stream of its own.

use crate::random::{stream_seed, Geometric, Random};

/// An empty place of the index.
const EMPTY: u32 = u32::MAX;
/// Places of the index at first; a power of two.
const PLACES: usize = 8;

struct Stream {
    flow: u64,
    /// Packets, or bits, that still pass before this flow's next loss; out of date while the flow is the present one.
    gap: u64,
    random: Random,
}

/// The flows seen so far and what each will lose: 48 bytes per flow. The caller keeps the distance of the present flow; a packet
/// of another one costs a look into a hash table.
pub(crate) struct Streams {
    distance: Geometric,
    seed: u64,
    streams: Vec<Stream>,
    /// Numbers of streams by hash of the flow, open addressing; at most half full.
    index: Vec<u32>,
    /// The present flow's stream; meaningful when there is one.
    present: usize,
}

impl Streams {
    pub fn new(distance: Geometric, seed: u64) -> Streams {
        Streams { distance, seed, streams: Vec::new(), index: vec![EMPTY; PLACES], present: 0 }
    }

    /// Puts away the distance `gap` of the present flow (without meaning before the first), and makes `flow` the present one:
    /// its distance.
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

    /// Distances that `flow` draws when `others` draw as many each.
    fn distances(flow: u64, others: &[u64]) -> Vec<u64> {
        let mut streams = Streams::new(Geometric::new(1, 100), 3);
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
