//! The lock on a served file, against other programs that serve or write it.
//!
//! An open file description lock (fcntl(2), F_OFD_SETLK) over the whole file: it ends with the descriptor, after kill
//! -9 too, and two descriptors of one process exclude each other, so that a file cannot be served twice. QEMU locks
//! its images in the same way.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The kind of lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockKind {
    /// Excludes all others.
    Exclusive,
    /// Excludes exclusive locks.
    Shared,
}

/// Locks a file, at once or not at all.
///
/// # Errors
/// `WouldBlock` when another holds a lock that excludes this one; else the kernel's, such as of a file system without
/// locks.
pub(crate) fn lock(file: &File, kind: LockKind) -> io::Result<()> {
    let wanted = libc::flock {
        l_type: if kind == LockKind::Exclusive { libc::F_WRLCK } else { libc::F_RDLCK } as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        // To the end, wherever that is.
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the kernel reads a struct that is there.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &wanted) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match (error.raw_os_error(), kind) {
        (Some(libc::EAGAIN | libc::EACCES), LockKind::Exclusive) => {
            let text = "in use by another program, or given twice; --shared where all that use it say so";
            Err(io::Error::new(io::ErrorKind::WouldBlock, text))
        }
        (Some(libc::EAGAIN | libc::EACCES), LockKind::Shared) => {
            let text = "in use by another program that shares it with nobody";
            Err(io::Error::new(io::ErrorKind::WouldBlock, text))
        }
        _ => Err(io::Error::new(error.kind(), format!("cannot be locked: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::ErrorKind;

    #[test]
    fn an_exclusive_lock_excludes_all_and_shared_ones_coexist() {
        let path = std::env::temp_dir().join(format!("elephan-lock-{}", std::process::id()));
        std::fs::write(&path, "x").unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let (first, second, third) = (open(), open(), open());
        let kind = |done: io::Result<()>| done.map_err(|error| error.kind());
        assert_eq!(kind(lock(&first, LockKind::Exclusive)), Ok(()));
        assert_eq!(kind(lock(&second, LockKind::Exclusive)), Err(ErrorKind::WouldBlock));
        assert_eq!(kind(lock(&second, LockKind::Shared)), Err(ErrorKind::WouldBlock));
        drop(first);
        assert_eq!(kind(lock(&second, LockKind::Shared)), Ok(()));
        assert_eq!(kind(lock(&third, LockKind::Shared)), Ok(()));
        assert_eq!(kind(lock(&open(), LockKind::Exclusive)), Err(ErrorKind::WouldBlock));
        std::fs::remove_file(path).unwrap();
    }
}
