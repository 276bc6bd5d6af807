//! UDP sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

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
