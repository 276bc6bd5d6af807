//! The route to an address: RTM_GETROUTE of rtnetlink(7).

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Attributes of a route (include/uapi/linux/rtnetlink.h).
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTAX_MTU: u16 = 2;

/// Bytes of `struct nlmsghdr` and of `struct rtmsg`.
const HEADER: usize = 16;
const ROUTE: usize = 12;

/// The kernel's choice for an address.
pub struct Route {
    /// Name of the interface.
    pub interface: String,
    /// Own address that the kernel takes.
    pub source: Option<IpAddr>,
    /// Next router; None where the address is on the link.
    pub gateway: Option<IpAddr>,
    /// MTU of the route, or the path MTU that the kernel has found; None = the interface's.
    pub mtu: Option<u32>,
}

/// Asks the kernel for the route to `address`, in the agent's network namespace.
///
/// # Errors
/// The kernel's: there is none.
pub fn towards(address: IpAddr) -> io::Result<Route> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.send_to(&request(address), &SocketAddr::new(0, 0), 0)?;
    let mut buffer = vec![0; 8 << 10];
    let length = socket.recv(&mut &mut buffer[..], 0)?;
    parse(&buffer[..length])
}

fn request(address: IpAddr) -> Vec<u8> {
    let (family, bits, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, 32, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, 128, address.octets().to_vec()),
    };
    let length = HEADER + ROUTE + 4 + bytes.len();
    let mut message = vec![];
    message.extend((length as u32).to_ne_bytes());
    message.extend(libc::RTM_GETROUTE.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.extend([0; 8]);
    // Family and length of the destination; the rest is the kernel's choice.
    message.extend([family as u8, bits]);
    message.extend([0; ROUTE - 2]);
    message.extend((4 + bytes.len() as u16).to_ne_bytes());
    message.extend(RTA_DST.to_ne_bytes());
    message.extend(bytes);
    message
}

fn parse(message: &[u8]) -> io::Result<Route> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "no answer about a route");
    let kind = message.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes).ok_or_else(invalid)?;
    let rest = message.get(HEADER..).ok_or_else(invalid)?;
    if i32::from(kind) == libc::NLMSG_ERROR {
        let error =
            rest.get(..4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes).ok_or_else(invalid)?;
        return Err(io::Error::from_raw_os_error(-error));
    }
    let (mut found, mut index) = (Route { interface: String::new(), source: None, gateway: None, mtu: None }, 0);
    for (kind, value) in attributes(rest.get(ROUTE..).ok_or_else(invalid)?) {
        match kind {
            RTA_OIF => index = word(value).unwrap_or(0),
            RTA_GATEWAY => found.gateway = address_of(value),
            RTA_PREFSRC => found.source = address_of(value),
            RTA_METRICS => {
                found.mtu = attributes(value).find(|(kind, _)| *kind == RTAX_MTU).and_then(|(_, value)| word(value));
            }
            _ => {}
        }
    }
    found.interface = name_of(index)?;
    Ok(found)
}

/// Kind and value of each attribute; what is cut short is left out.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let half = |at: usize| Some(u16::from_ne_bytes(rest.get(at..at + 2)?.try_into().ok()?));
        let (length, kind) = (usize::from(half(0)?), half(2)?);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn word(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

fn address_of(value: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(value) {
        return Some(Ipv4Addr::from(bytes).into());
    }
    <[u8; 16]>::try_from(value).ok().map(|bytes| Ipv6Addr::from(bytes).into())
}

fn name_of(index: u32) -> io::Result<String> {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the size that the call asks for.
    if unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_oneself_is_the_loopback_device() {
        let route = towards(Ipv4Addr::LOCALHOST.into()).unwrap();
        assert_eq!((route.interface.as_str(), route.source), ("lo", Some(Ipv4Addr::LOCALHOST.into())));
    }

    #[test]
    fn an_answer_cut_anywhere_is_an_error_or_lacks_something() {
        let mut message = request(Ipv6Addr::LOCALHOST.into());
        message[4..6].copy_from_slice(&libc::RTM_NEWROUTE.to_ne_bytes());
        for end in 0..message.len() {
            assert!(parse(&message[..end]).is_err(), "{end}");
        }
        message[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        message[HEADER..HEADER + 4].copy_from_slice(&(-libc::ENETUNREACH).to_ne_bytes());
        let error = parse(&message).err().and_then(|error| error.raw_os_error());
        assert_eq!(error, Some(libc::ENETUNREACH));
    }
}
