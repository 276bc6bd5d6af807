//! Tests of the crate, one binary.
