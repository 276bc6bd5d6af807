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
mod icmp;
mod icmpv6;
mod namespace;
mod outcome_record;
mod packet;
mod plan;
mod program_end_plan;
mod receive;
mod remote_plan;
mod run;
mod segment;
mod send;
#[cfg(test)]
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod socket_plan;
#[cfg(test)]
mod testing;
mod token;
mod traffic;
mod tun;

pub use clock::{monotonic_ns, Clock};
pub use emulator::{
    BackgroundRateChange, CarrierCounters, Direction, Emulator, EmulatorReport, IssuedCommand, MtuChange,
    NetworkChange, PolicerChange, RouterCounters,
};
pub use error::KernelError;
pub use outcome_record::{NamedMetrics, OutcomeRecord};
pub use plan::{EmulatorPlan, FlowPlan, HostPlan, HostSpec, Join, ProgramPlan, RoutePlan, RouterPlan};
pub use program_end_plan::ProgramEndPlan;
pub use receive::{Received, Receiver};
pub use remote_plan::{ReceivePlan, SendPlan};
pub use run::{run, Carrier};
pub use send::{connect, Connected, PathFound, Sent};
pub use socket_plan::SocketPlan;
pub use token::Token;
pub use traffic::{EndReport, FlowSelection, FlowWatch, SegmentCounts, SEARCHED};
pub use tun::{Tun, TunError};
