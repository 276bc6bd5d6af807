//! How frames pass between the process and an interface.

use crate::interface::Interface;
use crate::packet_mmap::PacketMmap;
use line_test::{Due, Mac};
use std::io;
use std::os::fd::BorrowedFd;

/// A method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Rings of a packet socket that the kernel shares (packet(7), PACKET_RX_RING and PACKET_TX_RING).
    PacketMmap,
}

impl Method {
    /// All of them, the best first.
    pub const ALL: [Method; 1] = [Method::PacketMmap];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::PacketMmap => "packet-mmap",
        }
    }

    /// The method of a name.
    pub fn of(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// A frame that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Its bytes from the first address on, without tag and check sequence.
    pub bytes: &'a [u8],
    /// The tag that it had.
    pub tag: Option<u16>,
    /// Time of its arrival, ns since 1970.
    pub at_ns: u64,
}

/// A way to an interface.
#[derive(Debug)]
pub(crate) enum Way {
    PacketMmap(PacketMmap),
}

impl Way {
    /// Opens a way; returns why it is of its method, too.
    pub fn open(interface: &Interface, address: Mac, method: Option<Method>) -> io::Result<(Way, &'static str)> {
        let reason = if method.is_some() { "asked for" } else { "every interface takes it" };
        Ok((Way::PacketMmap(PacketMmap::open(interface, address)?), reason))
    }

    /// Its method.
    pub fn method(&self) -> Method {
        match self {
            Way::PacketMmap(_) => Method::PacketMmap,
        }
    }

    /// A descriptor that becomes readable when frames come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Way::PacketMmap(way) => way.fd(),
        }
    }

    /// Hands the frames that have come to `take`, a portion at most; returns their number.
    pub fn receive(&mut self, take: impl FnMut(Frame<'_>)) -> usize {
        match self {
            Way::PacketMmap(way) => way.receive(take),
        }
    }

    /// Sends a message, whose loss does not matter.
    pub fn send_message(&mut self, frame: &[u8]) {
        match self {
            Way::PacketMmap(way) => way.send_message(frame),
        }
    }

    /// Makes room for frames that differ in stamp and length alone: the longest one, and where its stamp is.
    pub fn prepare(&mut self, longest: &[u8], stamp_at: usize) -> io::Result<()> {
        match self {
            Way::PacketMmap(way) => way.prepare(longest, stamp_at),
        }
    }

    /// True while a frame can be put.
    #[inline]
    pub fn has_room(&self) -> bool {
        match self {
            Way::PacketMmap(way) => way.has_room(),
        }
    }

    /// Puts a frame, which leaves with [`Way::flush`]. Put only with room for it.
    #[inline]
    pub fn put(&mut self, due: &Due, tag_bytes: usize) {
        match self {
            Way::PacketMmap(way) => way.put(due, tag_bytes),
        }
    }

    /// Hands the frames that were put to the interface, as far as it takes them now.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Way::PacketMmap(way) => way.flush(),
        }
    }

    /// Frames that the kernel dropped for want of room since the way was opened.
    pub fn drops(&mut self) -> u64 {
        match self {
            Way::PacketMmap(way) => way.drops(),
        }
    }
}
