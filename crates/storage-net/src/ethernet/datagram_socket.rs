//! Frames of a UNIX datagram socket, one a datagram (unix(7)).

use super::batch::{self, Room};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// A socket with the path of the other side's.
#[derive(Debug)]
pub(super) struct DatagramSocket {
    receiver: UnixDatagram,
    /// Sends alone. It is connected, so that poll(2) tells when the other side has room; `receiver` is not, so that it
    /// takes the frames of a program that began anew at the other path.
    sender: UnixDatagram,
    local: PathBuf,
    remote: PathBuf,
}

impl DatagramSocket {
    /// Binds a path. A socket that a killed program left there goes first.
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
        let sender = UnixDatagram::unbound()?;
        let receiver = UnixDatagram::bind(local)?;
        Ok(DatagramSocket { receiver, sender, local: local.to_owned(), remote: remote.to_owned() })
    }

    /// The socket, to wait for frames.
    pub fn receiver(&self) -> &UnixDatagram {
        &self.receiver
    }

    /// The socket, to wait for room.
    pub fn sender(&self) -> &UnixDatagram {
        &self.sender
    }

    /// Takes the frames that have come; `WouldBlock` when there is none.
    pub fn receive(&self, room: &mut Room, into: &mut VecDeque<Bytes>) -> io::Result<()> {
        room.receive(&self.receiver, |frame, _| into.push_back(Bytes::copy_from_slice(frame)))?;
        Ok(())
    }

    /// Sends the first of the frames, and returns their number; `WouldBlock` when the other side takes none now,
    /// `NotFound` or `ConnectionRefused` when it is not there.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a Bytes> + Clone) -> io::Result<usize> {
        match batch::send(&self.sender, frames.clone()) {
            // Not connected yet, or the program at the path is another one now.
            Err(error) if is_lost(&error) => {
                self.sender.connect(&self.remote)?;
                batch::send(&self.sender, frames)
            }
            sent => sent,
        }
    }
}

fn is_lost(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), NotConnected | ConnectionRefused | ConnectionReset)
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.local);
    }
}
