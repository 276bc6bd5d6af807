//! Tests of the crate `copy`.

mod tree;
mod wire;
mod work;
