//! Operations of a logical unit on its medium.

use super::sense::Sense;
use wire::iscsi::{Payload, Rope};

/// An operation on a medium, in logical blocks. The logical unit has checked that the blocks are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Read.
    Read {
        /// First block.
        lba: u64,
        /// Blocks.
        blocks: u32,
    },
    /// Write; whole blocks.
    Write {
        /// First block.
        lba: u64,
        /// Data.
        data: Rope,
        /// Done only when it survives a loss of power.
        durable: bool,
        /// Read back and compared.
        verify: bool,
    },
    /// One block's data to many.
    WriteSame {
        /// First block.
        lba: u64,
        /// Blocks.
        blocks: u64,
        /// A block; none: zeros.
        pattern: Option<Payload>,
        /// Blocks need not stay allocated when the pattern is zeros.
        unmap: bool,
        /// As with a write.
        durable: bool,
    },
    /// Blocks that need not stay allocated; they read as zeros afterwards.
    Unmap {
        /// First block and number of each range.
        ranges: Vec<(u64, u32)>,
    },
    /// Compare, and write if equal, with nothing in between.
    CompareAndWrite {
        /// First block.
        lba: u64,
        /// The expected data.
        expected: Rope,
        /// The data to write.
        data: Rope,
        /// As with a write.
        durable: bool,
    },
    /// Write what is there or-ed with the data, with nothing in between.
    OrWrite {
        /// First block.
        lba: u64,
        /// Data.
        data: Rope,
        /// As with a write.
        durable: bool,
    },
    /// Compare with data; whole blocks.
    Compare {
        /// First block.
        lba: u64,
        /// Blocks.
        blocks: u32,
        /// Data.
        data: Rope,
    },
    /// Read without handing out.
    Verify {
        /// First block.
        lba: u64,
        /// Blocks.
        blocks: u32,
    },
    /// Have blocks ready in the cache.
    Prefetch {
        /// First block.
        lba: u64,
        /// Blocks.
        blocks: u64,
    },
    /// Everything that was written survives a loss of power when this is done.
    Flush,
    /// Allocation of the blocks from one on.
    Allocation {
        /// First block.
        lba: u64,
    },
}

impl Op {
    /// Bytes that come back from or go to the medium: what it costs to keep the operation in memory.
    pub fn bytes(&self, block_bytes: u32) -> u64 {
        match self {
            Op::Read { blocks, .. } => u64::from(*blocks) * u64::from(block_bytes),
            Op::Write { data, .. } | Op::OrWrite { data, .. } | Op::Compare { data, .. } => data.len() as u64,
            Op::CompareAndWrite { data, .. } => 2 * data.len() as u64,
            _ => 0,
        }
    }
}

/// The outcome of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done.
    Done,
    /// Done, with data.
    Data(Payload),
    /// Compared data differ from this byte on.
    Miscompare(u64),
    /// First block, number and whether allocated, in order, without gaps; at least one.
    Allocation(Vec<(u64, u32, bool)>),
    /// Not done.
    Failed(MediumError),
}

/// Reason for which an operation was not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MediumError {
    /// Data cannot be read.
    Read,
    /// Data cannot be written.
    Write,
    /// There is no room left for it.
    NoSpace,
}

impl From<MediumError> for Sense {
    fn from(error: MediumError) -> Sense {
        match error {
            MediumError::Read => Sense::READ_ERROR,
            MediumError::Write => Sense::WRITE_ERROR,
            MediumError::NoSpace => Sense::NO_SPACE,
        }
    }
}

/// A store of blocks whose operations take no simulated time.
pub trait Medium {
    /// Performs an operation.
    fn perform(&self, op: &Op) -> Outcome;
}

/// A medium in memory.
#[derive(Debug)]
pub struct Memory {
    block_bytes: usize,
    bytes: std::sync::Mutex<(Vec<u8>, Vec<bool>)>,
}

impl Memory {
    /// Zeros, not allocated.
    pub fn new(blocks: u64, block_bytes: u32) -> Memory {
        let block_bytes = block_bytes as usize;
        let blocks = blocks as usize;
        Memory { block_bytes, bytes: (vec![0; blocks * block_bytes], vec![false; blocks]).into() }
    }

    fn range(&self, lba: u64, blocks: u64) -> std::ops::Range<usize> {
        let start = lba as usize * self.block_bytes;
        start..start + blocks as usize * self.block_bytes
    }
}

/// First place where two differ.
fn difference(a: &[u8], b: &[u8]) -> Option<u64> {
    a.iter().zip(b).position(|(a, b)| a != b).map(|at| at as u64)
}

impl Medium for Memory {
    fn perform(&self, op: &Op) -> Outcome {
        // A panic elsewhere leaves bytes, never half a state.
        let mut guard = self.bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (bytes, mapped) = &mut *guard;
        let count = |data: &Rope| (data.len() / self.block_bytes) as u64;
        let mark = |mapped: &mut [bool], lba: u64, blocks: u64, value: bool| {
            mapped[lba as usize..(lba + blocks) as usize].fill(value);
        };
        match op {
            Op::Read { lba, blocks } => Outcome::Data(bytes[self.range(*lba, u64::from(*blocks))].to_vec().into()),
            Op::Write { lba, data, .. } => {
                bytes[self.range(*lba, count(data))].copy_from_slice(&data.to_payload().to_bytes());
                mark(mapped, *lba, count(data), true);
                Outcome::Done
            }
            Op::WriteSame { lba, blocks, pattern, unmap, .. } => {
                let pattern = pattern.as_ref().map(Payload::to_bytes);
                let zeros = !pattern.as_ref().is_some_and(|p| p.iter().any(|&byte| byte != 0));
                for block in bytes[self.range(*lba, *blocks)].chunks_mut(self.block_bytes) {
                    match &pattern {
                        Some(pattern) => block.copy_from_slice(pattern),
                        None => block.fill(0),
                    }
                }
                mark(mapped, *lba, *blocks, !(*unmap && zeros));
                Outcome::Done
            }
            Op::Unmap { ranges } => {
                for &(lba, blocks) in ranges {
                    bytes[self.range(lba, u64::from(blocks))].fill(0);
                    mark(mapped, lba, u64::from(blocks), false);
                }
                Outcome::Done
            }
            Op::CompareAndWrite { lba, expected, data, .. } => {
                let there = &mut bytes[self.range(*lba, count(data))];
                if let Some(at) = difference(there, &expected.to_payload().to_bytes()) {
                    return Outcome::Miscompare(at);
                }
                there.copy_from_slice(&data.to_payload().to_bytes());
                mark(mapped, *lba, count(data), true);
                Outcome::Done
            }
            Op::OrWrite { lba, data, .. } => {
                let there = bytes[self.range(*lba, count(data))].iter_mut();
                there.zip(data.to_payload().to_bytes().iter()).for_each(|(there, more)| *there |= more);
                mark(mapped, *lba, count(data), true);
                Outcome::Done
            }
            Op::Compare { lba, blocks, data } => {
                let there = &bytes[self.range(*lba, u64::from(*blocks))];
                match difference(there, &data.to_payload().to_bytes()) {
                    Some(at) => Outcome::Miscompare(at),
                    None => Outcome::Done,
                }
            }
            Op::Allocation { lba } => {
                let rest = &mapped[*lba as usize..];
                let run = rest.iter().take_while(|&&value| value == rest[0]).count();
                Outcome::Allocation(vec![(*lba, run as u32, rest[0])])
            }
            Op::Verify { .. } | Op::Prefetch { .. } | Op::Flush => Outcome::Done,
        }
    }
}
