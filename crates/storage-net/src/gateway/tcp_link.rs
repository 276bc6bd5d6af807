//! A connection to another gateway, TCP alone or TLS on it: bytes in and out, without blocking.

use super::tls::Session;
use crate::socket::{receive, set_congestion};
use crate::socket_option;
use bytes::{Buf, BytesMut};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
};
use rustix::net::{bind, connect, socket_with, AddressFamily, SocketFlags, SocketType};
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Bytes of one read: several frames.
const READ_BYTES: usize = 64 << 10;
/// Bytes that TCP may hold unsent. What is beyond waits in the gateway, where back-pressure and time stamps see it.
const UNSENT_BYTES: libc::c_int = 128 << 10;
/// Bytes that are taken from the gateway at once.
pub(super) const WRITE_BYTES: usize = 128 << 10;
/// A connection without a session has no liveness tests: TCP notices a dead peer after 3 s and three probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(3), Duration::from_secs(1), 3);

/// A connection, which may still be on its way.
#[derive(Debug)]
pub(super) struct TcpLink {
    stream: TcpStream,
    tls: Option<Session>,
    is_connected: bool,
    /// Connected, and TLS has shown who the peer is.
    pub is_up: bool,
    pub input: BytesMut,
    pub output: BytesMut,
}

impl TcpLink {
    /// Begins a connection, from an address of this machine where one is given.
    pub fn open(
        to: SocketAddr,
        from: Option<IpAddr>,
        congestion_control: Option<&str>,
        tls: Option<Session>,
    ) -> io::Result<TcpLink> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let stream = TcpStream::from(socket_with(family, SocketType::STREAM, flags, None)?);
        if let Some(from) = from {
            bind(&stream, &SocketAddr::new(from, 0))?;
        }
        set_congestion(&stream, congestion_control)?;
        set_options(&stream)?;
        match connect(&stream, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpLink::new(stream, tls, false)),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a connection that was accepted.
    pub fn accepted(stream: TcpStream, tls: Option<Session>) -> io::Result<TcpLink> {
        stream.set_nonblocking(true)?;
        set_options(&stream)?;
        Ok(TcpLink::new(stream, tls, true))
    }

    fn new(stream: TcpStream, tls: Option<Session>, is_connected: bool) -> TcpLink {
        let is_up = is_connected && tls.is_none();
        TcpLink { stream, tls, is_connected, is_up, input: BytesMut::new(), output: BytesMut::new() }
    }

    /// True when TCP was up and the handshake on it was not: the peer, or this side, did not take the other's identity.
    pub fn is_refused(&self) -> bool {
        self.is_connected && !self.is_up
    }

    /// True while something that came may wait to be read, of which the descriptor does not tell.
    pub fn has_input(&self) -> bool {
        self.tls.as_ref().is_some_and(Session::has_input)
    }

    /// True while something waits to be written.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty() || self.tls.as_ref().is_some_and(Session::wants_write)
    }

    /// The descriptor, and the changes to wait for; `reads`: bytes are taken now.
    pub fn waits_for(&self, reads: bool) -> (BorrowedFd<'_>, PollFlags) {
        let has_records = self.tls.as_ref().is_some_and(Session::wants_write);
        let mut events = PollFlags::empty();
        // A handshake goes on whatever waits for the SAN.
        events.set(PollFlags::IN, self.is_connected && (reads || !self.is_up));
        events.set(PollFlags::OUT, !self.is_connected || has_records || self.is_up && !self.output.is_empty());
        (self.stream.as_fd(), events)
    }

    /// Goes on to make the connection, with its handshake. True once it is there; an error when it cannot be.
    pub fn finish_connect(&mut self) -> io::Result<bool> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        match self.stream.peer_addr() {
            Ok(_) => self.is_connected = true,
            Err(error) if error.kind() == ErrorKind::NotConnected => {}
            Err(error) => return Err(error),
        }
        self.is_up = self.is_connected
            && match &mut self.tls {
                None => true,
                Some(tls) => tls.handshake(&self.stream)?,
            };
        Ok(self.is_up)
    }

    /// Reads once into `input`. False when there is nothing now.
    ///
    /// # Errors
    /// The connection is gone, or the peer has closed it.
    pub fn read(&mut self) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            return tls.read(&self.stream, &mut self.input);
        }
        self.input.reserve(READ_BYTES);
        match receive(&self.stream, &mut self.input) {
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the peer closed the connection")),
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes from `output` as far as there is room. True when all is written.
    pub fn write(&mut self) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            return tls.write(&self.stream, &mut self.output);
        }
        while !self.output.is_empty() {
            match (&self.stream).write(&self.output) {
                Ok(bytes) => self.output.advance(bytes),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Ends the connection by a reset, so that neither side keeps it.
    pub fn reset(self) {
        // A connection that is gone has nothing to reset.
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    let (idle, interval, probes) = KEEPALIVE;
    set_tcp_nodelay(stream, true)?;
    set_socket_keepalive(stream, true)?;
    set_tcp_keepidle(stream, idle)?;
    set_tcp_keepintvl(stream, interval)?;
    set_tcp_keepcnt(stream, probes)?;
    socket_option::set(stream, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &UNSENT_BYTES)
}
