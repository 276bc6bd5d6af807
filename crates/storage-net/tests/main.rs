//! All tests of this folder, in one binary.

mod common;
mod gateway;
mod lost;
mod sockets;
