//! How a file is cut into chunks.

/// Least bytes of a chunk that is not asked for: a frame's head costs below 0.03 % of it.
const CHUNK_MIN: u64 = 256 << 10;
/// Most bytes of a chunk.
pub const CHUNK_MAX: u64 = 16 << 20;
/// Chunks of a file that the plan aims at: 16,384 hashes are 512 KiB, and 10 GB are in chunks of 1 MiB.
const CHUNKS_AIM: u64 = 16_384;
/// Largest file: chunks of 16 MiB then are 2^39, far beyond what memory holds hashes for.
pub const FILE_MAX: u64 = 1 << 63;

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
    pub fn hasher(&self, chunk: u64) -> crate::tree::ChunkHasher {
        crate::tree::ChunkHasher::new(self.begin(chunk), self.count() == 1)
    }
}

/// Chunks of a file with their hashes, as far as they are known.
#[derive(Clone, Debug)]
pub struct ChunkHashes {
    hashes: Vec<Option<crate::tree::ChunkHash>>,
    missing: u64,
}

impl ChunkHashes {
    /// None known.
    pub fn new(plan: &Plan) -> ChunkHashes {
        ChunkHashes { hashes: vec![None; plan.count() as usize], missing: plan.count() }
    }

    /// Takes one; true if it was not known.
    pub fn set(&mut self, chunk: u64, hash: crate::tree::ChunkHash) -> bool {
        let place = &mut self.hashes[chunk as usize];
        let is_new = place.is_none();
        *place = Some(hash);
        self.missing -= u64::from(is_new);
        is_new
    }

    /// Forgets one.
    pub fn clear(&mut self, chunk: u64) {
        if self.hashes[chunk as usize].take().is_some() {
            self.missing += 1;
        }
    }

    /// One that is known.
    pub fn get(&self, chunk: u64) -> Option<crate::tree::ChunkHash> {
        self.hashes.get(chunk as usize).copied().flatten()
    }

    /// Chunks that are not known.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Runs (begin, end) of chunks that are not known.
    pub fn missing_runs(&self) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = vec![];
        for (index, _) in self.hashes.iter().enumerate().filter(|(_, hash)| hash.is_none()) {
            let index = index as u64;
            match runs.last_mut() {
                Some(last) if last.1 == index => last.1 += 1,
                _ => runs.push((index, index + 1)),
            }
        }
        runs
    }

    /// Hash of the file, if all are known.
    pub fn file_hash(&self) -> Option<[u8; 32]> {
        let all: Option<Vec<crate::tree::ChunkHash>> = self.hashes.iter().copied().collect();
        all.map(|all| crate::tree::file_hash(&all))
    }
}
