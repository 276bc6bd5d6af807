//! Connections of other programs, from outside: sock_diag(7), with the same `TCP_INFO`.

use super::info::Info;
use crate::namespace;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Of include/uapi/linux/sock_diag.h and inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SKNLGRP_INET_TCP_DESTROY: u32 = 1;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// struct nlmsghdr, struct inet_diag_req_v2 behind it, struct inet_diag_msg behind the header of an answer, bytes.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const ANSWER: usize = HEADER + 72;

/// States of include/net/tcp_states.h, as a mask: those in which a connection has counters.
const TALKING: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
const LISTENING: u32 = 1 << 10;

/// Bytes of one read; the kernel writes at most this much of a dump at once (NLMSG_GOODSIZE and more).
const PIECE: usize = 32 << 10;

/// A connection at one time.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The kernel's number of the socket, never used twice.
    pub cookie: u64,
    pub local_port: u16,
    pub remote: Ipv4Addr,
    /// Bytes that have arrived in order and were not read yet.
    pub unread: u64,
    pub info: Info,
    /// Congestion control; empty where the kernel does not say, as of a connection that has gone.
    pub congestion_control: String,
}

/// Asks about the TCP sockets of one namespace.
pub(crate) struct Diag {
    asks: OwnedFd,
    /// Socket that reports closed sockets, with their last counters.
    hears: OwnedFd,
    buffer: Vec<u8>,
}

impl Diag {
    /// Of the namespace whose file is `path`.
    ///
    /// # Errors
    /// The namespace cannot be entered, or the kernel has no sock_diag (CONFIG_INET_DIAG).
    pub fn open(path: &str) -> io::Result<Diag> {
        let (asks, hears) = namespace::within(path, || (socket(0), socket(1 << (SKNLGRP_INET_TCP_DESTROY - 1))))?;
        Ok(Diag { asks: asks?, hears: hears?, buffer: vec![0; PIECE] })
    }

    /// All connections that there are. Cost: one walk of the kernel over its table of connections.
    ///
    /// # Errors
    /// The kernel's.
    pub fn connections(&mut self) -> io::Result<Vec<Seen>> {
        self.dump(TALKING)
    }

    /// Returns true if a socket listens on `port`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn has_listener(&mut self, port: u16) -> io::Result<bool> {
        Ok(self.dump(LISTENING)?.iter().any(|seen| seen.local_port == port))
    }

    /// Connections that have gone since the last call.
    ///
    /// # Errors
    /// The kernel's.
    pub fn gone(&mut self) -> io::Result<Vec<Seen>> {
        let mut found = vec![];
        loop {
            match receive(&self.hears, &mut self.buffer, libc::MSG_DONTWAIT) {
                Ok(length) => parse(&self.buffer[..length], &mut found).map(drop)?,
                // More sockets closed than its buffer holds: the last values seen of the missing ones count.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
                Err(error) => return Err(error),
            }
        }
    }

    fn dump(&mut self, states: u32) -> io::Result<Vec<Seen>> {
        let request = request(states);
        // SAFETY: the request is valid for its length.
        let sent = unsafe { libc::send(self.asks.as_raw_fd(), request.as_ptr().cast(), REQUEST, 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut found = vec![];
        loop {
            let length = receive(&self.asks, &mut self.buffer, 0)?;
            if parse(&self.buffer[..length], &mut found)? {
                return Ok(found);
            }
        }
    }
}

fn socket(groups: u32) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: sockaddr_nl is plain data, for which zeroes are valid.
    let mut name: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    name.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    name.nl_groups = groups;
    let length = std::mem::size_of_val(&name) as libc::socklen_t;
    // SAFETY: the address is valid for its length.
    if unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&name).cast(), length) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

fn receive(socket: &OwnedFd, into: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: `into` is valid for its length.
    let got = unsafe { libc::recv(socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// A dump of IPv4 TCP sockets in `states`, with their information and congestion control.
fn request(states: u32) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    bytes[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[HEADER] = libc::AF_INET as u8;
    bytes[HEADER + 1] = libc::IPPROTO_TCP as u8;
    bytes[HEADER + 2] = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&states.to_ne_bytes());
    bytes
}

/// Takes the messages of one read apart; true when the dump ends with them.
fn parse(mut rest: &[u8], found: &mut Vec<Seen>) -> io::Result<bool> {
    while rest.len() >= HEADER {
        let length = u32::from_ne_bytes(rest[0..4].try_into().expect("four bytes")) as usize;
        let kind = u16::from_ne_bytes([rest[4], rest[5]]);
        if length < HEADER || length > rest.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message of sock_diag that was cut"));
        }
        let message = &rest[..length];
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let code =
                    message.get(HEADER..HEADER + 4).map_or(0, |b| i32::from_ne_bytes(b.try_into().expect("four")));
                return Err(io::Error::from_raw_os_error(-code));
            }
            _ if kind == SOCK_DIAG_BY_FAMILY && length >= ANSWER => found.extend(seen(message)),
            _ => {}
        }
        rest = &rest[aligned(length).min(rest.len())..];
    }
    Ok(false)
}

/// One socket; None where it has no counters.
fn seen(message: &[u8]) -> Option<Seen> {
    let (body, mut attributes) = (&message[HEADER..ANSWER], &message[ANSWER..]);
    let listens = 1 << body[1] & LISTENING != 0;
    let mut one = Seen {
        cookie: u64::from_ne_bytes(body[44..52].try_into().expect("eight bytes")),
        local_port: u16::from_be_bytes([body[4], body[5]]),
        remote: Ipv4Addr::new(body[24], body[25], body[26], body[27]),
        // Of a listener it is the number of connections that wait.
        unread: u64::from(u32::from_ne_bytes(body[56..60].try_into().expect("four bytes"))),
        info: Info::default(),
        congestion_control: String::new(),
    };
    let mut told = listens;
    while attributes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        if length < 4 || length > attributes.len() {
            break;
        }
        let value = &attributes[4..length];
        match u16::from_ne_bytes([attributes[2], attributes[3]]) {
            INET_DIAG_INFO => {
                one.info = Info::told(value);
                told = true;
            }
            INET_DIAG_CONG => {
                one.congestion_control = String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into()
            }
            _ => {}
        }
        attributes = &attributes[aligned(length).min(attributes.len())..];
    }
    told.then_some(one)
}

/// Messages and attributes begin at multiples of four (NLMSG_ALIGN, NLA_ALIGN).
fn aligned(length: usize) -> usize {
    (length + 3) & !3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{able, Namespace};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_is_seen_while_it_lives_and_told_of_when_it_goes() {
        if !able("sock_diag") {
            return;
        }
        let namespace = Namespace::new();
        namespace.ip("link set lo up");
        let mut diag = Diag::open(&namespace.path).unwrap();
        let listener = namespace::within(&namespace.path, || TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(diag.has_listener(port).unwrap() && !diag.has_listener(port ^ 1).unwrap());
        let connect = || TcpStream::connect(("127.0.0.1", port));
        let mut near = namespace::within(&namespace.path, connect).unwrap().unwrap();
        let (far, _) = listener.accept().unwrap();
        io::Write::write_all(&mut near, &[0; 1000]).unwrap();
        let near_port = near.local_addr().unwrap().port();
        let at = |seen: &[Seen], port| seen.iter().find(|s| s.local_port == port).cloned().unwrap();
        let (mut sender, mut receiver) = (None, None);
        // The ACK of loopback comes at once, but not within the call.
        for _ in 0..1000 {
            let seen = diag.connections().unwrap();
            assert_eq!(seen.len(), 2, "{seen:?}");
            (sender, receiver) = (Some(at(&seen, near_port)), Some(at(&seen, port)));
            if sender.as_ref().is_some_and(|s| s.info.raw().bytes_acked == 1001) {
                break;
            }
            std::thread::yield_now();
        }
        let (sender, receiver) = (sender.unwrap(), receiver.unwrap());
        assert_eq!(sender.remote, Ipv4Addr::LOCALHOST);
        assert!(sender.info.raw().bytes_acked == 1001 && sender.info.raw().rtt_us > 0, "{sender:?}");
        assert!(!sender.congestion_control.is_empty());
        assert_eq!((receiver.info.raw().bytes_received, receiver.unread), (1000, 1000));
        assert!(diag.gone().unwrap().is_empty());
        drop((far, near));
        let mut gone = vec![];
        // The kernel reports it from a queue of its own.
        for _ in 0..100_000 {
            gone.extend(diag.gone().unwrap());
            if gone.len() == 2 {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(at(&gone, near_port).cookie, sender.cookie);
        assert_eq!(at(&gone, port).info.raw().bytes_received, 1000);
    }

    #[test]
    fn what_the_kernel_refuses_is_its_error() {
        let mut message = vec![0; 36];
        message[0..4].copy_from_slice(&36u32.to_ne_bytes());
        message[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        message[16..20].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        let error = parse(&message, &mut vec![]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        message[0..4].copy_from_slice(&99u32.to_ne_bytes());
        assert_eq!(parse(&message, &mut vec![]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
