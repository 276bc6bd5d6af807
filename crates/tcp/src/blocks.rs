//! A queue in fixed blocks, addressed by an index that only grows; nothing is copied when it grows.

use std::collections::VecDeque;

/// Elements per block. Small, so that a thousand small windows do not each keep a large block that is nearly empty:
/// half of one is unused at either end of a queue.
const BLOCK: usize = 64;
const BLOCK_BITS: u32 = BLOCK.trailing_zeros();

type Block<T> = Box<[T; BLOCK]>;

/// A queue of `T`.
#[derive(Clone, Debug)]
pub struct Blocks<T> {
    blocks: VecDeque<Block<T>>,
    /// An empty block kept for reuse; more are given back, so that memory follows what is in the queue.
    spare: Option<Block<T>>,
    /// Index of the first element of the first block.
    base: u64,
}

impl<T: Copy + Default> Default for Blocks<T> {
    fn default() -> Self {
        Blocks { blocks: VecDeque::new(), spare: None, base: 0 }
    }
}

impl<T: Copy + Default> Blocks<T> {
    #[inline]
    pub fn get(&self, index: u64) -> &T {
        let at = (index - self.base) as usize;
        &self.blocks[at >> BLOCK_BITS][at & (BLOCK - 1)]
    }

    #[inline]
    pub fn get_mut(&mut self, index: u64) -> &mut T {
        let at = (index - self.base) as usize;
        &mut self.blocks[at >> BLOCK_BITS][at & (BLOCK - 1)]
    }

    /// The contiguous elements from `from` on, up to `to`. Empty only for an empty range.
    #[inline]
    pub fn piece(&self, from: u64, to: u64) -> &[T] {
        let at = (from - self.base) as usize;
        let start = at & (BLOCK - 1);
        let end = BLOCK.min(start + (to - from) as usize);
        &self.blocks[at >> BLOCK_BITS][start..end]
    }

    /// The first block and the place of `head`, of which [`Blocks::forget_below`] was told, in it.
    #[inline]
    pub fn head_block(&self, head: u64) -> Option<(&[T; BLOCK], usize)> {
        let start = (head - self.base) as usize & (BLOCK - 1);
        self.blocks.front().map(|block| (&**block, start))
    }

    /// As [`Blocks::room`] if that is within the last block; None where another one begins.
    #[inline]
    pub fn back_room(&mut self, index: u64) -> Option<&mut [T]> {
        let start = (index - self.base) as usize & (BLOCK - 1);
        if start == 0 {
            return None;
        }
        self.blocks.back_mut().map(|block| &mut block[start..])
    }

    /// Room in one piece for elements from `index`, the next to come, on: at least one.
    #[inline]
    pub fn room(&mut self, index: u64) -> &mut [T] {
        let at = (index - self.base) as usize;
        if at >> BLOCK_BITS == self.blocks.len() {
            self.grow();
        }
        &mut self.blocks[at >> BLOCK_BITS][at & (BLOCK - 1)..]
    }

    #[cold]
    fn grow(&mut self) {
        let block = self.spare.take().unwrap_or_else(|| Box::new([T::default(); BLOCK]));
        self.blocks.push_back(block);
    }

    /// Elements below `head` are of no use any more.
    #[inline]
    pub fn forget_below(&mut self, head: u64) {
        while head - self.base >= BLOCK as u64 {
            self.recycle();
        }
    }

    #[cold]
    fn recycle(&mut self) {
        self.base += BLOCK as u64;
        let block = self.blocks.pop_front();
        self.spare = self.spare.take().or(block);
    }

    #[cfg(test)]
    pub fn blocks(&self) -> usize {
        self.blocks.len() + usize::from(self.spare.is_some())
    }
}
