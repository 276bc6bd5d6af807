//! Frames by rings of packet sockets (packet(7); kernel's Documentation/networking/packet_mmap.rst).

mod filter;
mod receive_ring;
mod send_ring;

use crate::frame::Frame;
use crate::interface::Interface;
use crate::packet_socket;
use crate::socket::{bind, socket};
use line_test::{Due, Mac};
use receive_ring::ReceiveRing;
use send_ring::SendRing;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Both directions of an interface.
#[derive(Debug)]
pub(crate) struct PacketMmap {
    receive: ReceiveRing,
    index: i32,
    send: Option<SendRing>,
}

impl PacketMmap {
    /// Opens an interface for the frames of line tests to an address.
    pub fn open(interface: &Interface, address: Mac) -> io::Result<PacketMmap> {
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        filter::attach(&fd)?;
        let receive = ReceiveRing::new(fd)?;
        packet_socket::add_address(receive.fd(), interface, address)?;
        // Frames come from here on.
        bind(receive.fd(), &packet_socket::address(interface.index, libc::ETH_P_ALL as u16))?;
        Ok(PacketMmap { receive, index: interface.index, send: None })
    }

    /// The descriptor to wait for frames.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.receive.fd().as_fd()
    }

    /// Hands the frames of the next block to `take`.
    pub fn receive(&mut self, take: impl FnMut(Frame<'_>)) -> usize {
        self.receive.receive(take)
    }

    /// Sends a message by a call of its own.
    pub fn send_message(&mut self, frame: &[u8]) {
        packet_socket::send(self.receive.fd(), frame);
    }

    /// Makes a ring whose places hold the longest frame.
    pub fn prepare(&mut self, longest: &[u8], stamp_at: usize) -> io::Result<()> {
        self.send = None;
        self.send = Some(SendRing::new(self.index, longest, stamp_at)?);
        Ok(())
    }

    /// True while the ring has a free place.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.send.as_ref().is_some_and(SendRing::has_room)
    }

    /// Puts a frame into the ring.
    #[inline]
    pub fn put(&mut self, due: &Due, tag_bytes: usize) {
        if let Some(ring) = &mut self.send {
            ring.put(due, tag_bytes);
        }
    }

    /// Has the kernel send what is in the ring.
    pub fn flush(&mut self) -> io::Result<()> {
        self.send.as_mut().map_or(Ok(()), SendRing::flush)
    }

    /// Frames that did not fit into the ring.
    pub fn drops(&mut self) -> u64 {
        self.receive.drops()
    }
}
