//! A way for frames between the process and an interface.

use crate::af_xdp::AfXdp;
use crate::frame::Frame;
use crate::interface::Interface;
use crate::method::Method;
use crate::packet_mmap::PacketMmap;
use line_test::{Due, Mac};
use std::io;
use std::os::fd::BorrowedFd;

/// A way to an interface.
#[derive(Debug)]
pub(crate) enum Way {
    AfXdp(Box<AfXdp>),
    PacketMmap(PacketMmap),
}

impl Way {
    /// Opens a way, for frames with a tag or without; returns why it is of its method, too.
    ///
    /// # Errors
    /// The interface cannot be opened, or not by the method that was asked for.
    pub fn open(
        interface: &Interface,
        address: Mac,
        has_tag: bool,
        method: Option<Method>,
    ) -> io::Result<(Way, String)> {
        match method {
            Some(Method::AfXdp) if has_tag => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "AF_XDP shows no tag: packet-mmap would be right"))
            }
            Some(Method::AfXdp) => {
                let way = AfXdp::open(interface, address, true)?;
                let how = if way.is_zero_copy() { "without copies" } else { "the kernel copies" };
                Ok((Way::AfXdp(Box::new(way)), format!("asked for; {how}")))
            }
            Some(Method::PacketMmap) => {
                Ok((Way::PacketMmap(PacketMmap::open(interface, address)?), "asked for".into()))
            }
            None if has_tag => {
                let way = PacketMmap::open(interface, address)?;
                Ok((Way::PacketMmap(way), "AF_XDP shows no tag".into()))
            }
            None => match AfXdp::open(interface, address, false) {
                Ok(way) => Ok((Way::AfXdp(Box::new(way)), "the driver takes AF_XDP without copies".into())),
                Err(error) => {
                    let way = PacketMmap::open(interface, address)?;
                    let why = match error.raw_os_error() {
                        Some(libc::EOPNOTSUPP) => "the driver has no AF_XDP without copies".into(),
                        _ => format!("not af-xdp: {error}"),
                    };
                    Ok((Way::PacketMmap(way), why))
                }
            },
        }
    }

    /// Its method.
    pub fn method(&self) -> Method {
        match self {
            Way::AfXdp(_) => Method::AfXdp,
            Way::PacketMmap(_) => Method::PacketMmap,
        }
    }

    /// A descriptor that becomes readable when frames come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Way::AfXdp(way) => way.fd(),
            Way::PacketMmap(way) => way.fd(),
        }
    }

    /// Hands the frames that have come to `take`, a portion at most; returns their number.
    pub fn receive(&mut self, take: impl FnMut(Frame<'_>)) -> usize {
        match self {
            Way::AfXdp(way) => way.receive(take),
            Way::PacketMmap(way) => way.receive(take),
        }
    }

    /// Sends a message, whose loss does not matter.
    pub fn send_message(&mut self, frame: &[u8]) {
        match self {
            Way::AfXdp(way) => way.send_message(frame),
            Way::PacketMmap(way) => way.send_message(frame),
        }
    }

    /// Makes room for frames that differ in stamp and length alone: the longest one, and where its stamp is.
    pub fn prepare(&mut self, longest: &[u8], stamp_at: usize) -> io::Result<()> {
        match self {
            Way::AfXdp(way) => way.prepare(longest, stamp_at),
            Way::PacketMmap(way) => way.prepare(longest, stamp_at),
        }
    }

    /// True while a frame can be put.
    #[inline]
    pub fn has_room(&self) -> bool {
        match self {
            Way::AfXdp(way) => way.has_room(),
            Way::PacketMmap(way) => way.has_room(),
        }
    }

    /// Puts a frame, which leaves with [`Way::flush`]. Put only with room for it.
    #[inline]
    pub fn put(&mut self, due: &Due, tag_bytes: usize) {
        match self {
            Way::AfXdp(way) => way.put(due, tag_bytes),
            Way::PacketMmap(way) => way.put(due, tag_bytes),
        }
    }

    /// Hands the frames that were put to the interface, as far as it takes them now.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Way::AfXdp(way) => way.flush(),
            Way::PacketMmap(way) => way.flush(),
        }
    }

    /// Frames that the kernel dropped for want of room since the way was opened.
    pub fn drops(&mut self) -> u64 {
        match self {
            Way::AfXdp(way) => way.drops(),
            Way::PacketMmap(way) => way.drops(),
        }
    }
}
