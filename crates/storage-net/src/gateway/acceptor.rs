//! Takes connections of a listening socket, also when the process has no descriptor left.

use rustix::fs::{open, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{getrlimit, setrlimit, Resource};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A listening socket that does not block.
#[derive(Debug)]
pub(super) struct Acceptor {
    listener: TcpListener,
    /// A descriptor to give up. Without one, a connection that cannot be taken would stay in the backlog, and the
    /// socket would stay readable: the gateway would turn without a pause.
    reserve: Option<OwnedFd>,
}

impl Acceptor {
    /// Takes a socket that listens.
    pub fn new(listener: TcpListener) -> io::Result<Acceptor> {
        listener.set_nonblocking(true)?;
        Ok(Acceptor { listener, reserve: Some(reserve()?) })
    }

    /// The address that is listened on.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The socket, to wait for connections.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Takes the next connection; None when there is none now.
    ///
    /// # Errors
    /// A connection was closed, or cannot be taken now, since the process or the machine has no descriptor or memory
    /// left.
    pub fn accept(&mut self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        loop {
            let error = match self.listener.accept() {
                Ok(accepted) => return Ok(Some(accepted)),
                Err(error) => error,
            };
            match Errno::from_io_error(&error) {
                Some(Errno::WOULDBLOCK) => return Ok(None),
                Some(Errno::MFILE | Errno::NFILE) => {
                    drop(self.reserve.take());
                    drop(self.listener.accept());
                    self.reserve = Some(reserve()?);
                    return Err(error);
                }
                // accept(2): errors of the new connection, which is gone.
                Some(
                    Errno::INTR
                    | Errno::CONNABORTED
                    | Errno::PERM
                    | Errno::PROTO
                    | Errno::NOPROTOOPT
                    | Errno::OPNOTSUPP
                    | Errno::NETDOWN
                    | Errno::NETUNREACH
                    | Errno::HOSTDOWN
                    | Errno::HOSTUNREACH,
                ) => {}
                _ => return Err(error),
            }
        }
    }
}

/// A descriptor of no other use.
fn reserve() -> io::Result<OwnedFd> {
    Ok(open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Raises this process' bound on open files as far as it may: each session with a remote port has a connection, and the
/// usual bound is 1024.
pub(super) fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A bound that cannot be raised holds as it is.
    let _ = setrlimit(Resource::Nofile, limit);
}
