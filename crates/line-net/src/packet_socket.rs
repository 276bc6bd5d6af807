//! Packet sockets (packet(7)): addresses, and frames that one call sends.

use crate::interface::Interface;
use crate::socket::{bind, set, socket};
use line_test::Mac;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

/// The address of an interface for frames of a protocol; of protocol 0, for none.
pub(crate) fn address(index: i32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: the structure has no invalid bit pattern.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index;
    address
}

/// A socket that receives nothing.
pub(crate) fn sending(index: i32) -> io::Result<OwnedFd> {
    let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    bind(&fd, &address(index, 0))?;
    Ok(fd)
}

/// Has the interface take frames for an address that is not its own, as long as the socket lives.
pub(crate) fn add_address(fd: &OwnedFd, interface: &Interface, address: Mac) -> io::Result<()> {
    if address == interface.address {
        return Ok(());
    }
    // SAFETY: the structure has no invalid bit pattern.
    let mut member: libc::packet_mreq = unsafe { zeroed() };
    member.mr_ifindex = interface.index;
    member.mr_type = libc::PACKET_MR_UNICAST as u16;
    member.mr_alen = address.len() as u16;
    member.mr_address[..address.len()].copy_from_slice(&address);
    set(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)
}

/// Sends a message. One that the interface does not take is sent again by its owner.
pub(crate) fn send(fd: &OwnedFd, frame: &[u8]) {
    // SAFETY: the kernel reads the frame, which the caller lends until the call returns.
    unsafe {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        libc::send(fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), flags);
    }
}
