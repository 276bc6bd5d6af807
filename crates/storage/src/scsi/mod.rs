//! A disk as SCSI shows it: the commands of a logical unit (SPC-4, SBC-3), without a transport and without a medium.
//!
//! A [`Device`] holds logical units ([`Lun`]). A command is first asked for the data it takes
//! ([`Device::data_out_bytes`]), then begun with that data; it ends at once or asks for one operation on the medium
//! ([`Op`]), whose [`Outcome`] finishes it. Who performs operations, and how long they take, is the caller's business:
//! [`Memory`] is a medium for tests, a file belongs to the live target, a simulated disk takes its time.

mod block;
mod cdb;
mod device;
mod inquiry;
mod lun;
mod medium;
mod mode;
mod opcodes;
mod provisioning;
mod reserve;
mod reserve_out;
mod sense;

#[cfg(test)]
mod tests;

pub use device::{Device, Request};
pub use lun::{Continuation, Geometry, Identity, Lun, LunConfig, Reply, Step};
pub use medium::{Medium, MediumError, Memory, Op, Outcome};
pub use sense::{status, Sense};

use std::sync::Arc;

/// An initiator port as a logical unit knows it: name and session identifier,
/// `iqn.2026-01.example:host,i,0x0123456789ab`. It outlives sessions, because persistent reservations do.
pub type Nexus = Arc<str>;

/// Longest transfer of one command, bytes; what is longer is refused, as VPD page B0 announces.
pub const MAX_TRANSFER_BYTES: u32 = 16 << 20;
