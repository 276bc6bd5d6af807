//! A TCP socket without blocking, and the options that a plan asks for.

use super::info::Info;
use crate::namespace;
use crate::plan::FlowPlan;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

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
    /// The sending end of `flow`, bound to `address`, in the namespace whose file is `namespace`.
    pub fn sender(namespace: &str, address: Ipv4Addr, flow: &FlowPlan) -> Result<Socket, Failed> {
        let socket = Socket::new(namespace)?;
        socket.set_common(flow)?;
        if let Some(bytes) = flow.send_buffer_bytes {
            socket.set("SO_SNDBUFFORCE", libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, int(bytes))?;
        }
        // The simulator's endpoint has no Nagle either: a message goes when the window lets it.
        socket.set("TCP_NODELAY", libc::IPPROTO_TCP, libc::TCP_NODELAY, 1 as libc::c_int)?;
        if flow.pacing {
            // With any limit but "none" (all ones) the kernel paces at the rate of the congestion control's window and
            // RTT; this one is never reached.
            socket.set("SO_MAX_PACING_RATE", libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64::MAX - 1)?;
        }
        if let Some(ms) = flow.rto_max_ms {
            socket.set("TCP_RTO_MAX_MS", libc::IPPROTO_TCP, TCP_RTO_MAX_MS, int(u64::from(ms)))?;
        }
        socket.bind(address, 0)?;
        Ok(socket)
    }

    /// The listener of `flow`, in the namespace whose file is `namespace`: connections inherit its options.
    pub fn listener(namespace: &str, address: Ipv4Addr, flow: &FlowPlan) -> Result<Socket, Failed> {
        let socket = Socket::new(namespace)?;
        socket.set_common(flow)?;
        if let Some(bytes) = flow.receive_buffer_bytes {
            socket.set("SO_RCVBUFFORCE", libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, int(bytes))?;
        }
        socket.clamp_window(flow.window_clamp_bytes)?;
        socket.set("SO_REUSEADDR", libc::SOL_SOCKET, libc::SO_REUSEADDR, 1 as libc::c_int)?;
        socket.bind(address, flow.port)?;
        // SAFETY: a plain system call on an open descriptor.
        check(unsafe { libc::listen(socket.fd(), 1) }).map_err(|e| (format!("listen on port {}", flow.port), e))?;
        Ok(socket)
    }

    fn new(namespace: &str) -> Result<Socket, Failed> {
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call.
        let made = namespace::within(namespace, || check(unsafe { libc::socket(libc::AF_INET, kind, 0) }));
        let fd = made.and_then(|fd| fd).map_err(|e| (format!("a socket in {namespace}"), e))?;
        // SAFETY: the descriptor was just made and has no other owner.
        let socket = Socket(unsafe { OwnedFd::from_raw_fd(fd) });
        let reset = libc::linger { l_onoff: 1, l_linger: 0 };
        socket.set("SO_LINGER", libc::SOL_SOCKET, libc::SO_LINGER, reset)?;
        Ok(socket)
    }

    /// Options of both ends.
    fn set_common(&self, flow: &FlowPlan) -> Result<(), Failed> {
        let name = flow.congestion_control.as_bytes();
        // SAFETY: the name is valid for its length.
        check(unsafe {
            let (at, length) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
            libc::setsockopt(self.fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, at, length)
        })
        .map_err(|e| (format!("TCP_CONGESTION = {}", flow.congestion_control), e))?;
        if let Some(bytes) = flow.max_segment_bytes {
            self.set("TCP_MAXSEG", libc::IPPROTO_TCP, libc::TCP_MAXSEG, int(u64::from(bytes)))?;
        }
        Ok(())
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

    fn bind(&self, address: Ipv4Addr, port: u16) -> Result<(), Failed> {
        let name = sockaddr(SocketAddrV4::new(address, port));
        let length = std::mem::size_of_val(&name) as libc::socklen_t;
        // SAFETY: the address is valid for its length.
        check(unsafe { libc::bind(self.fd(), std::ptr::from_ref(&name).cast(), length) })
            .map(drop)
            .map_err(|e| (format!("bind to {address}:{port}"), e))
    }

    /// Begins to connect; it is writable when that has ended.
    pub fn connect(&self, to: SocketAddrV4) -> io::Result<()> {
        let name = sockaddr(to);
        let length = std::mem::size_of_val(&name) as libc::socklen_t;
        // SAFETY: the address is valid for its length.
        match check(unsafe { libc::connect(self.fd(), std::ptr::from_ref(&name).cast(), length) }) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(()),
        }
    }

    /// The connection that waits, if any.
    pub fn accept(&self) -> io::Result<Option<Socket>> {
        let (none, flags) = (std::ptr::null_mut(), libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
        // SAFETY: a plain system call; the peer's address is not asked for.
        match check(unsafe { libc::accept4(self.fd(), none, std::ptr::null_mut(), flags) }) {
            // SAFETY: the descriptor was just made and has no other owner.
            Ok(fd) => Ok(Some(Socket(unsafe { OwnedFd::from_raw_fd(fd) }))),
            Err(error) if would_block(&error) || error.kind() == io::ErrorKind::ConnectionAborted => Ok(None),
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

    /// Returns the kernel's values of the connection.
    pub fn info(&self) -> io::Result<Info> {
        Info::of(self.fd())
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

fn sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}
