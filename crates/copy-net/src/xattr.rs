//! Extended attributes, ACLs among them: read by name in a folder, set on a descriptor or by name.

use rustix::buffer::spare_capacity;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Names with values, sorted.
pub(crate) type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// An entry to ask for attributes. Of a name no link is followed; there is no descriptor for what may not be opened.
#[derive(Clone, Copy)]
pub(crate) enum Of<'a> {
    Fd(BorrowedFd<'a>),
    /// In a folder. Linux has getxattrat(2) from 6.13 only: the folder goes by /proc/self/fd.
    Name(BorrowedFd<'a>, &'a [u8]),
}

impl Of<'_> {
    fn path(self) -> PathBuf {
        match self {
            Of::Fd(fd) => PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd())),
            Of::Name(folder, name) => {
                PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(OsStr::from_bytes(name))
            }
        }
    }

    fn list(self, names: &mut Vec<u8>) -> rustix::io::Result<usize> {
        match self {
            Of::Fd(fd) => rustix::fs::flistxattr(fd, spare_capacity(names)),
            Of::Name(..) => rustix::fs::llistxattr(self.path(), spare_capacity(names)),
        }
    }

    fn get(self, name: &[u8], value: &mut Vec<u8>) -> rustix::io::Result<usize> {
        match self {
            Of::Fd(fd) => rustix::fs::fgetxattr(fd, name, spare_capacity(value)),
            Of::Name(..) => rustix::fs::lgetxattr(self.path(), name, spare_capacity(value)),
        }
    }

    fn set(self, name: &[u8], value: &[u8]) -> rustix::io::Result<()> {
        match self {
            Of::Fd(fd) => rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty()),
            Of::Name(..) => rustix::fs::lsetxattr(self.path(), name, value, XattrFlags::empty()),
        }
    }

    fn remove(self, name: &[u8]) -> rustix::io::Result<()> {
        match self {
            Of::Fd(fd) => rustix::fs::fremovexattr(fd, name),
            Of::Name(..) => rustix::fs::lremovexattr(self.path(), name),
        }
    }
}

/// True for attributes that belong to the file, not to its host: labels of security modules and of overlays stay
/// behind.
fn travels(name: &[u8], root: bool) -> bool {
    match name {
        b"system.posix_acl_access" | b"system.posix_acl_default" => true,
        b"security.capability" => root,
        _ if name.starts_with(b"user.") => true,
        // XFS shows root a POSIX ACL a second time.
        _ if name.starts_with(b"trusted.overlay.") || name.starts_with(b"trusted.SGI_ACL_") => false,
        _ => root && name.starts_with(b"trusted."),
    }
}

/// Reads the attributes that a copy takes along; none where the file system has none.
pub(crate) fn read(of: Of<'_>) -> io::Result<Xattrs> {
    // 64 KiB is the most that Linux returns (XATTR_LIST_MAX, XATTR_SIZE_MAX).
    let mut names = Vec::with_capacity(1024);
    loop {
        match of.list(&mut names) {
            Ok(_) => break,
            Err(Errno::RANGE) if names.capacity() < 65_536 => names = Vec::with_capacity(65_536),
            Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(vec![]),
            Err(error) => return Err(error.into()),
        }
    }
    let root = rustix::process::geteuid().is_root();
    let mut found = vec![];
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty() && travels(name, root)) {
        let mut value = Vec::with_capacity(256);
        loop {
            match of.get(name, &mut value) {
                Ok(_) => {
                    found.push((name.to_vec(), value));
                    break;
                }
                Err(Errno::RANGE) if value.capacity() < 65_536 => value = Vec::with_capacity(65_536),
                // It went in between.
                Err(Errno::NODATA) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Gives the entry these attributes and no others of those that travel. Returns the first that could not be set.
pub(crate) fn write(of: Of<'_>, wanted: &[(Vec<u8>, Vec<u8>)]) -> Result<(), (Vec<u8>, io::Error)> {
    let root = rustix::process::geteuid().is_root();
    let there = read(of).unwrap_or_default();
    let mut failed = None;
    for (name, _) in there.iter().filter(|(name, _)| !wanted.iter().any(|(other, _)| other == name)) {
        if let Err(error) = of.remove(name) {
            failed.get_or_insert((name.clone(), error.into()));
        }
    }
    for (name, value) in wanted.iter().filter(|(name, _)| travels(name, root)) {
        if there.iter().any(|(other, old)| other == name && old == value) {
            continue;
        }
        if let Err(error) = of.set(name, value) {
            failed.get_or_insert((name.clone(), error.into()));
        }
    }
    match failed {
        None => Ok(()),
        Some(failed) => Err(failed),
    }
}
