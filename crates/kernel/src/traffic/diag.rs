//! Connections of other programs, from outside: sock_diag(7), with the same `TCP_INFO`.

use super::info::Info;
use crate::namespace;
use netlink_packet_core::{
    DecodeError, NetlinkHeader, NetlinkMessage, NetlinkPayload, Nla as _, NLM_F_DUMP, NLM_F_REQUEST,
};
use netlink_packet_sock_diag::constants::{
    AF_INET, AF_INET6, INET_DIAG_BBRINFO, IPPROTO_TCP, TCP_CLOSE_WAIT, TCP_CLOSING, TCP_ESTABLISHED, TCP_FIN_WAIT1,
    TCP_LAST_ACK, TCP_LISTEN,
};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::net::IpAddr;

/// Groups of sockets that go, by family (include/uapi/linux/sock_diag.h).
const SKNLGRP_INET_TCP_DESTROY: u32 = 1;
const SKNLGRP_INET6_TCP_DESTROY: u32 = 3;

/// States in which a connection has counters.
const TALKING: StateFlags = StateFlags::ESTABLISHED
    .union(StateFlags::FIN_WAIT1)
    .union(StateFlags::FIN_WAIT2)
    .union(StateFlags::CLOSE_WAIT)
    .union(StateFlags::LAST_ACK)
    .union(StateFlags::CLOSING);

/// States in which data may be on its way to the other end (RFC 9293, 3.3.2).
const SENDING: [u8; 5] = [TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_CLOSING];

/// Bytes of one read; the kernel writes at most this much of a dump at once (NLMSG_GOODSIZE and more).
const PIECE: usize = 32 << 10;

/// A connection at one time.
#[derive(Clone, Debug)]
pub(crate) struct SocketEntry {
    /// The kernel's number of the socket, never used twice.
    pub cookie: u64,
    /// Its inode, as the links of /proc/PID/fd name it.
    pub inode: u32,
    pub local: IpAddr,
    pub local_port: u16,
    pub remote: IpAddr,
    pub remote_port: u16,
    /// Data of its own may be on its way: it has not closed, or the close has not arrived.
    pub may_send: bool,
    /// Bytes that have arrived in order and were not read yet.
    pub unread: u64,
    /// Bytes that the application has written and the peer has not acknowledged.
    pub unacknowledged: u64,
    pub info: Info,
    /// The bandwidth that BBR takes for its bottleneck's, bit/s; None of other controls.
    pub bbr_bandwidth_bps: Option<u64>,
    /// Congestion control; empty where the kernel does not say, as of a connection that has gone.
    pub congestion_control: String,
    /// `SO_SNDBUF` and `SO_RCVBUF`, bytes; 0 of a connection that has gone.
    pub buffers: (u64, u64),
    /// Memory that the data in them takes, bytes.
    pub memory: (u64, u64),
}

/// Asks about the TCP sockets of one namespace and one family of addresses.
pub(crate) struct Diag {
    is_ipv4: bool,
    asks: Socket,
    /// Socket that reports closed sockets, with their last counters.
    hears: Socket,
    buffer: Vec<u8>,
}

impl Diag {
    /// Of the namespace whose file is `path`, None: this thread's, and of addresses of the family of `address`.
    ///
    /// # Errors
    /// The namespace cannot be entered, or the kernel has no sock_diag (CONFIG_INET_DIAG).
    pub fn open(path: Option<&str>, address: IpAddr) -> io::Result<Diag> {
        let is_ipv4 = address.is_ipv4();
        let group = if is_ipv4 { SKNLGRP_INET_TCP_DESTROY } else { SKNLGRP_INET6_TCP_DESTROY };
        let open = || (socket(0), socket(1 << (group - 1)));
        let (asks, hears) = match path {
            Some(path) => namespace::within(path, open)?,
            None => open(),
        };
        Ok(Diag { is_ipv4, asks: asks?, hears: hears?, buffer: vec![0; PIECE] })
    }

    /// All connections that there are. Cost: one walk of the kernel over its table of connections.
    ///
    /// # Errors
    /// The kernel's.
    pub fn connections(&mut self) -> io::Result<Vec<SocketEntry>> {
        self.dump(TALKING)
    }

    /// Returns true if a socket listens on `port`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn has_listener(&mut self, port: u16) -> io::Result<bool> {
        Ok(self.dump(StateFlags::LISTEN)?.iter().any(|entry| entry.local_port == port))
    }

    /// Connections that have gone since the last call.
    ///
    /// # Errors
    /// The kernel's.
    pub fn gone(&mut self) -> io::Result<Vec<SocketEntry>> {
        let mut found = vec![];
        loop {
            match self.hears.recv(&mut &mut self.buffer[..], libc::MSG_DONTWAIT) {
                Ok(length) => parse(&self.buffer[..length], &mut found).map(drop)?,
                // More sockets closed than its buffer holds: the last values seen of the missing ones count.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
                Err(error) => return Err(error),
            }
        }
    }

    fn dump(&mut self, states: StateFlags) -> io::Result<Vec<SocketEntry>> {
        self.asks.send(&request(states, self.is_ipv4), 0)?;
        let mut found = vec![];
        loop {
            let length = self.asks.recv(&mut &mut self.buffer[..], 0)?;
            if parse(&self.buffer[..length], &mut found)? {
                return Ok(found);
            }
        }
    }
}

fn socket(groups: u32) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind(&SocketAddr::new(0, groups))?;
    Ok(socket)
}

/// A dump of TCP sockets in `states`, with their information, congestion control and buffers.
fn request(states: StateFlags, is_ipv4: bool) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = InetRequest {
        family: if is_ipv4 { AF_INET } else { AF_INET6 },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO
            | ExtensionFlags::CONG
            | ExtensionFlags::SKMEMINFO
            // BBR answers to it with its own.
            | ExtensionFlags::VEGASINFO,
        states,
        socket_id: if is_ipv4 { SocketId::new_v4() } else { SocketId::new_v6() },
    };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// Takes the messages of one read apart; true when the dump ends with them.
fn parse(mut rest: &[u8], found: &mut Vec<SocketEntry>) -> io::Result<bool> {
    let invalid = |error: DecodeError| io::Error::new(io::ErrorKind::InvalidData, error);
    while !rest.is_empty() {
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(invalid)?;
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => found.extend(entry_of(&response)),
            _ => {}
        }
        // Messages begin at multiples of four (NLMSG_ALIGN).
        let length = (message.header.length as usize).next_multiple_of(4);
        rest = &rest[length.min(rest.len())..];
    }
    Ok(false)
}

/// One socket; None where it has no counters.
fn entry_of(response: &InetResponse) -> Option<SocketEntry> {
    let header = &response.header;
    let mut one = SocketEntry {
        cookie: u64::from_ne_bytes(header.socket_id.cookie),
        inode: header.inode,
        local: header.socket_id.source_address,
        local_port: header.socket_id.source_port,
        remote: header.socket_id.destination_address,
        remote_port: header.socket_id.destination_port,
        may_send: SENDING.contains(&header.state),
        // Of a listener it is the number of connections that wait.
        unread: u64::from(header.recv_queue),
        unacknowledged: u64::from(header.send_queue),
        info: Info::default(),
        bbr_bandwidth_bps: None,
        congestion_control: String::new(),
        buffers: (0, 0),
        memory: (0, 0),
    };
    let mut has_info = header.state == TCP_LISTEN;
    for attribute in response.nlas.iter() {
        match attribute {
            Nla::TcpInfo(bytes) => {
                one.info = Info::parse(bytes);
                has_info = true;
            }
            Nla::Congestion(name) => one.congestion_control.clone_from(name),
            Nla::MemInfo(memory) => {
                one.buffers = (memory.send_queue_max.into(), memory.receive_queue_max.into());
                one.memory = (memory.send_queue.into(), memory.receive_queue.into());
            }
            Nla::Other(other) if other.kind() == INET_DIAG_BBRINFO => {
                let mut bytes = vec![0; other.value_len()];
                other.emit_value(&mut bytes);
                one.bbr_bandwidth_bps = bbr_bandwidth_bps(&bytes);
            }
            _ => {}
        }
    }
    has_info.then_some(one)
}

/// From `struct tcp_bbr_info` (include/uapi/linux/inet_diag.h): bytes/s in two halves, the low one first.
fn bbr_bandwidth_bps(bytes: &[u8]) -> Option<u64> {
    let half = |at: usize| Some(u64::from(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?)));
    Some((half(0)? | half(4)? << 32).saturating_mul(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{able, Namespace};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn a_connection_is_seen_while_it_lives_and_told_of_when_it_goes() {
        if !able("sock_diag") {
            return;
        }
        let namespace = Namespace::new();
        namespace.ip("link set lo up");
        let mut diag = Diag::open(Some(&namespace.path), Ipv4Addr::LOCALHOST.into()).unwrap();
        let listener = namespace::within(&namespace.path, || TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(diag.has_listener(port).unwrap() && !diag.has_listener(port ^ 1).unwrap());
        let connect = || TcpStream::connect(("127.0.0.1", port));
        let mut near = namespace::within(&namespace.path, connect).unwrap().unwrap();
        let (far, _) = listener.accept().unwrap();
        io::Write::write_all(&mut near, &[0; 1000]).unwrap();
        let near_port = near.local_addr().unwrap().port();
        let at = |entries: &[SocketEntry], port| entries.iter().find(|s| s.local_port == port).cloned().unwrap();
        let (mut sender, mut receiver) = (None, None);
        // The ACK of loopback comes at once, but not within the call.
        for _ in 0..1000 {
            let entries = diag.connections().unwrap();
            assert_eq!(entries.len(), 2, "{entries:?}");
            (sender, receiver) = (Some(at(&entries, near_port)), Some(at(&entries, port)));
            if sender.as_ref().is_some_and(|s| s.info.raw().bytes_acked == 1001) {
                break;
            }
            std::thread::yield_now();
        }
        let (sender, receiver) = (sender.unwrap(), receiver.unwrap());
        assert_eq!((sender.remote, sender.remote_port), (IpAddr::from(Ipv4Addr::LOCALHOST), port));
        assert!(sender.buffers.0 > 0 && receiver.buffers.1 > 0, "{sender:?} {receiver:?}");
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
