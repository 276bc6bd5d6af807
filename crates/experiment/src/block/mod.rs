//! Block requests and the disks behind targets: what iSCSI and FCP have in common.
//!
//! A source says which requests an application has and when; a unit's operations take the time of the disks behind it.
//! No payload is made.

mod backing;
mod build;
mod commands;
mod postmark;
mod request;
mod requests;

pub use backing::{Backing, BLOCK_BYTES};
pub use build::{unit, Sources, Volume};
pub use commands::{Commands, UnderWay};
pub use request::Request;
pub use requests::Requests;
