//! The destination as the user wrote it: a folder, a name in a folder, or a block device.

use crate::beneath::Beneath;
use crate::error::{CopyError, ErrorKind};
use crate::names::words;
use copy::SourcesShape;
use rustix::fs::{openat, Mode, OFlags, CWD};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Place that entries go to.
pub(super) enum Place {
    /// Below a folder. `name`: the only entry takes this name, whatever it is called at the source.
    Folder { root: Beneath, path: PathBuf, name: Option<Vec<u8>> },
    /// Onto a block device.
    Device { device: File, bytes: u64 },
}

impl Place {
    pub(super) fn find(destination: &str, shape: SourcesShape) -> Result<Place, CopyError> {
        let failed = |error: io::Error| CopyError {
            kind: match error.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::ResourceBusy => ErrorKind::Input,
                _ => ErrorKind::Io,
            },
            text: format!("destination {destination:?}: {}", words(&error)),
        };
        if destination.is_empty() || destination.contains('\0') {
            return Err(input(format!("destination: {destination:?} is no path")));
        }
        let path = Path::new(destination);
        let there = std::fs::metadata(path);
        if let Ok(metadata) = &there {
            if metadata.file_type().is_block_device() {
                if shape == SourcesShape::Tree {
                    let text = format!("destination {destination:?}: a device takes one file or one device");
                    return Err(input(text));
                }
                return Place::device(path).map_err(failed);
            }
        }
        let is_folder = there.as_ref().is_ok_and(std::fs::Metadata::is_dir);
        // A slash, "." and ".." at the end name a folder.
        let names_folder = destination.ends_with('/') || path.file_name().is_none() || destination.ends_with("/.");
        if is_folder || names_folder || shape == SourcesShape::Tree {
            if there.is_ok() && !is_folder {
                return Err(input(format!("destination {destination:?}: it is no folder, and the sources need one")));
            }
            if !is_folder {
                make_folder(path).map_err(failed)?;
            }
            return Place::folder(path, None).map_err(failed);
        }
        // A link to a file stays a link: the file that it leads to is replaced.
        let real = if there.is_ok() { std::fs::canonicalize(path).map_err(failed)? } else { path.to_owned() };
        let name = real.file_name().unwrap_or_default().as_bytes().to_vec();
        Place::folder(parent(&real), Some(name)).map_err(failed)
    }

    fn folder(path: &Path, name: Option<Vec<u8>>) -> io::Result<Place> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = Beneath::new(openat(CWD, path, flags, Mode::empty())?);
        Ok(Place::Folder { root, path: std::fs::canonicalize(path)?, name })
    }

    fn device(path: &Path) -> io::Result<Place> {
        // O_EXCL fails with EBUSY for a device that is mounted or part of another (open(2)).
        let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
        let fd: OwnedFd = openat(CWD, path, flags, Mode::empty())?;
        let bytes = crate::device::bytes(std::os::fd::AsFd::as_fd(&fd))?;
        Ok(Place::Device { device: File::from(fd), bytes })
    }
}

/// Makes the last component alone: a destination below a folder that is not there is rather a slip.
fn make_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)?;
    File::open(parent(path))?.sync_all()
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn input(text: String) -> CopyError {
    CopyError { kind: ErrorKind::Input, text }
}
