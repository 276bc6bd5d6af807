//! UDP sockets.

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A socket of one's own with buffers of `buffer_bytes`, where the system allows.
pub(crate) fn bind(address: SocketAddr, buffer_bytes: usize) -> io::Result<UdpSocket> {
    use rustix::net::sockopt;
    let socket = UdpSocket::bind(address)?;
    // Beyond net.core.rmem_max with rights only. A refusal leaves a smaller buffer, no fault.
    if sockopt::set_socket_recv_buffer_size_force(&socket, buffer_bytes).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(&socket, buffer_bytes);
    }
    if sockopt::set_socket_send_buffer_size_force(&socket, buffer_bytes).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(&socket, buffer_bytes);
    }
    Ok(socket)
}

/// Any address of the family of `peer`.
pub(crate) fn any(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Bytes of the largest packet that the first hop towards `peer` takes; nothing where the system does not tell.
pub(crate) fn route_mtu(peer: SocketAddr) -> Option<u16> {
    use std::os::fd::AsRawFd;
    let socket = UdpSocket::bind((any(peer.ip()), 0)).ok()?;
    socket.connect(peer).ok()?;
    let (level, name) =
        if peer.is_ipv4() { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
    let mut mtu: libc::c_int = 0;
    let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value has the size that is told.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, std::ptr::from_mut(&mut mtu).cast(), &mut bytes) };
    (result == 0).then(|| u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Bytes of the payload of all packets that the kernel takes at once (UDP_SEGMENT): those of one packet of IPv4.
const MOST_AT_ONCE: usize = 65_535 - 20 - 8;

/// A socket that hands jumbo packets over in parts: quinn gives ten packets at once, and the kernel refuses all of
/// them where they are longer than one packet of IP may be.
#[derive(Debug)]
pub(crate) struct PartialSends(pub Arc<dyn AsyncUdpSocket>);

impl AsyncUdpSocket for PartialSends {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.0.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match transmit.segment_size {
            Some(segment) if transmit.contents.len() > MOST_AT_ONCE => {
                // Sent once more from the first part on if the buffer is full: the peer drops copies.
                for contents in transmit.contents.chunks(MOST_AT_ONCE / segment * segment) {
                    self.0.try_send(&Transmit { contents, ..*transmit })?;
                }
                Ok(())
            }
            _ => self.0.try_send(transmit),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.0.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.0.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.0.may_fragment()
    }
}
