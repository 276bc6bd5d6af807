//! Frames of an Ethernet interface (packet(7)).

use super::batch::{self, Room};
use super::mac::Mac;
use super::packet_filter;
use crate::socket_option::set;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Wanted room for frames that the gateway has not read, bytes: what hosts send while the path stalls.
const RECEIVE_BYTES: libc::c_int = 64 << 20;
/// Bytes of the two addresses of an Ethernet header, behind which a tag stands.
const ADDRESSES_BYTES: usize = 12;
const TAG_BYTES: usize = 4;
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];

/// An interface's properties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    /// Its number.
    pub index: i32,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Its largest frame without the Ethernet header, bytes.
    pub mtu: usize,
}

/// A raw socket on an interface.
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: OwnedFd,
    interface: Interface,
}

impl Interface {
    /// Looks an interface up.
    ///
    /// # Errors
    /// There is none of that name, or it is not an Ethernet.
    pub fn of(name: &str) -> io::Result<Interface> {
        let socket = socket(libc::AF_INET, libc::SOCK_DGRAM)?;
        // SAFETY: the structure has no invalid bit pattern.
        let mut request: libc::ifreq = unsafe { zeroed() };
        if name.is_empty() || name.len() >= request.ifr_name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        let mut ask = |what: libc::c_ulong| {
            // SAFETY: these requests write into the structure that the pointer names, and no further.
            match unsafe { libc::ioctl(socket.as_raw_fd(), what as _, &mut request) } {
                0 => Ok(request),
                _ => Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: each request has filled in the field that is read.
        let (index, mtu, address) = unsafe {
            (
                ask(libc::SIOCGIFINDEX)?.ifr_ifru.ifru_ifindex,
                ask(libc::SIOCGIFMTU)?.ifr_ifru.ifru_mtu,
                ask(libc::SIOCGIFHWADDR)?.ifr_ifru.ifru_hwaddr,
            )
        };
        if address.sa_family != libc::ARPHRD_ETHER {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an Ethernet interface"));
        }
        let mut mac = [0; 6];
        for (place, byte) in mac.iter_mut().zip(address.sa_data) {
            *place = byte as u8;
        }
        Ok(Interface { index, mac, mtu: mtu.max(0) as usize })
    }
}

impl PacketSocket {
    /// Opens a socket that receives the FCoE and FIP frames of an interface, with those for further addresses.
    pub fn open(interface: Interface, addresses: &[Mac]) -> io::Result<PacketSocket> {
        // Of no protocol, so that nothing comes in before the filter is there.
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW)?;
        packet_filter::attach(&fd)?;
        set(&fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1_i32)?;
        set(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
        // The kernel gives less to those that may not have more.
        if set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BYTES).is_err() {
            set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BYTES)?;
        }
        // SAFETY: the structure has no invalid bit pattern.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface.index;
        // SAFETY: the kernel reads as many bytes of the address as it has.
        let bound = unsafe {
            let bytes = size_of::<libc::sockaddr_ll>() as u32;
            libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), bytes)
        };
        if bound != 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = PacketSocket { fd, interface };
        addresses.iter().try_for_each(|address| socket.add_address(*address))?;
        Ok(socket)
    }

    /// Has the interface take frames for a further address: a group's, or one of its own.
    pub fn add_address(&self, address: Mac) -> io::Result<()> {
        let is_group = address[0] & 1 != 0;
        // SAFETY: the structure has no invalid bit pattern.
        let mut member: libc::packet_mreq = unsafe { zeroed() };
        member.mr_ifindex = self.interface.index;
        member.mr_type = if is_group { libc::PACKET_MR_MULTICAST } else { libc::PACKET_MR_UNICAST } as u16;
        member.mr_alen = address.len() as u16;
        member.mr_address[..address.len()].copy_from_slice(&address);
        set(&self.fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)
    }

    /// The descriptor, to wait for.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Takes the frames that have come, with their tags; `WouldBlock` when there is none.
    pub fn receive(&self, room: &mut Room, into: &mut VecDeque<Bytes>) -> io::Result<()> {
        room.receive(&self.fd, |frame, message| {
            into.push_back(match tag_of(message) {
                Some(tag) if frame.len() >= ADDRESSES_BYTES => {
                    let mut whole = BytesMut::with_capacity(frame.len() + TAG_BYTES);
                    whole.extend_from_slice(&frame[..ADDRESSES_BYTES]);
                    whole.extend_from_slice(&ETHERTYPE_VLAN);
                    whole.extend_from_slice(&tag.to_be_bytes());
                    whole.extend_from_slice(&frame[ADDRESSES_BYTES..]);
                    whole.freeze()
                }
                _ => Bytes::copy_from_slice(frame),
            });
        })?;
        Ok(())
    }

    /// Sends the first of the frames, and returns their number; `WouldBlock` when the interface's queue is full.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a Bytes>) -> io::Result<usize> {
        batch::send(&self.fd, frames)
    }

    /// Frames that the kernel dropped for want of room since the last call.
    pub fn take_drops(&self) -> io::Result<u64> {
        // SAFETY: the structure has no invalid bit pattern.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut bytes = size_of::<libc::tpacket_stats>() as u32;
        // SAFETY: the kernel writes at most `bytes` bytes into the structure.
        let done = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                std::ptr::from_mut(&mut statistics).cast(),
                &mut bytes,
            )
        };
        match done {
            0 => Ok(u64::from(statistics.tp_drops)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The tag that the kernel took off a frame.
fn tag_of(message: &libc::msghdr) -> Option<u16> {
    // SAFETY: the kernel filled the control buffer, and left its length in the message.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the macros give headers that lie within the buffer, and null behind the last.
        unsafe {
            if (*header).cmsg_level == libc::SOL_PACKET && (*header).cmsg_type == libc::PACKET_AUXDATA {
                let data = libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned();
                let has_tag = data.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
                return has_tag.then_some(data.tp_vlan_tci);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers alone.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
