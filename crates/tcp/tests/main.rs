//! All tests of this folder, in one binary.

mod acks;
mod basic;
mod common;
mod eras;
mod hooks;
mod ns2;
mod properties;
mod recovery;
mod runs;
mod segmentation;
mod window;
