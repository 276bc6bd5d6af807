//! Storage protocols on real sockets: the edge around the cores of `storage`.
//!
//! What it does: serves files as an iSCSI target, one thread per connection and some for what waits for a drive ([`Server`]), and puts a load on one ([`bench`]). What it does not: decide anything that
//! the protocol decides; it moves bytes between sockets, the core and the file.
//!
//! **Invariant: what happens on a connection, and how long it takes, ends or delays that connection alone, but for the operations that
//! the medium is at when it ends, and for the memory that all of them share, which is bounded.**

#![cfg(target_os = "linux")]

mod bench;
mod buffers;
mod clock;
mod connection;
mod durable;
mod file;
mod inbox;
mod listener;
mod lock;
mod log;
mod patience;
mod places;
mod pool;
mod server;
mod socket;
mod wake;

pub use bench::{bench, discover, BenchConfig, BenchKind, BenchReport};
pub use clock::entropy;
pub use file::FileMedium;
pub use server::{plan_memory, LunFile, Server, ServerConfig};
