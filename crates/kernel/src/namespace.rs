//! Doing something in another network namespace.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Runs `work` in the network namespace whose file is `path`: on a thread of its own, since a thread is what moves, and
/// that one ends. What `work` opens there (sockets, files of /proc/thread-self/net) stays there, whoever uses it later.
///
/// # Errors
/// The file cannot be opened, or the kernel does not let the thread in (CAP_SYS_ADMIN).
pub(crate) fn within<T: Send>(path: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let there = File::open(path)?;
    let entered = || {
        // SAFETY: a plain system call; it moves this thread alone, which ends after this.
        if unsafe { libc::setns(there.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(work())
    };
    std::thread::scope(|scope| scope.spawn(entered).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
