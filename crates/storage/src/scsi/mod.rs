//! A disk as SCSI shows it: the commands of a logical unit (SPC-4, SBC-3), without a transport and without a medium.
//!
//! A [`Device`] holds logical units ([`Lun`]). A command is first asked for the data it takes
//! ([`Device::data_out_bytes`]), then begun with that data; it ends at once or asks for one operation on the medium
//! ([`Op`]), whose [`Outcome`] finishes it. [`TaskSets`] says which command may begin when. Who
//! performs operations, and how long they take, is the caller's business: [`Memory`] is a medium for tests, a file
//! belongs to the live target, a simulated disk takes its time.

mod block;
mod cdb;
mod command;
mod device;
mod execute;
mod inquiry;
mod limits;
mod lun;
mod medium;
mod mode;
mod nexus;
mod opcodes;
mod provisioning;
mod reserve;
mod reserve_out;
mod sense;
mod settings;
mod task_set;

#[cfg(test)]
mod tests;

pub use command::{Continuation, Reply, Request, Step};
pub use device::Device;
pub use limits::MAX_TRANSFER_BYTES;
pub use lun::Lun;
pub use medium::{Medium, MediumError, Memory, Op, Outcome};
pub use nexus::Nexus;
pub use sense::{status, Sense};
pub use settings::{Geometry, Identity, LunConfig};
pub use task_set::{Attribute, TaskSets};
