//! The destination as the user wrote it: a folder, a name in a folder, or a block device.

use crate::beneath::Beneath;
use crate::error::{CopyError, ErrorKind};
use crate::names::words;
use copy::SourcesShape;
use rustix::fs::{accessat, openat, Access, AtFlags, Mode, OFlags, CWD};
use rustix::io::Errno;
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

/// A destination that fits the sources, before anything is made or opened.
enum Kind {
    Device,
    /// A folder; false: it is to be made.
    Folder(bool),
    /// The name of one file.
    Name,
}

impl Kind {
    fn find(destination: &str, shape: SourcesShape) -> Result<Kind, CopyError> {
        if destination.is_empty() || destination.contains('\0') {
            return Err(input(format!("destination: {destination:?} is no path")));
        }
        let path = Path::new(destination);
        let there = std::fs::metadata(path);
        if there.as_ref().is_ok_and(|metadata| metadata.file_type().is_block_device()) {
            if shape == SourcesShape::Tree {
                return Err(input(format!("destination {destination:?}: a device takes one file or one device")));
            }
            return Ok(Kind::Device);
        }
        let is_folder = there.as_ref().is_ok_and(std::fs::Metadata::is_dir);
        // A slash, "." and ".." at the end name a folder.
        let names_folder = destination.ends_with('/') || path.file_name().is_none() || destination.ends_with("/.");
        if is_folder || names_folder || shape == SourcesShape::Tree {
            if there.is_ok() && !is_folder {
                return Err(input(format!("destination {destination:?}: it is no folder, and the sources need one")));
            }
            return Ok(Kind::Folder(is_folder));
        }
        Ok(Kind::Name)
    }
}

impl Place {
    /// Returns the errors of [`Place::find`] without making anything.
    pub(super) fn check(destination: &str, shape: SourcesShape) -> Result<(), CopyError> {
        let path = Path::new(destination);
        let folder = match Kind::find(destination, shape)? {
            Kind::Device => {
                let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
                return openat(CWD, path, flags, Mode::empty())
                    .map(drop)
                    .map_err(|error| refused(destination)(error.into()));
            }
            Kind::Folder(true) => path,
            Kind::Folder(false) | Kind::Name => parent(path),
        };
        let is_folder = std::fs::metadata(folder).map_err(refused(destination))?.is_dir();
        if !is_folder {
            return Err(refused(destination)(Errno::NOTDIR.into()));
        }
        let rights = Access::WRITE_OK | Access::EXEC_OK;
        accessat(CWD, folder, rights, AtFlags::EACCESS).map_err(|error| refused(destination)(error.into()))
    }

    pub(super) fn find(destination: &str, shape: SourcesShape) -> Result<Place, CopyError> {
        let failed = refused(destination);
        let path = Path::new(destination);
        match Kind::find(destination, shape)? {
            Kind::Device => return Place::device(path).map_err(failed),
            Kind::Folder(is_there) => {
                if !is_there {
                    make_folder(path).map_err(&failed)?;
                }
                return Place::folder(path, None).map_err(failed);
            }
            Kind::Name => {}
        }
        // A link to a file stays a link: the file that it leads to is replaced.
        let real = if path.exists() { std::fs::canonicalize(path).map_err(&failed)? } else { path.to_owned() };
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

fn refused(destination: &str) -> impl Fn(io::Error) -> CopyError + '_ {
    move |error| CopyError {
        kind: match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::ResourceBusy => ErrorKind::Input,
            _ => ErrorKind::Io,
        },
        text: format!("destination {destination:?}: {}", words(&error)),
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
