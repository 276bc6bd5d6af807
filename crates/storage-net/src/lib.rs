//! Storage protocols on real sockets: the edge around the cores of `storage`.
//!
//! The crate serves files as an iSCSI target ([`Server`]), with one thread per connection and I/O threads per LUN, puts
//! a load on a target ([`bench`]), runs a Fibre Channel gateway ([`gateway`]), and has a port of its own on a fabric
//! ([`fc_port`]). It moves bytes between sockets, the
//! core and the file; the core takes all protocol decisions.
//!
//! **Invariant: an event on a connection ends or delays that connection alone. Exceptions: operations in progress on
//! the medium when it ends, and the bounded memory that all connections share.**

#![cfg(target_os = "linux")]

mod adaptive_poll;
mod bench;
mod buffer_pool;
mod clock;
mod connection;
mod ethernet;
pub mod fc_port;
mod file;
pub mod gateway;
mod group_sync;
mod io_threads;
mod listener;
mod lock;
mod log;
mod logins;
mod pdu_reader;
mod server;
mod shared;
mod socket;
mod socket_option;
mod waker;

pub use bench::{bench, discover, BenchConfig, BenchKind, BenchReport};
pub use clock::entropy;
pub use ethernet::AttachmentConfig;
pub use file::FileMedium;
pub use server::{plan_memory, LunFile, Server, ServerConfig};
