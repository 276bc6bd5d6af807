//! Mount points below the sources: a later run compares them, since an unmounted file system is an empty folder.

use copy::SourceMount;
use rustix::fs::{statx, AtFlags, StatxAttributes, StatxFlags};
use std::os::fd::AsFd;

/// Most mount points of one walk.
const MOUNTS_MAX: usize = 256;
/// Most bytes of their paths: a backup stores them in a version's marker, whose size is bounded.
const PATHS_BYTES: usize = 64 << 10;

/// The mount points of one walk, in its order.
#[derive(Default)]
pub(super) struct Mounts {
    list: Vec<SourceMount>,
    bytes: usize,
    is_full: bool,
}

impl Mounts {
    /// Adds the mount point at `below`, a path below source number `source`. Returns a note for the first one over the
    /// limit.
    pub(super) fn add(&mut self, source: usize, below: &[Vec<u8>]) -> Option<String> {
        if self.is_full {
            return None;
        }
        let path = copy::show_path(below);
        if self.list.len() >= MOUNTS_MAX || self.bytes + path.len() > PATHS_BYTES {
            self.is_full = true;
            return Some(format!(
                "mount points of the sources: {} are listed, the others from {path} on are not",
                self.list.len()
            ));
        }
        self.bytes += path.len();
        self.list.push(SourceMount { source, path });
        None
    }

    pub(super) fn list(&self) -> &[SourceMount] {
        &self.list
    }
}

/// True if a file system, or a folder of one, is mounted on an open folder. False before Linux 5.8.
pub(crate) fn is_mount_root(folder: impl AsFd) -> bool {
    statx(folder, "", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .is_ok_and(|status| status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}
