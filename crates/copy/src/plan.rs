//! Chunks of a file.

use crate::tree::{file_hash, ChunkHash, ChunkHasher};
use std::collections::BTreeMap;

/// Least bytes of a chunk that is not asked for: a frame's head costs below 0.03 % of it.
const CHUNK_MIN: u64 = 256 << 10;
/// Most bytes of a chunk.
pub const CHUNK_MAX: u64 = 16 << 20;
/// Chunks of a file that the plan aims at: 16,384 hashes are 512 KiB, and 10 GB are in chunks of 1 MiB.
const CHUNKS_AIM: u64 = 16_384;
/// Largest file, 2^60 bytes: 64 Gi chunks of 16 MiB; sums of sizes stay below 2^63 for eight of them.
pub const FILE_MAX: u64 = 1 << 60;

/// Chunks of one file. All are `chunk` bytes, a power of two; the last one may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    size: u64,
    chunk: u64,
}

impl Plan {
    /// Of a file of `size` bytes; `asked`: the option `chunk_bytes`.
    pub fn new(size: u64, asked: Option<u32>) -> Plan {
        let chunk = match asked {
            Some(asked) => u64::from(asked),
            None => (size / CHUNKS_AIM).next_power_of_two().clamp(CHUNK_MIN, CHUNK_MAX),
        };
        Plan { size, chunk }
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of a chunk that is not the last.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk
    }

    /// Chunks; an empty file has one of no bytes, so that it comes the same way as others.
    pub fn count(&self) -> u64 {
        self.size.div_ceil(self.chunk).max(1)
    }

    /// First byte of a chunk.
    pub fn begin(&self, chunk: u64) -> u64 {
        chunk.saturating_mul(self.chunk).min(self.size)
    }

    /// Bytes of a chunk: at most [`CHUNK_MAX`].
    pub fn length(&self, chunk: u64) -> u64 {
        self.chunk.min(self.size - self.begin(chunk))
    }

    /// Hasher of a chunk.
    pub fn hasher(&self, chunk: u64) -> ChunkHasher {
        ChunkHasher::new(self.begin(chunk), self.count() == 1)
    }
}

/// Hashes that are kept together.
const BLOCK: u64 = 256;

/// Chunks of a file with their hashes, as far as they are known. Memory follows the chunks that are known, whatever
/// size another host says a file has.
#[derive(Clone, Debug)]
pub struct ChunkHashes {
    blocks: BTreeMap<u64, Vec<Option<ChunkHash>>>,
    count: u64,
    missing: u64,
}

impl ChunkHashes {
    /// None known.
    pub fn new(plan: &Plan) -> ChunkHashes {
        ChunkHashes { blocks: BTreeMap::new(), count: plan.count(), missing: plan.count() }
    }

    fn place(&mut self, chunk: u64) -> &mut Option<ChunkHash> {
        let begin = chunk / BLOCK * BLOCK;
        let length = (self.count - begin).min(BLOCK) as usize;
        let block = self.blocks.entry(begin).or_insert_with(|| vec![None; length]);
        &mut block[(chunk - begin) as usize]
    }

    /// Takes one; true if it was not known.
    pub fn set(&mut self, chunk: u64, hash: ChunkHash) -> bool {
        let is_new = self.place(chunk).replace(hash).is_none();
        self.missing -= u64::from(is_new);
        is_new
    }

    /// Forgets one.
    pub fn clear(&mut self, chunk: u64) {
        if self.get(chunk).is_some() {
            *self.place(chunk) = None;
            self.missing += 1;
        }
    }

    /// One that is known.
    pub fn get(&self, chunk: u64) -> Option<ChunkHash> {
        self.blocks.get(&(chunk / BLOCK * BLOCK))?.get((chunk % BLOCK) as usize).copied().flatten()
    }

    /// Chunks that are not known.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Runs (begin, end) of chunks that are not known.
    pub fn missing_runs(&self) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = vec![];
        let mut add = |begin: u64, end: u64| match runs.last_mut() {
            Some(last) if last.1 == begin => last.1 = end,
            _ if begin < end => runs.push((begin, end)),
            _ => {}
        };
        let mut at = 0;
        for (&begin, block) in &self.blocks {
            add(at, begin);
            for (chunk, _) in (begin..).zip(block).filter(|(_, hash)| hash.is_none()) {
                add(chunk, chunk + 1);
            }
            at = begin + block.len() as u64;
        }
        add(at, self.count);
        runs
    }

    /// Hash of the file, if all are known.
    pub fn file_hash(&self) -> Option<[u8; 32]> {
        if self.missing > 0 {
            return None;
        }
        let all: Option<Vec<ChunkHash>> = self.blocks.values().flatten().copied().collect();
        all.map(|all| file_hash(&all))
    }
}
