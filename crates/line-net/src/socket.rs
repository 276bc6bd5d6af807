//! Calls of sockets that rustix does not have.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// A socket that is closed on exec and does not block.
pub(crate) fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers alone.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets an option to a value of the type that it has.
pub(crate) fn set<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let bytes = size_of::<T>() as u32;
    // SAFETY: the kernel reads as many bytes of the value as it has.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads an option of a type.
pub(crate) fn get<T>(socket: impl AsFd, level: libc::c_int, option: libc::c_int, mut value: T) -> io::Result<T> {
    let mut bytes = size_of::<T>() as u32;
    // SAFETY: the kernel writes at most as many bytes as the value has.
    let done = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, std::ptr::from_mut(&mut value).cast(), &mut bytes)
    };
    match done {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Binds a socket to an address of a family of its own.
pub(crate) fn bind<T>(socket: &OwnedFd, address: &T) -> io::Result<()> {
    let bytes = size_of::<T>() as u32;
    // SAFETY: the kernel reads as many bytes of the address as it has.
    match unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(address).cast(), bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
