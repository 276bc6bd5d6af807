//! Tests of the crate `copy`.
