//! The number of the node that drives an end of a connection.

use std::num::NonZeroU32;

/// Number of a node in its run, from 0; absent in 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeNumber(NonZeroU32);

const _: () = assert!(std::mem::size_of::<Option<NodeNumber>>() == 4, "it lies among what packets need");

impl NodeNumber {
    /// The node at place `index`.
    ///
    /// # Panics
    /// From 2^32 - 1 nodes on.
    pub fn new(index: usize) -> NodeNumber {
        let number = u32::try_from(index).ok().and_then(|index| NonZeroU32::MIN.checked_add(index));
        NodeNumber(number.expect("a run has fewer than 2^32 - 1 nodes"))
    }

    /// Its place among the run's nodes.
    #[inline]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The nodes that drive the sender and the receiver of a flow, in place of its workload.
pub type EndNodes = [Option<NodeNumber>; 2];
