//! Sockets: the congestion control of a connection, connecting, receiving.

use crate::clock;
use crate::waker::milliseconds;
use bytes::BytesMut;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{socket_with, AddressFamily, SocketFlags, SocketType};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Span;

/// Gives a socket its congestion control, by the kernel's name for it; None leaves the namespace's default. A listener
/// hands it on to the connections that it takes.
pub(crate) fn set_congestion(socket: impl AsFd, name: Option<&str>) -> io::Result<()> {
    let Some(name) = name else { return Ok(()) };
    set_tcp_congestion(socket, name).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("TCP_CONGESTION = {name}: {error}"))
    })
}

/// Time between two looks of a connection attempt at the stop flag.
const POLL: Timespec = milliseconds(50);

/// Connects with a congestion control that is there from the first segment on, for `timeout` at most and no longer
/// than `stop` lets. The socket does not block.
pub(crate) fn connect(
    address: SocketAddr,
    congestion_control: Option<&str>,
    timeout: Span,
    stop: &AtomicBool,
) -> io::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let stream = TcpStream::from(socket_with(family, SocketType::STREAM, flags, None)?);
    set_congestion(&stream, congestion_control)?;
    match rustix::net::connect(&stream, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let end = clock::now() + timeout;
    while !matches!(poll(&mut [PollFd::new(&stream, PollFlags::OUT)], Some(&POLL)), Ok(1..)) {
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
