//! Disks whose times are those of measured ones.
//!
//! A [`Disk`] queues requests for a [`Device`]: a [`Drive`], described as DiskSim describes drives and read from its
//! files or built in, or a simple SSD ([`Flash`]). The times of two requests alone decide what a drive does between
//! them, so there are no events but completions.

mod cheetah_9lp;
mod demerit;
#[allow(clippy::module_inception, reason = "the file of a disk, among those of its parts")]
mod disk;
mod disksim;
mod drive;
mod file;
mod flash;
mod layout;
mod mechanics;
mod medium;
mod param;
mod replay;
mod schedule;
mod seek;
mod segments;
mod spec;
#[cfg(test)]
mod tests;
mod transfer;
mod validate;

pub use demerit::{demerit_ns, disksim_rms_ns};
pub use disk::{Completion, Device, Disk};
pub use drive::{Drive, Extent};
pub use file::{device, from_disksim, from_disksim_text, named, scheduler, NAMES};
pub use flash::{Flash, FlashSpec};
pub use layout::{Layout, Mapping, Run, SectorPosition, Sparing, Zone, REVOLUTION};
pub use param::ParamError;
pub use replay::{replay, OutOfRange, ReplayError, ReplayPlan, ReplayReport, Times};
pub use schedule::Scheduler;
pub use seek::SeekSpec;
pub use spec::{Buffer, Control, DriveSpec, ExtraDisconnect, Mechanics, ReadAhead};
pub use validate::{validate, ValidationReport};
