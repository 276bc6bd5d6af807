//! One source of the command: where its entries are read, and what they are called at the destination.

use crate::beneath::Beneath;
use crate::error::{CopyError, ErrorKind};
use crate::names::words;
use rustix::fs::{openat, FileType, Mode, OFlags, CWD};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// A source, opened.
pub(super) struct Origin {
    /// Names are read below it.
    pub(super) root: Beneath,
    /// Components of an entry's path that stand for `root`.
    strip: usize,
    /// The name below `root`, of a source that is no folder.
    lead: Option<Vec<u8>>,
    /// Path of its first entry.
    pub(super) path: Vec<Vec<u8>>,
    /// Kind of its first entry.
    pub(super) kind: FileType,
}

impl Origin {
    pub(super) fn open(source: &str) -> Result<Origin, CopyError> {
        Origin::find(source).map_err(|error| CopyError {
            kind: match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
                    ErrorKind::Input
                }
                _ => ErrorKind::Io,
            },
            text: format!("source {source:?}: {}", words(&error)),
        })
    }

    fn find(source: &str) -> io::Result<Origin> {
        let path = Path::new(source);
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // "SRC/", ".", ".." and "/" mean the content of a folder, whichever links lead there.
        let content = source.ends_with('/') || path.file_name().is_none() || source.ends_with("/.");
        if content {
            let root = Beneath::new(openat(CWD, path, folder, Mode::empty())?);
            return Ok(Origin { root, strip: 0, lead: None, path: vec![], kind: FileType::Directory });
        }
        let name = path.file_name().expect("checked above").as_bytes().to_vec();
        let metadata = std::fs::symlink_metadata(path)?;
        if metadata.is_dir() {
            let root = Beneath::new(openat(CWD, path, folder | OFlags::NOFOLLOW, Mode::empty())?);
            return Ok(Origin { root, strip: 1, lead: None, path: vec![name], kind: FileType::Directory });
        }
        // Disks have stable names that are links (/dev/disk/by-id): those are followed, others are copied as links.
        let device = metadata.is_symlink() && std::fs::metadata(path).is_ok_and(|of| of.file_type().is_block_device());
        let real = if device { std::fs::canonicalize(path)? } else { path.to_owned() };
        let parent = match real.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let root =
            Beneath::new(openat(CWD, parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?);
        let lead = real.file_name().unwrap_or_default().as_bytes().to_vec();
        let kind = FileType::from_raw_mode(std::os::unix::fs::MetadataExt::mode(&std::fs::symlink_metadata(&real)?));
        Ok(Origin { root, strip: 1, lead: Some(lead), path: vec![name], kind })
    }

    /// Path of an entry below `root`.
    pub(super) fn below(&self, path: &[Vec<u8>]) -> Vec<Vec<u8>> {
        match &self.lead {
            Some(lead) => vec![lead.clone()],
            None => path.get(self.strip..).unwrap_or_default().to_vec(),
        }
    }

    /// True if it is a block device, of which the content is copied.
    pub(super) fn is_device(&self) -> bool {
        self.kind == FileType::BlockDevice
    }
}
