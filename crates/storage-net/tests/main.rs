//! Target and load over sockets, in one binary: each is linked once.

mod common;
mod lost;
mod sockets;
