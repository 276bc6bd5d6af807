//! Sockets: the congestion control of a connection, connecting, receiving.

use crate::clock;
use bytes::BytesMut;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{FromRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use units::Span;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Gives a socket its congestion control, by the kernel's name for it; None leaves the namespace's default. A listener
/// hands it on to the connections that it takes.
pub(crate) fn set_congestion(socket: RawFd, name: Option<&str>) -> io::Result<()> {
    let Some(name) = name else { return Ok(()) };
    let (at, length) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
    // SAFETY: the name is valid for its length.
    check(unsafe { libc::setsockopt(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, at, length) })
        .map(drop)
        .map_err(|e| io::Error::new(e.kind(), format!("TCP_CONGESTION = {name}: {e}")))
}

/// The congestion control of a connection, by the kernel's name.
pub(crate) fn congestion(socket: RawFd) -> io::Result<String> {
    // TCP_CA_NAME_MAX.
    let mut name = [0_u8; 16];
    let mut length = name.len() as libc::socklen_t;
    let at = name.as_mut_ptr().cast();
    // SAFETY: the buffer has that many bytes.
    check(unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, at, &mut length) })?;
    Ok(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

/// How often a connection attempt checks for the stop flag, ms.
const POLL_MS: i32 = 50;

/// Connects with a congestion control that is there from the first segment on, for `timeout` at most and no longer
/// than `stop` lets. The socket does not block.
pub(crate) fn connect(
    address: SocketAddr,
    congestion_control: Option<&str>,
    timeout: Span,
    stop: &AtomicBool,
) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a plain system call.
    let fd = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: the descriptor is new and owned here.
    let stream = unsafe { TcpStream::from_raw_fd(fd) };
    set_congestion(fd, congestion_control)?;
    match address {
        SocketAddr::V4(v4) => {
            let to = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            connect_to(fd, &to)?;
        }
        SocketAddr::V6(v6) => {
            let to = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            connect_to(fd, &to)?;
        }
    }
    let end = clock::now() + timeout;
    let mut ready = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one entry is there.
    while unsafe { libc::poll(&mut ready, 1, POLL_MS) } <= 0 {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if clock::now() > end {
            let text = format!("no answer within {} s", timeout.0 / 1_000_000_000);
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
    }
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn connect_to<T>(socket: RawFd, to: &T) -> io::Result<()> {
    let length = std::mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: an address of this length is there.
    match check(unsafe { libc::connect(socket, std::ptr::from_ref(to).cast(), length) }) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        done => done.map(drop),
    }
}

/// Reads available bytes into the spare capacity of a buffer.
pub(crate) fn receive(mut socket: &TcpStream, buffer: &mut BytesMut) -> io::Result<usize> {
    let start = buffer.len();
    let spare: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
    // SAFETY: recv(2), which is what read does on a socket, writes into the slice and never reads from it.
    let spare = unsafe { &mut *(std::ptr::from_mut(spare) as *mut [u8]) };
    let got = socket.read(spare)?;
    // SAFETY: `got` bytes were written behind the present length.
    unsafe { buffer.set_len(start + got) };
    Ok(got)
}
