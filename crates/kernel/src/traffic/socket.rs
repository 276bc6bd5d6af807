//! A TCP socket without blocking, and the options that a plan asks for.

use super::info::Info;
use crate::namespace;
use crate::socket_plan::SocketPlan;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Longest back-off of the retransmission timer, ms (Linux 6.15; include/uapi/linux/tcp.h; not in libc's list yet).
const TCP_RTO_MAX_MS: libc::c_int = 44;

/// Bytes to send; no receiver reads their values. The array is never written, so all its pages are the kernel's zero
/// page, which stays in the cache.
static ZEROES: [u8; CHUNK] = [0; CHUNK];

/// Limit of a write, bytes: one segment of the kernel's offload is 64 KiB.
const CHUNK: usize = 256 << 10;

/// Most bytes taken by one call.
const SWEEP: usize = 4 << 20;

/// An open socket; closing it resets the connection, so that nothing lingers.
pub(crate) struct Socket(OwnedFd);

/// Error of an option, with its name and value.
pub(crate) type Failed = (String, io::Error);

impl Socket {
    /// The sending end of a connection under `plan`, bound to `address`, in the namespace whose file is `namespace`;
    /// None: this thread's.
    pub fn sender(namespace: Option<&str>, address: IpAddr, plan: &SocketPlan) -> Result<Socket, Failed> {
        let socket = Socket::new(namespace, address)?;
        socket.set_common(plan)?;
        if let Some(bytes) = plan.send_buffer_bytes {
            socket.set_buffer(["SO_SNDBUFFORCE", "SO_SNDBUF"], [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], bytes)?;
        }
        // The simulator's endpoint has no Nagle either: a message goes when the window lets it.
        socket.set_no_delay()?;
        if plan.pacing || plan.max_pacing_bps.is_some() {
            // With any limit but "none" (all ones) the kernel paces at the rate of the congestion control's window and
            // RTT; that in place of none is never reached.
            let rate = plan.max_pacing_bps.map_or(u64::MAX - 1, |bps| (bps / 8).max(1));
            socket.set("SO_MAX_PACING_RATE", libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate)?;
        }
        if let Some(ms) = plan.rto_max_ms {
            socket.set("TCP_RTO_MAX_MS", libc::IPPROTO_TCP, TCP_RTO_MAX_MS, int(u64::from(ms)))?;
        }
        socket.bind(address, 0)?;
        Ok(socket)
    }

    /// A listener for `backlog` connections that wait: they inherit its options. Port 0: the kernel chooses.
    pub fn listener(
        namespace: Option<&str>,
        address: SocketAddr,
        plan: &SocketPlan,
        backlog: i32,
    ) -> Result<Socket, Failed> {
        let socket = Socket::new(namespace, address.ip())?;
        socket.set_common(plan)?;
        if let Some(bytes) = plan.receive_buffer_bytes {
            socket.set_buffer(["SO_RCVBUFFORCE", "SO_RCVBUF"], [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], bytes)?;
        }
        if let Some(bytes) = plan.window_clamp_bytes {
            socket.clamp_window(bytes)?;
        }
        socket.set("SO_REUSEADDR", libc::SOL_SOCKET, libc::SO_REUSEADDR, 1 as libc::c_int)?;
        socket.bind(address.ip(), address.port())?;
        net::listen(&socket.0, backlog).map_err(|e| (format!("listen on port {}", address.port()), e.into()))?;
        Ok(socket)
    }

    fn new(namespace: Option<&str>, address: IpAddr) -> Result<Socket, Failed> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let make = || net::socket_with(family, SocketType::STREAM, flags, None).map_err(io::Error::from);
        let made = match namespace {
            Some(path) => namespace::within(path, make).and_then(|made| made),
            None => make(),
        };
        let made =
            made.map_err(|e| (format!("a socket{}", namespace.map_or(String::new(), |n| format!(" in {n}"))), e));
        let socket = Socket(made?);
        socket.set_reset()?;
        Ok(socket)
    }

    /// Closing it resets the connection.
    fn set_reset(&self) -> Result<(), Failed> {
        let reset = libc::linger { l_onoff: 1, l_linger: 0 };
        self.set("SO_LINGER", libc::SOL_SOCKET, libc::SO_LINGER, reset)
    }

    /// Sends data as soon as it is written.
    pub fn set_no_delay(&self) -> Result<(), Failed> {
        self.set("TCP_NODELAY", libc::IPPROTO_TCP, libc::TCP_NODELAY, 1 as libc::c_int)
    }

    /// Options of both ends.
    fn set_common(&self, plan: &SocketPlan) -> Result<(), Failed> {
        if let Some(name) = &plan.congestion_control {
            // SAFETY: the name is valid for its length.
            check(unsafe {
                let (at, length) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
                libc::setsockopt(self.fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, at, length)
            })
            .map_err(|e| (format!("TCP_CONGESTION = {name}"), e))?;
        }
        if let Some(bytes) = plan.max_segment_bytes {
            self.set("TCP_MAXSEG", libc::IPPROTO_TCP, libc::TCP_MAXSEG, int(u64::from(bytes)))?;
        }
        Ok(())
    }

    /// Sets the size of a buffer: beyond the host's limit where this process may, else up to it.
    fn set_buffer(&self, names: [&str; 2], [forced, plain]: [libc::c_int; 2], bytes: u64) -> Result<(), Failed> {
        match self.set(names[0], libc::SOL_SOCKET, forced, int(bytes)) {
            Err((_, error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.set(names[1], libc::SOL_SOCKET, plain, int(bytes))
            }
            other => other,
        }
    }

    /// Bounds what waits in the kernel without having been sent.
    pub fn set_unsent_bound(&self, bytes: u64) -> Result<(), Failed> {
        self.set("TCP_NOTSENT_LOWAT", libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, int(bytes))
    }

    /// Bounds the window that is offered. To be done again after data has come: when the kernel finds that segments
    /// take more or less memory than it thought, it sets the clamp to what the whole receive buffer holds (seen on
    /// Linux 6.18; tcp_measure_rcv_mss in net/ipv4/tcp_input.c). Costs a system call; to set what is set already does
    /// nothing.
    pub fn clamp_window(&self, bytes: u64) -> Result<(), Failed> {
        self.set("TCP_WINDOW_CLAMP", libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, int(bytes))
    }

    fn set<T: std::fmt::Debug>(&self, name: &str, level: i32, option: i32, value: T) -> Result<(), Failed> {
        let at = std::ptr::from_ref(&value).cast();
        let length = std::mem::size_of::<T>() as libc::socklen_t;
        // SAFETY: the value is valid for its length.
        check(unsafe { libc::setsockopt(self.fd(), level, option, at, length) })
            .map(drop)
            .map_err(|e| (format!("{name} = {value:?}"), e))
    }

    fn bind(&self, address: IpAddr, port: u16) -> Result<(), Failed> {
        let to = SocketAddr::new(address, port);
        net::bind(&self.0, &to).map_err(|e| (format!("bind to {to}"), e.into()))
    }

    /// Its own address and port.
    pub fn local(&self) -> io::Result<SocketAddr> {
        let address = SocketAddr::try_from(net::getsockname(&self.0)?);
        address.map_err(|error| io::Error::other(format!("an address of the socket: {error}")))
    }

    /// Begins to connect; it is writable when that has ended.
    pub fn connect(&self, to: SocketAddr) -> io::Result<()> {
        match net::connect(&self.0, &to) {
            Err(error) if error != rustix::io::Errno::INPROGRESS => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The connection that waits, if any, and its peer.
    pub fn accept(&self) -> io::Result<Option<(Socket, IpAddr)>> {
        loop {
            match net::acceptfrom_with(&self.0, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((made, Some(peer))) => {
                    let peer = SocketAddr::try_from(peer).map_err(|error| io::Error::other(error.to_string()))?;
                    return Ok(Some((Socket(made), peer.ip())));
                }
                // Reset before it was taken: another may wait behind it.
                Ok((_, None)) => {}
                Err(error) => match io::Error::from(error) {
                    error if would_block(&error) => return Ok(None),
                    error if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    error => return Err(error),
                },
            }
        }
    }

    /// Sends as much of `bytes` as there is room for; returns how many.
    pub fn send_bytes(&self, bytes: &[u8]) -> io::Result<usize> {
        match net::send(&self.0, bytes, net::SendFlags::NOSIGNAL).map_err(io::Error::from) {
            Err(error) if would_block(&error) => Ok(0),
            other => other,
        }
    }

    /// Reads into `buffer`; None if there is nothing, 0 at the stream's end.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match net::recv(&self.0, buffer, net::RecvFlags::empty()).map_err(io::Error::from) {
            Ok((length, _)) => Ok(Some(length)),
            Err(error) if would_block(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends up to `bytes`, a chunk at most; None when there is no room.
    pub fn send(&self, bytes: u64) -> io::Result<Option<u64>> {
        let length = bytes.min(CHUNK as u64) as usize;
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe { libc::send(self.fd(), ZEROES.as_ptr().cast(), length, libc::MSG_NOSIGNAL) };
        taken(sent)
    }

    /// Bytes handed over and not acknowledged (SIOCOUTQ, tcp(7)).
    pub fn unacknowledged(&self) -> io::Result<u64> {
        let mut bytes: libc::c_int = 0;
        // SAFETY: `bytes` is valid to write to. SIOCOUTQ is TIOCOUTQ (linux/sockios.h).
        check(unsafe { libc::ioctl(self.fd(), libc::TIOCOUTQ, &mut bytes) })?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Takes the data that has arrived, without copying it (MSG_TRUNC, tcp(7)); None if there is none, 0 at the
    /// stream's end.
    pub fn take(&self) -> io::Result<Option<u64>> {
        // SAFETY: with MSG_TRUNC TCP writes nothing to the buffer.
        let got = unsafe { libc::recv(self.fd(), std::ptr::null_mut(), SWEEP, libc::MSG_TRUNC) };
        taken(got)
    }

    /// Ends the stream after the data that was sent.
    pub fn shut_down(&self) -> io::Result<()> {
        // SAFETY: a plain system call on an open descriptor.
        check(unsafe { libc::shutdown(self.fd(), libc::SHUT_WR) }).map(drop)
    }

    /// Resets the connection and discards unsent data.
    pub fn abort(&self) {
        // SAFETY: sockaddr is plain data, for which zeroes are valid: AF_UNSPEC.
        let nobody: libc::sockaddr = unsafe { std::mem::zeroed() };
        let length = std::mem::size_of_val(&nobody) as libc::socklen_t;
        // SAFETY: the address is valid for its length. It cannot fail for a TCP socket.
        unsafe { libc::connect(self.fd(), &nobody, length) };
    }

    /// The error that the connection has met; it is then forgotten.
    pub fn take_error(&self) -> io::Result<()> {
        let mut error: libc::c_int = 0;
        let mut length = std::mem::size_of_val(&error) as libc::socklen_t;
        let into = std::ptr::from_mut(&mut error).cast();
        // SAFETY: `into` points to `length` bytes.
        check(unsafe { libc::getsockopt(self.fd(), libc::SOL_SOCKET, libc::SO_ERROR, into, &mut length) })?;
        if error == 0 {
            return Ok(());
        }
        Err(io::Error::from_raw_os_error(error))
    }

    /// The congestion control that the connection really has.
    pub fn congestion(&self) -> io::Result<String> {
        // TCP_CA_NAME_MAX of include/net/tcp.h.
        let mut name = [0u8; 16];
        let mut length = name.len() as libc::socklen_t;
        let into = name.as_mut_ptr().cast();
        // SAFETY: `into` points to `length` bytes.
        check(unsafe { libc::getsockopt(self.fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, into, &mut length) })?;
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// An option of type int, as the kernel has it.
    pub fn get(&self, level: libc::c_int, option: libc::c_int) -> io::Result<u64> {
        let mut value: libc::c_int = 0;
        let mut length = std::mem::size_of_val(&value) as libc::socklen_t;
        let into = std::ptr::from_mut(&mut value).cast();
        // SAFETY: `into` points to `length` bytes.
        check(unsafe { libc::getsockopt(self.fd(), level, option, into, &mut length) })?;
        Ok(u64::try_from(value).unwrap_or(0))
    }

    /// Returns the kernel's values of the connection.
    pub fn info(&self) -> io::Result<Info> {
        Info::of(self.fd())
    }

    /// Returns the kernel's values of the connection; None where it has too few of them, as an emulated kernel may
    /// (qemu-user). A receiver does without.
    pub fn info_if_told(&self) -> io::Result<Option<Info>> {
        match self.info() {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            other => other.map(Some),
        }
    }

    /// Its descriptor, to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// As an int, which most options are; more than it holds is as good as its most.
fn int(value: u64) -> libc::c_int {
    libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn taken(result: libc::ssize_t) -> io::Result<Option<u64>> {
    match u64::try_from(result) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(_) => match io::Error::last_os_error() {
            error if would_block(&error) => Ok(None),
            error => Err(error),
        },
    }
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
