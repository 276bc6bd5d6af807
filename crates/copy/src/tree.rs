//! BLAKE3 trees: chunks are subtrees, so that each can be checked alone and the file's hash is what `b3sum` prints.

use blake3::hazmat::{merge_subtrees_non_root, merge_subtrees_root, HasherExt, Mode};

/// Hash of a chunk: the chaining value of its subtree, or the hash itself where the chunk is the whole file.
pub type ChunkHash = [u8; 32];

/// Hashes one chunk while it comes.
#[derive(Clone, Debug)]
pub struct ChunkHasher {
    hasher: blake3::Hasher,
    is_whole: bool,
}

impl ChunkHasher {
    /// A chunk that begins at `offset`, a multiple of its length's power of two; `is_whole`: the file has no other.
    pub fn new(offset: u64, is_whole: bool) -> ChunkHasher {
        let mut hasher = blake3::Hasher::new();
        if !is_whole {
            hasher.set_input_offset(offset);
        }
        ChunkHasher { hasher, is_whole }
    }

    /// The next bytes.
    pub fn update(&mut self, data: &[u8]) {
        self.hasher.update(data);
    }

    /// The next bytes, all zero.
    pub fn zeros(&mut self, mut count: u64) {
        static ZEROS: [u8; 65536] = [0; 65536];
        while count > 0 {
            let step = count.min(ZEROS.len() as u64);
            self.hasher.update(&ZEROS[..step as usize]);
            count -= step;
        }
    }

    /// After the last byte. The chunk is not empty, or it is the whole file.
    pub fn finish(&self) -> ChunkHash {
        if self.is_whole {
            *self.hasher.finalize().as_bytes()
        } else {
            self.hasher.finalize_non_root()
        }
    }
}

/// Hash of the file whose chunks these are, in order; all have one power-of-two length, the last may be shorter.
pub fn file_hash(chunks: &[ChunkHash]) -> [u8; 32] {
    match chunks {
        [] => *blake3::hash(b"").as_bytes(),
        [whole] => *whole,
        _ => {
            let (left, right) = chunks.split_at(left_count(chunks.len()));
            *merge_subtrees_root(&merged(left), &merged(right), Mode::Hash).as_bytes()
        }
    }
}

/// The left subtree has the largest power of two that leaves something for the right one (BLAKE3, section 2.1).
fn left_count(count: usize) -> usize {
    1 << (usize::BITS - 1 - (count - 1).leading_zeros())
}

fn merged(chunks: &[ChunkHash]) -> ChunkHash {
    match chunks {
        [one] => *one,
        _ => {
            let (left, right) = chunks.split_at(left_count(chunks.len()));
            merge_subtrees_non_root(&merged(left), &merged(right), Mode::Hash)
        }
    }
}
