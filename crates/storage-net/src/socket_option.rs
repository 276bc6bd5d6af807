//! Socket options that rustix does not have.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option to a value of the type that it has.
pub(crate) fn set<T>(socket: impl AsFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let bytes = size_of::<T>() as u32;
    // SAFETY: the kernel reads as many bytes as the value has.
    let done =
        unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), bytes) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
