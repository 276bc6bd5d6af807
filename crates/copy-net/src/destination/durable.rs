//! Names made durable: which folders have changed, and in which order they are synced.

use crate::beneath::Beneath;
use rustix::fs::{fstatfs, fsync, syncfs, OFlags};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// From so many files or folders on, one syncfs(2) takes their place (docs/design/copy-files.md).
pub(super) const SYNCFS_FROM: usize = 8;

/// File systems of which syncfs(2) is known to sync all and to tell errors. FUSE passes nothing on to its server.
const SYNCFS_TRUSTED: [u32; 7] = [
    0xEF53,      // ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0xF2F5_2010, // F2FS
    0xCA45_1A4E, // bcachefs
    0x2FC1_2FC1, // ZFS
    0x0102_1994, // tmpfs
];

/// Folders below the destination whose names are not durable yet.
pub(super) struct Durable {
    trusted: bool,
    /// Path of the folder, and true if it is on another mount than the state folder.
    changed: Mutex<BTreeMap<Vec<Vec<u8>>, bool>>,
    /// Files whose metadata were set in place, the first [`SYNCFS_FROM`].
    adjusted: Mutex<Vec<Vec<Vec<u8>>>>,
    /// A rename counts as durable when the folder that it went to is. Until then no other thread syncs the state
    /// folder: POSIX would allow that a part has left it, and has come nowhere.
    order: Mutex<()>,
}

impl Durable {
    /// `folder`: one of the file system.
    pub(super) fn new(folder: BorrowedFd<'_>) -> Durable {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "numbers of file systems have 32 bits"
        )]
        let known = fstatfs(folder).is_ok_and(|stat| SYNCFS_TRUSTED.contains(&(stat.f_type as u32)));
        // Before 5.8 syncfs(2) does not tell errors of writing back.
        Durable {
            trusted: known && kernel_is_from(5, 8),
            changed: Mutex::default(),
            adjusted: Mutex::default(),
            order: Mutex::default(),
        }
    }

    /// True if one syncfs(2) may take the place of so many syncs.
    pub(super) fn at_once(&self, count: usize) -> bool {
        self.trusted && count >= SYNCFS_FROM
    }

    /// Notes that names of a folder have changed.
    pub(super) fn changed(&self, folder: &[Vec<u8>], elsewhere: bool) {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_vec(), elsewhere);
    }

    /// Notes, or makes durable, that metadata of a file were set in place.
    pub(super) fn adjusted(&self, root: &Beneath, file: &[Vec<u8>], elsewhere: bool) -> io::Result<()> {
        if elsewhere || !self.trusted {
            return self.sync_file(root, file);
        }
        let mut adjusted = self.adjusted.lock().unwrap_or_else(PoisonError::into_inner);
        if adjusted.len() < SYNCFS_FROM {
            adjusted.push(file.to_vec());
        }
        Ok(())
    }

    fn sync_file(&self, root: &Beneath, file: &[Vec<u8>]) -> io::Result<()> {
        match root.open(file, OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(fd) => Ok(fsync(&fd)?),
            // Its new mode does not let its owner read it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(syncfs(root.root())?),
            Err(error) if gone(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Holds the order of renames and syncs of the state folder.
    pub(super) fn ordered(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the names in these folders durable, and those of the folders above. `order`: of [`Durable::ordered`].
    pub(super) fn flush<'a>(
        &self,
        root: &Beneath,
        folders: impl Iterator<Item = &'a [Vec<u8>]>,
        order: &MutexGuard<'_, ()>,
    ) -> io::Result<()> {
        let mut taken = BTreeMap::new();
        {
            let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            for folder in folders {
                for depth in 0..=folder.len() {
                    if let Some(elsewhere) = changed.remove(&folder[..depth]) {
                        taken.insert(folder[..depth].to_vec(), elsewhere);
                    }
                }
            }
        }
        self.sync(root, &taken, order)
    }

    /// Makes the names of all changed folders durable, and metadata that were set in place.
    pub(super) fn flush_all(&self, root: &Beneath, order: &MutexGuard<'_, ()>) -> io::Result<()> {
        let adjusted = std::mem::take(&mut *self.adjusted.lock().unwrap_or_else(PoisonError::into_inner));
        match self.at_once(adjusted.len()) {
            true => syncfs(root.root())?,
            false => adjusted.iter().try_for_each(|file| self.sync_file(root, file))?,
        }
        let taken = std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner));
        self.sync(root, &taken, order)
    }

    fn sync(&self, root: &Beneath, taken: &BTreeMap<Vec<Vec<u8>>, bool>, _: &MutexGuard<'_, ()>) -> io::Result<()> {
        let here = taken.values().filter(|elsewhere| !**elsewhere).count();
        let at_once = self.at_once(here);
        if at_once {
            syncfs(root.root())?;
        }
        for (folder, _) in taken.iter().filter(|(_, elsewhere)| !at_once || **elsewhere) {
            match root.listed(folder) {
                Ok(fd) => fsync(&fd)?,
                // A folder that may not be listed; the file system is synced instead.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && self.trusted => {
                    syncfs(root.root())?;
                }
                Err(error) if gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// True if something else has taken the place of a folder.
pub(super) fn gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP))
}

fn kernel_is_from(major: u32, minor: u32) -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}
