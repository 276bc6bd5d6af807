//! Names in an open folder.

use rustix::fs::{seek, statat, AtFlags, FileType, RawDir, SeekFrom};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

/// A name in a folder, with its kind as far as the list has it (readdir(3)).
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a CStr,
    kind: FileType,
}

impl Listed<'_> {
    /// True for a folder; `folder` is the one that is listed.
    pub(crate) fn is_folder(&self, folder: impl AsFd) -> io::Result<bool> {
        let kind = match self.kind {
            // Some file systems do not have it in the list.
            FileType::Unknown => FileType::from_raw_mode(statat(folder, self.name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode),
            kind => kind,
        };
        Ok(kind == FileType::Directory)
    }
}

/// Calls `each` with all names of a folder but "." and "..", until it fails.
pub(crate) fn list(folder: impl AsFd, mut each: impl FnMut(Listed<'_>) -> io::Result<()>) -> io::Result<()> {
    let folder = folder.as_fd();
    // The descriptor may have been read before.
    seek(folder, SeekFrom::Start(0))?;
    let mut buffer = [MaybeUninit::uninit(); 32_768];
    let mut entries = RawDir::new(folder, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            each(Listed { name: entry.file_name(), kind: entry.file_type() })?;
        }
    }
    Ok(())
}
