//! The edge to the running Linux kernel: a scenario's network and its traffic, between network namespaces.
//!
//! The crate opens a TUN device in each namespace and carries packets between them over the scenario's links, routes,
//! events and background traffic in wall-clock time ([`Emulator`]), and counts what it did wrong itself; runs the
//! scenario's flows over it as connections of this kernel's TCP ([`run()`]). It does not make namespaces and addresses,
//! load congestion controls (the Python front does), know protocols beyond what links and routes ask of a packet.
//!
//! **Invariant: a packet that the emulator loses or delays by its own fault is counted as its own, never as the
//! network's; and everything that it opened is gone when [`Emulator`] is dropped or the process dies.**

#![cfg(target_os = "linux")]

mod clock;
mod emulator;
mod error;
mod namespace;
mod packet;
mod plan;
mod run;
mod segment;
#[cfg(test)]
#[path = "../../../tests/rust/skip.rs"]
mod skip;
#[cfg(test)]
mod testing;
mod traffic;
mod tun;

pub use clock::Clock;
pub use emulator::{CarrierCounters, Direction, Emulator, EmulatorReport, IssuedCommand};
pub use error::KernelError;
pub use plan::{EmulatorPlan, FlowPlan, HostPlan, HostSpec, Join, ProgramPlan, RoutePlan};
pub use run::{run, Carrier};
pub use tun::{Tun, TunError};
