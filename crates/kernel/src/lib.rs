//! The edge to the running Linux kernel: so far, a path of the link model between two network namespaces.
//!
//! What it does: opens a TUN device in each of two namespaces, carries packets between them through [`link::Link`] in
//! wall-clock time, one thread per direction, and counts what it did wrong itself. What it does not: make namespaces and
//! addresses (the Python front does), know protocols beyond what the link model asks of a packet.
//!
//! **Invariant: a packet that the emulator loses or delays by its own fault is counted as its own, never as the link's; and
//! everything that it opened is gone when [`Path`] is dropped or the process dies.**

#![cfg(target_os = "linux")]

mod clock;
mod direction;
mod packet;
mod path;
mod tun;

pub use direction::DirectionReport;
pub use path::{End, Path};
pub use tun::{Tun, TunError};
