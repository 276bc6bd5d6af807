//! BPF in the running Linux kernel, by libbpf, which is linked in.
//!
//! The crate opens an object from memory and sets its constants ([`ObjectFile`]), loads it and runs its programs
//! ([`LoadedObject`]), registers a congestion control with or without a link ([`Settings`], [`Registration`]), lists
//! and unregisters the controls in the kernel ([`registered()`]), reads and writes maps ([`Map`]) and ring buffers
//! ([`Records`]), hands an interface's frames to AF_XDP sockets ([`XdpRedirect`]). It does not choose names, decide
//! what may be touched, explain the verifier's log. Its callers do.
//!
//! **Invariant: nothing is pinned. Of all that it makes in the kernel only a control that was told to stay
//! ([`Registration::keep`]) outlives the process.**

#![cfg(target_os = "linux")]

mod check;
mod control;
mod error;
mod kconfig;
mod map;
mod messages;
mod object;
mod records;
mod registered;
#[cfg(test)]
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod types;
mod xdp;

pub use check::{check, Checked};
pub use control::{Registration, Settings};
pub use error::{Error, Result};
pub use map::Map;
pub use object::{loaded, LoadedObject, Log, ObjectFile};
pub use records::Records;
pub use registered::{registered, unregister, Parameter, Registered};
pub use types::kernel_has_struct;
pub use xdp::{XdpRedirect, ARRIVAL_BYTES};
