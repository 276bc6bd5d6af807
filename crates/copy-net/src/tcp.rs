//! TCP of the kernel: settings per socket, TLS over it unless the user wants none.

use crate::error::{CopyError, ErrorKind};
use crate::tcp_end::{set_option, TcpEnd};
use crate::tls::TlsKeys;
use crate::transport::{Connection, Dialer, Handle, Incoming, Listener};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{self, sockopt, AddressFamily, SocketFlags, SocketType};
use std::io::{self, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

/// A handshake looks so often whether the copy is over.
const SLICE: Duration = Duration::from_millis(100);

/// Bytes of a stream that wait in the kernel to be sent, at most (TCP_NOTSENT_LOWAT). Without it a slow stream takes
/// megabytes that faster ones would have sent, and counts them as sent.
const UNSENT_BYTES: u32 = 512 << 10;

/// Connections that wait to be accepted: beside the other end's own, strangers' that come at once.
const BACKLOG: i32 = 1024;
/// Pause after a connection that could not be accepted for lack of descriptors or memory: it stays in the backlog.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Settings of each socket; absent: the host's.
#[derive(Clone, Debug, Default)]
pub(crate) struct TcpSettings {
    pub congestion_control: Option<String>,
    pub send_buffer_bytes: Option<u64>,
    pub receive_buffer_bytes: Option<u64>,
    pub max_segment_bytes: Option<u32>,
    /// Data that is not acknowledged for so long ends the connection (TCP_USER_TIMEOUT).
    pub silence: Duration,
}

impl TcpSettings {
    /// Sets what has to be set before the handshake: it scales the window by the buffers.
    fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        let socket = socket.as_fd();
        if let Some(name) = &self.congestion_control {
            sockopt::set_tcp_congestion(socket, name).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("congestion control {name:?}: {error}"))
            })?;
        }
        if let Some(bytes) = self.send_buffer_bytes {
            set_buffer(socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, bytes)?;
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            set_buffer(socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, bytes)?;
        }
        if let Some(bytes) = self.max_segment_bytes {
            set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)?;
        }
        sockopt::set_tcp_nodelay(socket, true)?;
        set_option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, UNSENT_BYTES)?;
        let silence_ms = u32::try_from(self.silence.as_millis()).unwrap_or(u32::MAX);
        set_option(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, silence_ms)?;
        Ok(())
    }
}

/// Beyond the host's limit with rights, else up to it. The kernel doubles the number for its own structures.
fn set_buffer(socket: BorrowedFd<'_>, force: i32, plain: i32, bytes: u64) -> io::Result<()> {
    let bytes = i32::try_from(bytes / 2).unwrap_or(i32::MAX / 2);
    set_option(socket, libc::SOL_SOCKET, force, bytes).or_else(|_| set_option(socket, libc::SOL_SOCKET, plain, bytes))
}

/// Handshake, if there are keys.
fn establish(end: TcpEnd, keys: Option<&TlsKeys>, wait: Duration, over: &AtomicBool) -> io::Result<Connection> {
    end.timeouts(Some(SLICE))?;
    let end_ns = path_net::monotonic_ns() + wait.as_nanos() as u64;
    let connection = match keys {
        Some(keys) => keys.handshake(end.clone(), &|| over.load(Relaxed) || path_net::monotonic_ns() > end_ns)?,
        None => Connection {
            reader: Box::new(BufReader::with_capacity(64 << 10, SharedSocket(end.clone()))),
            writer: Box::new(SharedSocket(end.clone())),
            handle: Arc::new(end.clone()),
        },
    };
    end.timeouts(None)?;
    Ok(connection)
}

struct SharedSocket(TcpEnd);

impl io::Read for SharedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0.stream).read(buffer)
    }
}

impl io::Write for SharedSocket {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self.0.stream).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The port that the other end connects to.
pub(crate) struct TcpPort {
    listener: TcpListener,
    port: u16,
    keys: Option<TlsKeys>,
    over: Arc<AtomicBool>,
}

impl TcpPort {
    /// Binds the first free port of the range.
    ///
    /// # Errors
    /// `Port`: none is free. `Input`: a setting that the kernel does not take.
    pub fn bind(
        local: Option<IpAddr>,
        ports: Option<(u16, u16)>,
        settings: &TcpSettings,
        keys: Option<TlsKeys>,
        over: Arc<AtomicBool>,
    ) -> Result<TcpPort, CopyError> {
        let (low, high) = ports.unwrap_or((0, 0));
        let hosts = match local {
            Some(local) => vec![local],
            None => vec![IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
        };
        let mut last = None;
        for port in low..=high {
            for &host in &hosts {
                match listen(SocketAddr::new(host, port), settings) {
                    Ok(listener) => {
                        let port = listener.local_addr().map_err(|error| port_error(&error))?.port();
                        return Ok(TcpPort { listener, port, keys, over });
                    }
                    Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                        return Err(CopyError { kind: ErrorKind::Input, text: error.to_string() });
                    }
                    Err(error) => last = Some((port, error)),
                }
            }
        }
        let (port, error) = last.unwrap_or((low, io::ErrorKind::InvalidInput.into()));
        Err(CopyError { kind: ErrorKind::Port, text: format!("port {port} (of {low} to {high}): {error}") })
    }
}

fn port_error(error: &io::Error) -> CopyError {
    CopyError { kind: ErrorKind::Port, text: format!("port: {error}") }
}

fn listen(address: SocketAddr, settings: &TcpSettings) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    settings.apply(&socket)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

fn socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// True if the descriptor is ready within `wait`.
fn ready(descriptor: BorrowedFd<'_>, flags: PollFlags, wait: Duration) -> io::Result<bool> {
    let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    match poll(&mut [PollFd::from_borrowed_fd(descriptor, flags)], Some(&timeout)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Listener for TcpPort {
    fn port(&self) -> u16 {
        self.port
    }

    fn next(&self, wait: Duration) -> io::Result<Option<Box<dyn Incoming>>> {
        if !ready(self.listener.as_fd(), PollFlags::IN, wait)? {
            return Ok(None);
        }
        match self.listener.accept() {
            Ok((stream, peer)) => Ok(Some(Box::new(TcpIncoming {
                end: TcpEnd::new(stream),
                peer: peer.ip().to_canonical(),
                keys: self.keys.clone(),
                over: self.over.clone(),
            }))),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) => {
                let _ = rustix::thread::nanosleep(&PAUSE);
                Ok(None)
            }
            // The peer has gone again (accept(2)).
            Err(error) if error.raw_os_error() != Some(libc::EBADF) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

struct TcpIncoming {
    end: TcpEnd,
    peer: IpAddr,
    keys: Option<TlsKeys>,
    over: Arc<AtomicBool>,
}

impl Incoming for TcpIncoming {
    fn peer(&self) -> IpAddr {
        self.peer
    }

    fn handle(&self) -> Arc<dyn Handle> {
        Arc::new(self.end.clone())
    }

    fn accept(self: Box<Self>, wait: Duration) -> io::Result<Connection> {
        self.end.stream.set_nodelay(true)?;
        establish(self.end.clone(), self.keys.as_ref(), wait, &self.over)
    }
}

/// Address of the other end, with settings of the sockets.
pub(crate) struct TcpDialer {
    pub peer: SocketAddr,
    pub local: Option<IpAddr>,
    pub settings: TcpSettings,
    pub keys: Option<TlsKeys>,
    /// Set: the copy is over, nobody waits for a connection.
    pub over: Arc<AtomicBool>,
}

impl Dialer for TcpDialer {
    fn connect(&self, wait: Duration) -> io::Result<Connection> {
        let socket = socket(self.peer)?;
        self.settings.apply(&socket)?;
        if let Some(local) = self.local {
            net::bind(&socket, &SocketAddr::new(local, 0))?;
        }
        rustix::io::ioctl_fionbio(&socket, true)?;
        match net::connect(&socket, &self.peer) {
            Ok(()) => {}
            Err(rustix::io::Errno::INPROGRESS) => {
                let end_ns = path_net::monotonic_ns() + wait.as_nanos() as u64;
                while !ready(socket.as_fd(), PollFlags::OUT, SLICE.min(wait))? {
                    if self.over.load(Relaxed) || path_net::monotonic_ns() > end_ns {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                sockopt::socket_error(&socket)??;
            }
            Err(error) => return Err(error.into()),
        }
        rustix::io::ioctl_fionbio(&socket, false)?;
        establish(TcpEnd::new(TcpStream::from(socket)), self.keys.as_ref(), wait, &self.over)
    }
}
