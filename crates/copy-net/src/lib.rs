//! Both ends of a copy: trees and devices read and written, journals synced, streams over TCP with TLS or over QUIC.
//!
//! **Invariant: what the protocol decides is decided in `copy`; no path outside of the destination is opened, and what
//! is acknowledged was synced before.**

mod beneath;
mod destination;
mod device;
mod end;
mod error;
mod exclude;
mod journal_file;
mod names;
mod page_cache;
mod source;
mod xattr;

pub use destination::{copy_state, user_state_folder, Base, Closed, Destination, Existing, Part};
pub use end::{run_end, Control};
pub use error::{CopyError, ErrorKind};
pub use journal_file::JournalFile;
pub use names::{is_full, path_text};
pub use source::{SourceFile, SourceFiles, SourceTree};
