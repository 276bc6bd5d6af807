//! The drive's memory: segments, and which of them serves a request.

use super::spec::Buffer;

/// The contents of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    #[default]
    Empty,
    /// Blocks that are on the medium too.
    Clean,
    /// Blocks that are being read into it.
    Reading,
    /// Blocks that are on their way to the medium.
    Writing,
}

/// One segment: the blocks from `start` to before `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    pub state: State,
    pub start: u64,
    pub end: u64,
    /// Reading ahead goes to before this block.
    pub limit: u64,
    /// Its last use was a write.
    pub written: bool,
    /// Number of its last use; 0: none.
    pub used: u64,
}

/// The part of a read that is in the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheHit {
    /// Not at all.
    None,
    /// Its first blocks.
    Part,
    /// All of it.
    Whole,
}

/// All segments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segments {
    all: Vec<Segment>,
    uses: u64,
}

impl Segments {
    pub fn new(buffer: &Buffer) -> Segments {
        Segments { all: vec![Segment::default(); buffer.segments], uses: 0 }
    }

    pub fn get(&self, index: usize) -> &Segment {
        &self.all[index]
    }

    pub fn get_mut(&mut self, index: usize) -> &mut Segment {
        &mut self.all[index]
    }

    /// Returns whether this segment is the one used last.
    pub fn is_latest(&self, index: usize) -> bool {
        self.uses > 0 && self.all[index].used == self.uses
    }

    /// Notes a use.
    pub fn touch(&mut self, index: usize) {
        self.uses += 1;
        self.all[index].used = self.uses;
    }

    /// Keeps what a segment has room for: its last blocks.
    pub fn wrap(&mut self, index: usize, buffer: &Buffer) {
        let segment = &mut self.all[index];
        segment.start = segment.start.max(segment.end.saturating_sub(buffer.blocks));
    }

    /// The segment for a read of `blocks` blocks from `block`, and how much of it is there. The fullest hit is taken,
    /// of equal ones the freshest data (being written, being read, clean); without a hit an empty segment, then the
    /// one that was used longest ago, and only at last the one that is being filled.
    pub fn for_read(&self, buffer: &Buffer, block: u64, blocks: u64) -> (usize, CacheHit) {
        let mut best = (0, 0, 0, CacheHit::None);
        for (index, segment) in self.all.iter().enumerate() {
            if buffer.write_segment && index == 0 {
                continue;
            }
            let within = segment.start <= block && block < segment.end;
            let there = buffer.enabled && (!segment.written || buffer.hit_on_written);
            let nearly = buffer.almost_hit && segment.state == State::Reading && segment.end == block;
            let (value, hit) = match segment.state {
                State::Empty => (3, CacheHit::None),
                state if there && (within || nearly) => {
                    let fresh = match state {
                        State::Writing => 10,
                        State::Reading => 9,
                        _ => 8,
                    };
                    if block + blocks <= segment.end {
                        (fresh, CacheHit::Whole)
                    } else {
                        (fresh - 4, CacheHit::Part)
                    }
                }
                State::Clean => (2, CacheHit::None),
                State::Reading => (1, CacheHit::None),
                State::Writing => continue,
            };
            if value > best.0 || (value == best.0 && segment.used < best.1) {
                best = (value, segment.used, index, hit);
            }
        }
        (best.2, best.3)
    }

    /// The segment for a write of `blocks` blocks from `block`: one that holds some of these blocks, an empty one, the
    /// one used longest ago. Whatever other segments hold of these blocks is no longer true and is given up.
    pub fn for_write(&mut self, buffer: &Buffer, block: u64, blocks: u64) -> usize {
        let overlaps = |segment: &Segment| segment.start < block + blocks && block < segment.end;
        let chosen = if buffer.write_segment {
            0
        } else {
            let rank = |segment: &Segment| match segment.state {
                State::Clean if overlaps(segment) => 0,
                State::Empty => 1,
                State::Clean => 2,
                State::Reading => 3,
                State::Writing => 4,
            };
            let ranked = self.all.iter().enumerate().map(|(index, s)| (rank(s), s.used, index));
            ranked.min().map_or(0, |(_, _, index)| index)
        };
        for (index, segment) in self.all.iter_mut().enumerate() {
            if index != chosen && segment.state == State::Clean && overlaps(segment) {
                segment.state = State::Empty;
            }
        }
        chosen
    }
}
