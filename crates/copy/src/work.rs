//! Work of the sender's streams: chunks in order, lost ones first, small files many at once.

use crate::plan::Plan;
use crate::tree::ChunkHash;
use std::collections::VecDeque;

/// Chunks that a thread takes at once, at most: so many small files share a trip to the queue and a write.
const BATCH: usize = 128;

/// One chunk to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The entry.
    pub number: u64,
    /// Of which try.
    pub generation: u32,
    /// Chunk of the file.
    pub chunk: u64,
    /// The action.
    pub action: Action,
}

/// Action on a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read, hash, send.
    Send,
    /// Send if its hash is another.
    Compare(ChunkHash),
    /// Read and hash: the receiver has it, and the sender's journal lacks its hash.
    Hash,
}

#[derive(Debug)]
struct Job {
    number: u64,
    generation: u32,
    begin: u64,
    end: u64,
    compare: Vec<ChunkHash>,
    plan: Plan,
}

/// The queue of all streams.
#[derive(Debug, Default)]
pub struct Work {
    again: VecDeque<Task>,
    jobs: VecDeque<Job>,
    hash_only: VecDeque<Task>,
}

impl Work {
    /// Chunks [begin, end) of a file.
    pub fn push(&mut self, number: u64, generation: u32, begin: u64, end: u64, plan: Plan) {
        self.jobs.push_back(Job { number, generation, begin, end, compare: vec![], plan });
    }

    /// Chunks from `begin` on that are sent if they have another hash.
    pub fn push_compare(&mut self, number: u64, generation: u32, begin: u64, hashes: Vec<ChunkHash>, plan: Plan) {
        let end = begin + hashes.len() as u64;
        self.jobs.push_back(Job { number, generation, begin, end, compare: hashes, plan });
    }

    /// A chunk that was lost with its stream.
    pub fn push_again(&mut self, task: Task) {
        self.again.push_back(task);
    }

    /// A chunk that is to be hashed alone, when nothing is to be sent.
    pub fn push_hash(&mut self, task: Task) {
        self.hash_only.push_back(task);
    }

    /// Nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.again.is_empty() && self.jobs.is_empty() && self.hash_only.is_empty()
    }

    /// Runs of chunks that wait.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Takes chunks of about `bytes` in all into `out`.
    pub fn take(&mut self, bytes: u64, out: &mut Vec<Task>) {
        if let Some(task) = self.again.pop_front() {
            out.push(task);
            return;
        }
        let mut taken = 0;
        while taken < bytes && out.len() < BATCH {
            let Some(job) = self.jobs.front_mut() else { break };
            let chunk = job.begin;
            let length = job.plan.length(chunk);
            if taken > 0 && taken + length > bytes {
                break;
            }
            let action = match job.compare.is_empty() {
                true => Action::Send,
                false => Action::Compare(job.compare[job.compare.len() - (job.end - chunk) as usize]),
            };
            out.push(Task { number: job.number, generation: job.generation, chunk, action });
            taken += length;
            job.begin += 1;
            if job.begin >= job.end {
                self.jobs.pop_front();
            }
        }
        if out.is_empty() {
            out.extend(self.hash_only.pop_front());
        }
    }
}
