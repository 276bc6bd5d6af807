//! Both ends of a copy: trees and devices read and written, journals synced, streams over TCP with TLS or over QUIC.
//!
//! **Invariant: what the protocol decides is decided in `copy`; no path outside of the destination is opened, and what
//! is acknowledged was synced before.**

mod beneath;
mod check;
mod control;
mod destination;
mod device;
mod end;
mod error;
mod exclude;
mod forget;
mod handshakes;
mod identity;
mod journal_file;
mod keys;
mod known_hashes;
mod links;
mod listing;
mod manifest_file;
mod meeting;
mod names;
mod own_sources;
mod page_cache;
mod quic_streams;
mod receiver;
mod removals;
mod run_control;
mod scan;
mod sender;
mod session;
mod source;
mod tcp;
mod tcp_end;
mod tls;
mod transport;
mod transports;
mod verify;
mod versions;
mod xattr;

pub use destination::{copy_state, user_state_folder, Base, Closed, Destination, Existing, Part};
pub use end::run_end;
pub use error::{CopyError, EntryFault, ErrorKind};
pub use forget::forget;
pub use journal_file::JournalFile;
pub use keys::{draw_keys, CopyKeys};
pub use names::is_full;
pub use removals::{removals, Removals, RemovalsSpec, SourcePaths};
pub use run_control::Control;
pub use scan::{scan, ScanSpec, Scanned};
pub use source::{SourceFile, SourceFiles, SourceTree};
pub use transport::{Connection, Dialer, Handle, Incoming, Listener, StreamFacts};
pub use verify::{verify, Difference, Verified, VerifySpec};
pub use versions::VersionsRequest;
