//! A copy between two hosts without I/O: what its ends are told, what they say to each other, and what they remember.
//!
//! An end is a [`EndSpec`] at work; it tells of itself by [`Event`]s and ends with a [`EndReport`].
//!
//! **Invariant: what the receiver has acknowledged is on its disk, checked, and is never sent again; nothing here reads
//! a clock, a file or a socket.**

mod entry;
mod event;
mod report;
mod shape;
mod spec;

pub use entry::{Entry, EntryKind, Identity, Stamp};
pub use event::{Event, StreamProgress};
pub use report::{EndReport, FaultKind, FileFault};
pub use shape::SourcesShape;
pub use spec::{CopyOptions, DeltaMode, EndSpec, Role, Side, Steering, TlsSpec, TransportSpec};
