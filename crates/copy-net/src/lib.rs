//! Both ends of a copy: trees and devices read and written, journals synced, streams over TCP with TLS or over QUIC.
//!
//! **Invariant: what the protocol decides is decided in `copy`; no path outside of the destination is opened, and what
//! is acknowledged was synced before.**

mod end;
mod error;
mod keys;
mod verify;

pub use end::{run_end, Control};
pub use error::{CopyError, ErrorKind};
pub use keys::{draw_keys, CopyKeys};
pub use verify::{verify, Difference, Verified, VerifySpec};

// Beside a copy: versions that backups keep.
mod versions;

pub use versions::VersionsRequest;
