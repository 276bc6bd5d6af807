//! Frames of a UNIX datagram socket, one a datagram (unix(7)).

use bytes::Bytes;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// A socket with the path of the node's.
#[derive(Debug)]
pub(super) struct DatagramSocket {
    socket: UnixDatagram,
    local: PathBuf,
    remote: PathBuf,
}

impl DatagramSocket {
    /// Binds a path. A socket that a killed gateway left there goes first.
    ///
    /// # Errors
    /// The path is in use, or cannot be bound.
    pub fn open(local: &Path, remote: &Path) -> io::Result<DatagramSocket> {
        if std::fs::symlink_metadata(local).is_ok_and(|found| found.file_type().is_socket()) {
            let refused = UnixDatagram::unbound()?.connect(local);
            match refused {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(local)?,
                Err(error) => return Err(error),
                Ok(()) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another program has it")),
            }
        }
        let socket = UnixDatagram::bind(local)?;
        socket.set_nonblocking(true)?;
        Ok(DatagramSocket { socket, local: local.to_owned(), remote: remote.to_owned() })
    }

    /// The socket, to wait for.
    pub fn fd(&self) -> &UnixDatagram {
        &self.socket
    }

    /// The next frame; `WouldBlock` when there is none. One that is longer than `buffer` is cut off.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Bytes> {
        let bytes = self.socket.recv(buffer)?;
        Ok(Bytes::copy_from_slice(&buffer[..bytes]))
    }

    /// Sends a frame; `WouldBlock` when the node does not take it now, `NotFound` or `ConnectionRefused` when it is
    /// not there.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send_to(frame, &self.remote)?;
        Ok(())
    }
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.local);
    }
}
