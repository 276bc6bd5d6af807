//! Both ends of a copy: trees and devices read and written, journals synced, streams over TCP with TLS or over QUIC.
//!
//! **Invariant: what the protocol decides is decided in `copy`; no path outside of the destination is opened, and what
//! is acknowledged was synced before.**

mod end;
mod error;
mod keys;
mod verify;
mod versions;

pub use end::{run_end, Control};
pub use error::{CopyError, ErrorKind};
pub use keys::{draw_keys, CopyKeys};
pub use verify::{file_blake3, verify, Difference, Verified, VerifySpec};
pub use versions::VersionsRequest;
