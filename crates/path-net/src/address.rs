//! Addresses, as the kernel has them and as people write them.

use crate::error::PathError;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

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
    let is_address = bare.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let (host, port) = match bare.rsplit_once(':').filter(|_| !is_address) {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => {
            (host, port.parse().unwrap_or(0))
        }
        _ => (bare, path_test::stamp::PORT),
    };
    // The C library knows the zone of a link-local address by the interface's name (RFC 4007, 11.2), without brackets.
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let found = (host, port).to_socket_addrs().map(|mut all| all.next());
    match found {
        Ok(Some(SocketAddr::V6(address))) if address.ip().is_unicast_link_local() && address.scope_id() == 0 => {
            let text = "a link-local address needs the interface towards it, such as fe80::1%eth0";
            Err(PathError::Input(format!("{towards}: {text}")))
        }
        Ok(Some(address)) if address.port() != 0 => Ok(address),
        Ok(_) => Err(PathError::Input(format!("{towards}: an address and a port of 1 to 65535 are needed"))),
        Err(error) => {
            let why = error.to_string();
            let why = why.strip_prefix("failed to lookup address information: ").unwrap_or(&why).to_lowercase();
            Err(PathError::Input(format!("{towards}: no address ({why}); host:port, such as 192.0.2.7:862, is needed")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_has_its_zone_with_brackets_and_a_port_or_without() {
        let at = |text: &str| match resolve(text) {
            Ok(SocketAddr::V6(address)) => (address.ip().to_string(), address.scope_id() != 0, address.port()),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(at("[fe80::1%lo]:8620"), ("fe80::1".into(), true, 8620));
        assert_eq!(at("fe80::1%lo"), ("fe80::1".into(), true, 862));
        assert_eq!(at("[fd00::1]"), ("fd00::1".into(), false, 862));
        assert_eq!(at("fd00::1"), ("fd00::1".into(), false, 862));
        let error = resolve("[fe80::1]:8620").expect_err("which of several links?").to_string();
        assert!(error.contains("fe80::1%eth0"), "{error}");
        assert!(resolve("192.0.2.1:0").is_err() && resolve("192.0.2.1:70000").is_err());
        assert_eq!(resolve("192.0.2.1:7000").unwrap().to_string(), "192.0.2.1:7000");
    }
}
