//! Tests of the crate `copy`.

mod hostile;
mod tree;
mod wire;
mod work;
