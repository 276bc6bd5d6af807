//! Names below a folder: opened relative to its descriptor, so that neither ".." nor a symbolic link leads out of it.

use rustix::fs::{openat, openat2, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of a path given to the kernel at once: below PATH_MAX (4096), which counts the NUL.
const PATH_BYTES: usize = 3800;

/// A folder below which alone names are opened.
pub(crate) struct Beneath {
    root: OwnedFd,
    /// False before Linux 5.6 and under filters of system calls that do not know openat2(2).
    whole_paths: bool,
}

impl Beneath {
    pub(crate) fn new(root: OwnedFd) -> Beneath {
        let whole_paths = openat2(&root, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve()).is_ok();
        Beneath { root, whole_paths }
    }

    /// As on a kernel without openat2(2).
    #[cfg(test)]
    pub(crate) fn by_components(root: OwnedFd) -> Beneath {
        Beneath { root, whole_paths: false }
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens `path`; no component of it may be a symbolic link.
    pub(crate) fn open(&self, path: &[Vec<u8>], flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if path.iter().any(|component| !is_name(component)) {
            return Err(Errno::INVAL.into());
        }
        let Some((last, parents)) = path.split_last() else {
            return Ok(openat(&self.root, ".", flags, Mode::empty())?);
        };
        if self.whole_paths && bytes_of(path) <= PATH_BYTES {
            return open_whole(self.root.as_fd(), &path.join(&b'/'), flags);
        }
        let mut folder: Option<OwnedFd> = None;
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for component in parents {
            let from = folder.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            folder = Some(openat(from, component.as_slice(), step, Mode::empty())?);
        }
        let from = folder.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
        Ok(openat(from, last.as_slice(), flags, Mode::empty())?)
    }

    /// Opens a folder, to use names in it (O_PATH).
    pub(crate) fn folder(&self, path: &[Vec<u8>]) -> io::Result<OwnedFd> {
        self.open(path, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// Opens a folder, to list or to sync it.
    pub(crate) fn listed(&self, path: &[Vec<u8>]) -> io::Result<OwnedFd> {
        self.open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)
    }
}

fn resolve() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

fn open_whole(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    // EAGAIN: names moved while the kernel walked (openat2(2)).
    for _ in 0..16 {
        match openat2(root, path, flags, Mode::empty(), resolve()) {
            Err(Errno::AGAIN) => {}
            other => return Ok(other?),
        }
    }
    Err(Errno::AGAIN.into())
}

fn bytes_of(path: &[Vec<u8>]) -> usize {
    path.iter().map(|component| component.len() + 1).sum()
}

/// True for a name that means an entry of its folder: not empty, ".", "..", and without "/" and NUL.
pub(crate) fn is_name(component: &[u8]) -> bool {
    !matches!(component, b"" | b"." | b"..") && !component.iter().any(|byte| matches!(byte, b'/' | 0))
}

#[cfg(test)]
#[path = "beneath_tests.rs"]
mod tests;
