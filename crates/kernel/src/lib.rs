//! The edge to the running Linux kernel: so far, a scenario's network between network namespaces.
//!
//! What it does: opens a TUN device in each namespace and carries packets between them over the scenario's links, routes,
//! events and background traffic in wall-clock time ([`Emulator`]), and counts what it did wrong itself. What it does not:
//! make namespaces and addresses (the Python front does), know protocols beyond what links and routes ask of a packet.
//!
//! **Invariant: a packet that the emulator loses or delays by its own fault is counted as its own, never as the network's; and
//! everything that it opened is gone when [`Emulator`] is dropped or the process dies.**

#![cfg(target_os = "linux")]

mod clock;
mod emulator;
mod packet;
mod plan;
mod segment;
mod tun;

pub use clock::Clock;
pub use emulator::{Emulator, EmulatorReport, NetworkCounters, Way};
pub use plan::{EmulatorPlan, FlowPlan, HostPlan, HostSpec, Join, RoutePlan};
pub use tun::{Tun, TunError};
