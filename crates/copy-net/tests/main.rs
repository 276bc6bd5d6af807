//! Tests of the crate `copy-net`.

mod versions;
