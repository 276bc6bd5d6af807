//! Ports for the servers of programs: found free and, but for those of further connections, held until they listen.

use crate::error::{AgentError, Kind};
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{bind, getsockname, socket_with, AddressFamily, SocketFlags, SocketType};
use serde::Deserialize;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// First of the ports that are tried where a range is needed and none is given: below those that Linux gives to
/// connections (ip_local_port_range, from 32768 on), so that no other connection has them.
const FIRST: u16 = 20_000;

/// First port of connections, usually.
const USUAL: u32 = 32_768;

/// Ports of a server.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Ports beside that which it listens on, in one range: this many, where there are as many.
    #[serde(default)]
    more: u16,
    /// And no fewer.
    #[serde(default)]
    least: u16,
}

/// Ports of servers, held.
pub struct Ports {
    /// By server: ranges, of which the first is the port that it listens on.
    pub ranges: Vec<Vec<[u16; 2]>>,
    /// The range that is left for others; zeroes: the kernel chooses.
    pub rest: [u16; 2],
    #[allow(dead_code, reason = "the ports are held while they live")]
    held: Vec<OwnedFd>,
}

impl Ports {
    /// Finds ports on `local` for the servers `wanted`, within the range `given`; zeroes: anywhere.
    ///
    /// # Errors
    /// There are not as many.
    pub fn find(local: IpAddr, given: [u16; 2], wanted: &[Wanted]) -> Result<Ports, AgentError> {
        let mut found = Ports { ranges: vec![], rest: given, held: vec![] };
        for _ in wanted {
            let (held, port) = found.one(local, given)?;
            found.held.push(held);
            found.ranges.push(vec![[port, port]]);
        }
        let mut from = FIRST;
        for (number, server) in wanted.iter().enumerate().filter(|(_, server)| server.more > 0) {
            let range = if given == [0, 0] {
                found.anywhere(local, server.more, &mut from)?
            } else {
                found.within(given, server)?
            };
            found.ranges[number].push(range);
        }
        Ok(found)
    }

    /// A port that is held.
    fn one(&mut self, local: IpAddr, given: [u16; 2]) -> Result<(OwnedFd, u16), AgentError> {
        if given == [0, 0] {
            return bound(local, 0).map_err(|error| AgentError::new(Kind::Port, format_args!("{local}: {error}")));
        }
        let [first, last] = given;
        while (first..=last).contains(&self.rest[0]) {
            let port = self.rest[0];
            self.rest[0] = port.checked_add(1).unwrap_or(0);
            match bound(local, port) {
                Ok(held) => return Ok(held),
                Err(rustix::io::Errno::ADDRINUSE) => {}
                Err(error) => return Err(AgentError::new(Kind::Port, format_args!("{local}, port {port}: {error}"))),
            }
        }
        let text = format!("no port from {first} to {last} is free on {local} for a program's server: give others");
        Err(AgentError::new(Kind::Port, text))
    }

    fn within(&mut self, [first, last]: [u16; 2], server: &Wanted) -> Result<[u16; 2], AgentError> {
        // One is left for the connection of reports.
        let free = u32::from(last).saturating_sub(u32::from(self.rest[0]));
        if self.rest[0] < first || free < u32::from(server.least) {
            let least = server.least;
            let text = format!("of the ports from {first} to {last} too few are left: FTP's data needs {least} more");
            return Err(AgentError::new(Kind::Port, text));
        }
        let from = self.rest[0];
        self.rest[0] = from + free.min(u32::from(server.more)) as u16;
        Ok([from, self.rest[0] - 1])
    }

    fn anywhere(&self, local: IpAddr, more: u16, from: &mut u16) -> Result<[u16; 2], AgentError> {
        let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let low: u32 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(USUAL);
        // A host may give lower ones to connections, too: then none are free of them.
        let end = if low > u32::from(FIRST) + u32::from(more) { low } else { USUAL };
        while u32::from(*from) + u32::from(more) <= end {
            let (first, last) = (*from, *from + more - 1);
            let taken = (first..=last).rev().find(|&port| bound(local, port).is_err());
            *from = taken.unwrap_or(last) + 1;
            if taken.is_none() {
                return Ok([first, last]);
            }
        }
        let text = format!("no {more} ports in a row are free on {local} for FTP's data: give a range by --ports");
        Err(AgentError::new(Kind::Port, text))
    }
}

/// A socket on `port`, 0: of the kernel's choice, that a server's own socket shares it with: neither listens (tcp's
/// SO_REUSEADDR, socket(7)).
fn bound(local: IpAddr, port: u16) -> Result<(OwnedFd, u16), rustix::io::Errno> {
    let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::new(local, port))?;
    let port = SocketAddr::try_from(getsockname(&socket)?)?.port();
    Ok((socket, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_server_listens_on_the_port_that_is_held_for_it_and_no_other_gets_it() {
        let wanted = [Wanted { more: 0, least: 0 }, Wanted { more: 0, least: 0 }];
        let ports = Ports::find(HERE, [0, 0], &wanted).unwrap();
        let [[one], [other]] = [&ports.ranges[0][..], &ports.ranges[1][..]].map(|r| [r[0][0]]);
        assert_ne!(one, other);
        // The standard library's listener sets SO_REUSEADDR, as servers do.
        TcpListener::bind((HERE, one)).unwrap();
    }

    #[test]
    fn a_given_range_is_shared_out_and_the_rest_is_left() {
        let taken = TcpListener::bind((HERE, 0)).unwrap().local_addr().unwrap().port();
        let Some(last) = taken.checked_add(20) else { return };
        let held = TcpListener::bind((HERE, taken)).unwrap();
        let ftp = [Wanted { more: 10, least: 4 }];
        let ports = Ports::find(HERE, [taken, last], &ftp).unwrap();
        let port = ports.ranges[0][0][0];
        assert!(port > taken && ports.ranges[0][1] == [port + 1, port + 10] && ports.rest == [port + 11, last]);
        let few = Ports::find(HERE, [taken, port + 3], &ftp).map(|_| ()).unwrap_err();
        assert!(few.kind == Kind::Port && few.text.contains("too few"), "{few:?}");
        let none = Ports::find(HERE, [taken, taken], &ftp).map(|_| ()).unwrap_err();
        assert!(none.text.contains("give others"), "{none:?}");
        drop(held);
    }
}
