//! The key of a flow.

/// A flow's key; the caller assigns it.
pub type FlowKey = u64;
