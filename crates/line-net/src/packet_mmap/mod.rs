//! Frames by rings of packet sockets (packet(7); kernel's Documentation/networking/packet_mmap.rst).

mod map;
mod receive_ring;
mod send_ring;

use crate::interface::Interface;
use crate::socket::{bind, set, socket};
use crate::way::Frame;
use line_test::{Due, Mac, ETHERTYPE};
use receive_ring::ReceiveRing;
use send_ring::SendRing;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

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
        let receive = ReceiveRing::new(fd)?;
        if address != interface.address {
            // SAFETY: the structure has no invalid bit pattern.
            let mut member: libc::packet_mreq = unsafe { zeroed() };
            member.mr_ifindex = interface.index;
            member.mr_type = libc::PACKET_MR_UNICAST as u16;
            member.mr_alen = address.len() as u16;
            member.mr_address[..address.len()].copy_from_slice(&address);
            set(receive.fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)?;
        }
        // Frames come from here on.
        bind(receive.fd(), &address_of(interface.index, ETHERTYPE))?;
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
        // A message that the interface does not take is sent again by its owner.
        // SAFETY: the kernel reads the frame, which the caller lends until the call returns.
        unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::send(self.receive.fd().as_raw_fd(), frame.as_ptr().cast(), frame.len(), flags);
        }
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

/// The address of an interface for frames of a type; of type 0, for none.
fn address_of(index: i32, ethertype: u16) -> libc::sockaddr_ll {
    // SAFETY: the structure has no invalid bit pattern.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index;
    address
}

/// A socket that sends and receives nothing by itself.
fn sending_socket(index: i32) -> io::Result<OwnedFd> {
    let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    bind(&fd, &address_of(index, 0))?;
    Ok(fd)
}
