//! Tests of the crate `copy-net`.
