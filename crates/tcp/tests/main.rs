//! Two endpoints and a pipe between them, in one binary: each is linked once.

mod acks;
mod basic;
mod common;
mod hooks;
mod properties;
mod recovery;
mod window;
