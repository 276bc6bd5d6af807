//! An entry as the file system shows it.

use super::extents;
use crate::beneath::Beneath;
use crate::identity::{identity, size};
use crate::xattr::{self, Of};
use copy::{Entry, EntryKind};
use rustix::fs::{FileType, Stat};
use std::io;
use std::os::fd::BorrowedFd;

/// Choice of what is read.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) xattrs: bool,
    pub(super) sparse: bool,
}

/// The entry at `name` in `folder`, `below` is its path from `root`. None: a socket, which has no content.
pub(super) fn entry(
    root: &Beneath,
    folder: BorrowedFd<'_>,
    below: &[Vec<u8>],
    name: &[u8],
    path: &[Vec<u8>],
    stat: &Stat,
    wanted: Wanted,
) -> io::Result<Option<Entry>> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let extents = match wanted.sparse && sparse(stat) {
                true => extents::of(root, below, size(stat)),
                false => None,
            };
            EntryKind::File { size: size(stat), extents }
        }
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
            EntryKind::Symlink { target: target.into_bytes() }
        }
        FileType::Fifo => EntryKind::Fifo,
        kind @ (FileType::BlockDevice | FileType::CharacterDevice) => EntryKind::Device {
            block: kind == FileType::BlockDevice,
            major: rustix::fs::major(stat.st_rdev),
            minor: rustix::fs::minor(stat.st_rdev),
        },
        _ => return Ok(None),
    };
    let xattrs = match wanted.xattrs {
        true => xattr::read(Of::Name(folder, name))?,
        false => vec![],
    };
    Ok(Some(Entry {
        path: path.to_vec(),
        kind,
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        modified: identity(stat).modified,
        xattrs,
        identity: identity(stat),
    }))
}

/// True if the file has fewer blocks (of 512 bytes, stat(2)) than bytes.
fn sparse(stat: &Stat) -> bool {
    u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512) < size(stat)
}
