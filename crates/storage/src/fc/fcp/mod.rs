//! SCSI over Fibre Channel without I/O (FCP-3): an initiator, a target on the units and media that iSCSI has, and an
//! N_Port with either or both ([`Port`]).
//!
//! Data is bytes, or a length where a simulator moves none. Frames of an exchange have to come in order, as every
//! fabric here delivers them; one that does not is taken for a loss.
//!
//! **Invariant: data of an exchange is never corrupted, duplicated or reordered: whatever is lost, a command ends with
//! all of its data, or not as done.**

mod command;
mod frames;
pub mod initiator;
mod port;
pub mod target;
#[cfg(test)]
mod tests;

pub use command::{Command, Completion, Data, Ended, Failure};
pub use initiator::Initiator;
pub use port::Port;
pub use target::{Target, Work};
