//! A way to nodes, opened again where it went away, with the frames that wait for it.

use super::batch::{Room, FRAMES};
use super::config::AttachmentConfig;
use super::datagram_socket::DatagramSocket;
use super::mac::Mac;
use super::packet_socket::{Interface, PacketSocket};
use bytes::Bytes;
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

const NS_PER_S: u64 = 1_000_000_000;
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
    /// The way took no more frame when it was last tried.
    is_full: bool,
    losses: Losses,
    /// Frames that have come and wait to be taken.
    inbox: VecDeque<Bytes>,
    room: Room,
}

impl Attachment {
    /// Its name, for people.
    pub fn name(&self) -> String {
        name_of(&self.config)
    }

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
            is_full: false,
            losses: Losses::default(),
            inbox: VecDeque::new(),
            room: Room::new(),
        })
    }

    /// Descriptors with what to wait for: frames, if they are taken now, and room, if a frame waits for it.
    pub fn waits_for(&self, reads: bool) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let (receiver, sender) = match &self.socket {
            None => (None, None),
            Some(Socket::Packet(socket)) => (Some(socket.fd().as_fd()), Some(socket.fd().as_fd())),
            Some(Socket::Datagram(socket)) => (Some(socket.receiver().as_fd()), Some(socket.sender().as_fd())),
        };
        let receiver = receiver.map(|fd| (fd, if reads { PollFlags::IN } else { PollFlags::empty() }));
        let sender = sender.filter(|_| self.is_blocked()).map(|fd| (fd, PollFlags::OUT));
        receiver.into_iter().chain(sender)
    }

    /// True while a frame waits.
    pub fn is_blocked(&self) -> bool {
        !self.queue.is_empty()
    }

    /// True while the way takes no frame: what is sent now would wait.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// True while fewer frames wait than may.
    pub fn has_room(&self) -> bool {
        self.queue.len() < QUEUE_MAX
    }

    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Has an interface take frames for a further address.
    pub fn add_address(&mut self, address: Mac) -> io::Result<()> {
        if self.addresses.contains(&address) {
            return Ok(());
        }
        self.addresses.push(address);
        match &self.socket {
            Some(Socket::Packet(socket)) => socket.add_address(address),
            Some(Socket::Datagram(_)) | None => Ok(()),
        }
    }

    /// The next frame. An error is a way that went away: it is opened again later.
    pub fn receive(&mut self, now_ns: u64) -> io::Result<Option<Bytes>> {
        if let Some(frame) = self.inbox.pop_front() {
            return Ok(Some(frame));
        }
        let got = match &self.socket {
            None => return Ok(None),
            Some(Socket::Packet(socket)) => socket.receive(&mut self.room, &mut self.inbox),
            Some(Socket::Datagram(socket)) => socket.receive(&mut self.room, &mut self.inbox),
        };
        match got {
            Ok(()) => Ok(self.inbox.pop_front()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => {
                self.close(now_ns);
                Err(io::Error::new(error.kind(), format!("{}: {error}", name_of(&self.config))))
            }
        }
    }

    /// True while a frame that has come waits to be taken: no descriptor tells of it.
    pub fn has_frames(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Takes a frame to be sent, after those that wait. It leaves with [`Attachment::flush`], or with the others of a
    /// full batch.
    pub fn send(&mut self, frame: Bytes, now_ns: u64) {
        if self.queue.is_empty() {
            self.progress_ns = now_ns;
        }
        self.queue.push_back(frame);
        if self.queue.len() >= FRAMES && !self.is_full {
            self.flush(now_ns);
        }
    }

    /// Sends what waits, as far as the way takes it.
    pub fn flush(&mut self, now_ns: u64) {
        self.is_full = false;
        while !self.queue.is_empty() {
            let sent = match &self.socket {
                None => Err(ErrorKind::NotFound.into()),
                Some(Socket::Packet(socket)) => socket.send(self.queue.iter()),
                Some(Socket::Datagram(socket)) => socket.send(self.queue.iter()),
            };
            let done = match sent {
                Ok(frames) => frames,
                Err(error) if is_full(&error) => {
                    if now_ns >= self.progress_ns + HOLD_NS {
                        self.losses.held_too_long += self.queue.len() as u64;
                        self.queue.clear();
                    }
                    self.is_full = !self.queue.is_empty();
                    return;
                }
                Err(_) => {
                    self.losses.unreachable += 1;
                    1
                }
            };
            self.queue.drain(..done);
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
        self.inbox.clear();
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
