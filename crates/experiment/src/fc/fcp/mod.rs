//! SCSI over Fibre Channel gateways: initiators, and targets with disks.
//!
//! The cores of `storage::fc` decide everything, login included: each gateway is to its port a fabric of two ports, its
//! own and the one behind the other gateway, as a zone of one initiator and one target is. Commands, transfers and
//! responses are frames that take the same ways as those of a load.

mod acceleration;
mod build;
mod end;
mod host;
mod pair;

pub use build::gateways;
pub use pair::FcpPair;
