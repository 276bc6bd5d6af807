//! A way to nodes, opened again where it went away, with the frames that wait for it.

use super::config::AttachmentConfig;
use super::datagram_socket::DatagramSocket;
use super::mac::Mac;
use super::packet_socket::{Interface, PacketSocket};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

const NS_PER_S: u64 = 1_000_000_000;
/// Longest frame that is taken, bytes: the largest FCoE frame has 2176 with a tag.
const FRAME_BYTES_MAX: usize = 4096;
/// Frames that may wait for a way before nothing more is read from the SAN.
const QUEUE_MAX: usize = 256;
/// Time after which frames for a node that takes none are discarded, ns: E_D_TOV. Their sequences have failed by then.
const HOLD_NS: u64 = 2 * NS_PER_S;
/// Time between attempts to open a way that went away, ns.
const REOPEN_NS: u64 = NS_PER_S;

/// A socket of either kind.
#[derive(Debug)]
enum Socket {
    Packet(PacketSocket),
    Datagram(DatagramSocket),
}

/// Frames of a way that did not pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Losses {
    /// Dropped by the kernel for want of room before they were read.
    pub kernel_drops: u64,
    /// Not sent because nobody took them for the hold time.
    pub held_too_long: u64,
    /// Not sent because the node or interface is not there, or takes no frame of the length.
    pub unreachable: u64,
}

/// A way to nodes.
#[derive(Debug)]
pub(crate) struct Attachment {
    config: AttachmentConfig,
    /// Addresses that an interface takes frames for beside its own.
    addresses: Vec<Mac>,
    socket: Option<Socket>,
    reopen_ns: u64,
    queue: VecDeque<Bytes>,
    /// Time at which the way last took a frame, or had none to take.
    progress_ns: u64,
    losses: Losses,
    buffer: Box<[u8]>,
}

impl Attachment {
    /// Opens a way, with frames for `addresses` beside those for the interface's own.
    ///
    /// # Errors
    /// It cannot be opened; the text begins with its name.
    pub fn open(config: AttachmentConfig, addresses: Vec<Mac>, now_ns: u64) -> io::Result<Attachment> {
        let name = name_of(&config);
        let socket =
            open(&config, &addresses).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        Ok(Attachment {
            config,
            addresses,
            socket: Some(socket),
            reopen_ns: 0,
            queue: VecDeque::new(),
            progress_ns: now_ns,
            losses: Losses::default(),
            buffer: vec![0; FRAME_BYTES_MAX].into_boxed_slice(),
        })
    }

    /// The descriptor to wait for; None while the way is gone.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(|socket| match socket {
            Socket::Packet(socket) => socket.fd().as_fd(),
            Socket::Datagram(socket) => socket.fd().as_fd(),
        })
    }

    /// True while a frame waits.
    pub fn is_blocked(&self) -> bool {
        !self.queue.is_empty()
    }

    /// True while fewer frames wait than may.
    pub fn has_room(&self) -> bool {
        self.queue.len() < QUEUE_MAX
    }

    /// True where poll(2) tells that a frame can be sent. A datagram socket's peer is another's, and cannot be waited
    /// for.
    pub fn tells_room(&self) -> bool {
        matches!(self.socket, Some(Socket::Packet(_)))
    }

    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// The next frame. An error is a way that went away: it is opened again later.
    pub fn receive(&mut self, now_ns: u64) -> io::Result<Option<Bytes>> {
        let got = match &self.socket {
            None => return Ok(None),
            Some(Socket::Packet(socket)) => socket.receive(&mut self.buffer),
            Some(Socket::Datagram(socket)) => socket.receive(&mut self.buffer),
        };
        match got {
            Ok(frame) => Ok(Some(frame)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => {
                self.close(now_ns);
                Err(io::Error::new(error.kind(), format!("{}: {error}", name_of(&self.config))))
            }
        }
    }

    /// Sends a frame, after those that wait.
    pub fn send(&mut self, frame: Bytes, now_ns: u64) {
        if self.queue.is_empty() {
            self.progress_ns = now_ns;
        }
        self.queue.push_back(frame);
        self.flush(now_ns);
    }

    /// Sends what waits, as far as the way takes it.
    pub fn flush(&mut self, now_ns: u64) {
        while let Some(frame) = self.queue.front() {
            let sent = match &self.socket {
                None => Err(ErrorKind::NotFound.into()),
                Some(Socket::Packet(socket)) => socket.send(frame),
                Some(Socket::Datagram(socket)) => socket.send(frame),
            };
            match sent {
                Ok(()) => {}
                Err(error) if is_full(&error) => {
                    if now_ns >= self.progress_ns + HOLD_NS {
                        self.losses.held_too_long += self.queue.len() as u64;
                        self.queue.clear();
                    }
                    return;
                }
                Err(_) => self.losses.unreachable += 1,
            }
            self.queue.pop_front();
            self.progress_ns = now_ns;
        }
    }

    /// Counts what the kernel dropped, and opens a way that went away. Returns a line on what changed.
    pub fn handle_timeout(&mut self, now_ns: u64) -> Option<String> {
        match &self.socket {
            Some(Socket::Packet(socket)) => {
                // A socket that fails here fails when it is read.
                let drops = socket.take_drops().unwrap_or(0);
                self.losses.kernel_drops += drops;
                (drops > 0)
                    .then(|| format!("{}: the kernel dropped {drops} frames for want of room", name_of(&self.config)))
            }
            Some(Socket::Datagram(_)) => None,
            None if now_ns < self.reopen_ns => None,
            None => {
                self.reopen_ns = now_ns + REOPEN_NS;
                self.socket = open(&self.config, &self.addresses).ok();
                self.socket.is_some().then(|| format!("{}: there again", name_of(&self.config)))
            }
        }
    }

    /// Closes the way for good.
    pub fn shut(&mut self) {
        self.close(u64::MAX - REOPEN_NS);
    }

    fn close(&mut self, now_ns: u64) {
        self.socket = None;
        self.reopen_ns = now_ns + REOPEN_NS;
        self.losses.unreachable += self.queue.len() as u64;
        self.queue.clear();
    }
}

fn open(config: &AttachmentConfig, addresses: &[Mac]) -> io::Result<Socket> {
    Ok(match config {
        AttachmentConfig::Interface(name) => Socket::Packet(PacketSocket::open(Interface::of(name)?, addresses)?),
        AttachmentConfig::Socket { local, remote } => Socket::Datagram(DatagramSocket::open(local, remote)?),
    })
}

/// True for an error that says that there is no room now: a socket's, or the interface's queue (packet(7), ENOBUFS).
fn is_full(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// The name of a way, for people.
fn name_of(config: &AttachmentConfig) -> String {
    match config {
        AttachmentConfig::Interface(name) => name.clone(),
        AttachmentConfig::Socket { local, .. } => local.display().to_string(),
    }
}
