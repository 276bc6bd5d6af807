//! The sources of a copy: a walk over their trees, and their files to read from.

mod extents;
mod file;
mod metadata;
mod mounts;
mod origin;
mod tree;

pub use file::{SourceFile, SourceFiles};
pub(crate) use mounts::is_mount_root;
pub use tree::SourceTree;
