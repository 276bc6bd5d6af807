//! Addresses, as the kernel has them and as people write them.

use crate::error::PathError;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

pub(crate) fn to_raw(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: the structure has no invalid bit pattern, and has room for both kinds of addresses.
    unsafe {
        let mut raw: libc::sockaddr_storage = zeroed();
        let length = match address {
            SocketAddr::V4(address) => {
                let place: *mut libc::sockaddr_in = (&raw mut raw).cast();
                (*place).sin_family = libc::AF_INET as _;
                (*place).sin_port = address.port().to_be();
                (*place).sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(address) => {
                let place: *mut libc::sockaddr_in6 = (&raw mut raw).cast();
                (*place).sin6_family = libc::AF_INET6 as _;
                (*place).sin6_port = address.port().to_be();
                (*place).sin6_addr.s6_addr = address.ip().octets();
                (*place).sin6_scope_id = address.scope_id();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (raw, length as libc::socklen_t)
    }
}

pub(crate) fn from_raw(raw: &libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: the family tells which of both structures the kernel wrote.
    unsafe {
        match libc::c_int::from(raw.ss_family) {
            libc::AF_INET => {
                let place: *const libc::sockaddr_in = (&raw const *raw).cast();
                let ip = Ipv4Addr::from((*place).sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::new(ip.into(), u16::from_be((*place).sin_port)))
            }
            libc::AF_INET6 => {
                let place: *const libc::sockaddr_in6 = (&raw const *raw).cast();
                let ip = Ipv6Addr::from((*place).sin6_addr.s6_addr);
                let port = u16::from_be((*place).sin6_port);
                Some(SocketAddrV6::new(ip, port, 0, (*place).sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// The address of `host:port`, `host`, `[v6]:port` or a bare address; without a port it is STAMP's, 862.
///
/// # Errors
/// Nobody knows the name.
pub fn resolve(towards: &str) -> Result<SocketAddr, PathError> {
    let bare = towards.trim();
    if let Ok(ip) = bare.trim_start_matches('[').trim_end_matches(']').parse() {
        return Ok(SocketAddr::new(ip, path_test::stamp::PORT));
    }
    let with_port = match bare.rsplit_once(':') {
        Some((_, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => bare.to_owned(),
        _ => format!("{bare}:{}", path_test::stamp::PORT),
    };
    let found = with_port.to_socket_addrs().map(|mut all| all.next());
    match found {
        Ok(Some(address)) if address.port() != 0 => Ok(address),
        Ok(_) => Err(PathError::Input(format!("{towards}: an address and a port of 1 to 65535 are needed"))),
        Err(error) => {
            let why = error.to_string();
            let why = why.strip_prefix("failed to lookup address information: ").unwrap_or(&why).to_lowercase();
            Err(PathError::Input(format!("{towards}: no address ({why}); host:port, such as 192.0.2.7:862, is needed")))
        }
    }
}
