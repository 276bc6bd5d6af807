//! A copy between two hosts without I/O: what its ends are told, what they say to each other, and what they remember.
//!
//! An end is a [`EndSpec`] at work; it tells of itself by [`Event`]s and ends with a [`EndReport`].
//!
//! **Invariant: what the receiver has acknowledged is on its disk, checked, and is never sent again; nothing here reads
//! a clock, a file or a socket.**

mod bucket;
mod entry;
mod entry_wire;
mod event;
mod frame;
mod journal;
mod manifest;
mod message;
mod names;
mod plan;
mod report;
mod shape;
mod spec;
mod tree;
mod wire;
mod work;

pub use bucket::Bucket;
pub use entry::{Entry, EntryKind, Identity, Stamp};
pub use entry_wire::WireEntry;
pub use event::{Event, StreamProgress};
pub use frame::{FrameHead, Piece, HEAD_BYTES, PIECE_BYTES, PIECE_HEAD_BYTES, TAIL_BYTES};
pub use journal::{whole_records, FileKey, JournalIndex, Record};
pub use manifest::{hex, manifest_row, unhex, Manifest};
pub use message::{Message, Outcome, Want, WantChunks, ENTRIES_MAX, HASHES_MAX, MESSAGE_MAX, PROTOCOL};
pub use names::{check_path, parse_shown_path, plural, show_bytes, show_path, NAME_BYTES, PATH_BYTES};
pub use plan::{ChunkHashes, Plan, CHUNK_MAX, FILE_MAX};
pub use report::{EndReport, FaultKind, FileFault, SourceMount};
pub use shape::SourcesShape;
pub use spec::{CopyOptions, DeltaMode, EndSpec, Role, Side, Steering, TlsSpec, TransportSpec};
pub use tree::{file_hash, ChunkHash, ChunkHasher};
pub use wire::{Decoder, WireError};
pub use work::{Action, Task, Work};
