//! The two directions of a flow.

/// A direction of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the flow's source to its destination: data.
    Forward,
    /// Back: acknowledgements.
    Reverse,
}
