//! A UDP socket with the kernel's time stamps, TTL, and ICMP errors (socket(7), ip(7), ipv6(7), timestamping.rst).

use crate::address::{from_raw, to_raw};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Packets of one system call.
pub(crate) const BATCH: usize = 64;
/// Longest payload that is taken or sent, bytes: a jumbo frame's.
pub const PAYLOAD_MAX: usize = 9216;
/// Bytes of packets that a socket holds until they are read: a burst of 10 ms at 5 Gbit/s, with the kernel's own.
const BUFFER_BYTES: libc::c_int = 16 << 20;
/// TTL or hop limit of test packets and replies (RFC 5357, 4.1.2): what arrives tells the number of routers.
const TTL: u8 = 255;
/// Room for the control messages of one packet, in words.
const CONTROL_WORDS: usize = 40;

const TX_SOFTWARE: u32 = libc::SOF_TIMESTAMPING_TX_SOFTWARE;
const STAMPS: u32 = libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_HARDWARE
    | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
/// With a number for each packet and without its bytes; both stamps where the adapter has one, too.
const SENDER_STAMPS: u32 = STAMPS
    | TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_TX_HARDWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY
    | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
/// linux/errqueue.h: the kernel's own stamps, beside errors of ICMP.
const ORIGIN_TIMESTAMPING: u8 = 4;

/// Octets of a quoted payload that are kept: number and time stamp of a packet without authentication.
pub(crate) const QUOTED_MAX: usize = 12;

/// Facts of a packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub from: SocketAddr,
    /// The kernel's stamp, ns since 1970; its own reading of the clock where there is none.
    pub at_unix_ns: u64,
    /// The adapter's stamp, ns of its clock.
    pub hardware_ns: Option<u64>,
    pub ttl: Option<u8>,
    pub traffic_class: u8,
    /// Own address to which it was sent.
    pub local: Option<IpAddr>,
}

/// An entry of the error queue.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// A packet left: its number since the stamps were switched on.
    Sent { number: u32, at_unix_ns: Option<u64>, hardware_ns: Option<u64> },
    /// A router or the far end's host answered by ICMP, or the own one refused it (`offender` is None).
    Icmp {
        offender: Option<IpAddr>,
        kind: u8,
        code: u8,
        mtu: Option<u32>,
        at_unix_ns: u64,
        is_v6: bool,
        /// First octets of the packet's payload, as far as the router quoted it (RFC 1812, 4.3.2.3), and their number.
        quoted: ([u8; QUOTED_MAX], usize),
    },
}

/// A packet to send.
pub(crate) struct Outgoing<'a> {
    pub parts: [&'a [u8]; 2],
    /// None on a connected socket.
    pub to: Option<SocketAddr>,
    /// Own address from which it is to go.
    pub from: Option<IpAddr>,
    pub traffic_class: u8,
}

pub(crate) struct TestSocket {
    fd: OwnedFd,
    is_v6: bool,
}

impl TestSocket {
    /// Binds to `local`; a port of 0 is the kernel's choice.
    pub fn bind(local: SocketAddr) -> io::Result<TestSocket> {
        let is_v6 = local.is_ipv6();
        let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
        // SAFETY: a plain system call; the descriptor is this process's alone.
        let fd = unsafe {
            let fd = libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let socket = TestSocket { fd, is_v6 };
        if is_v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1)?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        } else {
            socket.set(libc::IPPROTO_IP, libc::IP_RECVTTL, 1)?;
            socket.set(libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
            socket.set(libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
        }
        socket.set_ttl(TTL)?;
        let (raw, length) = to_raw(local);
        // SAFETY: the address lives until the call returns.
        if unsafe { libc::bind(socket.raw(), (&raw const raw).cast(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }

    /// As a sender to `to`: ICMP errors and times of sending are to be had.
    pub fn connect(to: SocketAddr, traffic_class: u8) -> io::Result<TestSocket> {
        let any: IpAddr = if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let socket = TestSocket::bind(SocketAddr::new(any, 0))?;
        if socket.is_v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, traffic_class.into())?;
        } else {
            socket.set(libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
            socket.set(libc::IPPROTO_IP, libc::IP_TOS, traffic_class.into())?;
        }
        let (raw, length) = to_raw(to);
        // SAFETY: the address lives until the call returns.
        if unsafe { libc::connect(socket.raw(), (&raw const raw).cast(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        socket.stamp_sent()?;
        Ok(socket)
    }

    /// Holds more packets until they are read; without rights, as many as rmem_max allows.
    pub fn hold_bursts(&self) {
        for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            if self.set(libc::SOL_SOCKET, option, BUFFER_BYTES).is_ok() {
                break;
            }
        }
        for option in [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF] {
            if self.set(libc::SOL_SOCKET, option, BUFFER_BYTES).is_ok() {
                break;
            }
        }
    }

    /// Has arrivals stamped.
    pub fn stamp_received(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, STAMPS as libc::c_int)
    }

    /// Has arrivals and departures stamped; departures are numbered from 0 on.
    pub fn stamp_sent(&self) -> io::Result<()> {
        self.stamp_received()?;
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, SENDER_STAMPS as libc::c_int)
    }

    /// TTL or hop limit of what is sent.
    pub fn set_ttl(&self, ttl: u8) -> io::Result<()> {
        let (level, option) =
            if self.is_v6 { (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) } else { (libc::IPPROTO_IP, libc::IP_TTL) };
        self.set(level, option, ttl.into())
    }

    /// Lets routers fragment, or forbids it. Where they may not, the MTU that the host knows of the path does not count
    /// either.
    pub fn set_do_not_fragment(&self, on: bool) -> io::Result<()> {
        if self.is_v6 {
            let how = if on { libc::IPV6_PMTUDISC_PROBE } else { libc::IPV6_PMTUDISC_DONT };
            self.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, how)?;
            self.set(libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, on.into())
        } else {
            let how = if on { libc::IP_PMTUDISC_PROBE } else { libc::IP_PMTUDISC_DONT };
            self.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how)
        }
    }

    /// Own address and port.
    pub fn local(&self) -> io::Result<SocketAddr> {
        // SAFETY: the structure has no invalid bit pattern; the kernel writes no further than its length.
        let (done, raw) = unsafe {
            let mut raw: libc::sockaddr_storage = zeroed();
            let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            (libc::getsockname(self.raw(), (&raw mut raw).cast(), &mut length), raw)
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        from_raw(&raw).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    fn raw(&self) -> libc::c_int {
        self.fd.as_raw_fd()
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        // SAFETY: the value lives until the call returns.
        let done = unsafe {
            let length = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(self.raw(), level, option, (&raw const value).cast(), length)
        };
        if done == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Sends packets, at most [`BATCH`]; returns their number. An error is the first packet's.
    pub fn send(&self, packets: &[Outgoing<'_>]) -> io::Result<usize> {
        // SAFETY: the structures have no invalid bit pattern.
        let (mut parts, mut messages): ([[libc::iovec; 2]; BATCH], [libc::mmsghdr; BATCH]) = unsafe { zeroed() };
        // SAFETY: as above.
        let mut names: [libc::sockaddr_storage; BATCH] = unsafe { zeroed() };
        let mut controls = [[0u64; 10]; BATCH];
        let count = packets.len().min(BATCH);
        for (at, packet) in packets[..count].iter().enumerate() {
            for (part, bytes) in parts[at].iter_mut().zip(packet.parts) {
                *part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            }
            let header = &mut messages[at].msg_hdr;
            header.msg_iov = parts[at].as_mut_ptr();
            header.msg_iovlen = 2;
            if let Some(to) = packet.to {
                let (raw, length) = to_raw(to);
                names[at] = raw;
                header.msg_name = (&raw mut names[at]).cast();
                header.msg_namelen = length;
            }
            self.fill_control(packet, header, &mut controls[at]);
        }
        // SAFETY: the kernel reads packets, addresses and control messages, all of which live until it returns.
        let sent = unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendmmsg(self.raw(), messages.as_mut_ptr(), count as libc::c_uint, flags as _)
        };
        match sent {
            ..0 => Err(io::Error::last_os_error()),
            sent => Ok(sent as usize),
        }
    }

    fn fill_control(&self, packet: &Outgoing<'_>, header: &mut libc::msghdr, control: &mut [u64; 10]) {
        let mut used = 0;
        let room: *mut u8 = control.as_mut_ptr().cast();
        let mut push = |level: libc::c_int, kind: libc::c_int, value: *const u8, length: usize| {
            // SAFETY: both messages take 64 bytes of the 80, aligned as a cmsghdr is.
            unsafe {
                let message: *mut libc::cmsghdr = room.add(used).cast();
                (*message).cmsg_level = level;
                (*message).cmsg_type = kind;
                (*message).cmsg_len = libc::CMSG_LEN(length as libc::c_uint) as _;
                std::ptr::copy_nonoverlapping(value, libc::CMSG_DATA(message), length);
                used += libc::CMSG_SPACE(length as libc::c_uint) as usize;
            }
        };
        if packet.traffic_class != 0 {
            let class = libc::c_int::from(packet.traffic_class);
            let (level, kind) =
                if self.is_v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
            push(level, kind, (&raw const class).cast(), size_of::<libc::c_int>());
        }
        match packet.from {
            Some(IpAddr::V4(address)) if !self.is_v6 => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                push(libc::IPPROTO_IP, libc::IP_PKTINFO, (&raw const info).cast(), size_of::<libc::in_pktinfo>());
            }
            Some(IpAddr::V6(address)) if self.is_v6 => {
                let info =
                    libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: address.octets() }, ipi6_ifindex: 0 };
                push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, (&raw const info).cast(), size_of::<libc::in6_pktinfo>());
            }
            _ => {}
        }
        if used > 0 {
            header.msg_control = room.cast();
            header.msg_controllen = used as _;
        }
    }
}

impl AsFd for TestSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Room for packets that come; one for all sockets of a thread.
pub(crate) struct Room {
    bytes: Box<[u8]>,
    control: Box<[[u64; CONTROL_WORDS]]>,
    packets: usize,
}

impl Room {
    /// For so many packets by one system call, at most [`BATCH`].
    pub fn new(packets: usize) -> Room {
        let packets = packets.clamp(1, BATCH);
        let bytes = vec![0; packets * PAYLOAD_MAX].into_boxed_slice();
        Room { bytes, control: vec![[0; CONTROL_WORDS]; packets].into_boxed_slice(), packets }
    }

    /// Hands packets that have come to `take`; returns their number, 0 where none has. Longer ones are left out.
    pub fn receive(&mut self, socket: &TestSocket, mut take: impl FnMut(&[u8], &Facts)) -> io::Result<usize> {
        self.read(socket, 0, |bytes, header, name| {
            let Some(from) = from_raw(name) else { return };
            if header.msg_flags & libc::MSG_TRUNC == 0 {
                take(bytes, &facts(header, from));
            }
        })
    }

    /// Hands what the error queue holds to `take`, until it is empty.
    pub fn reports(&mut self, socket: &TestSocket, mut take: impl FnMut(Report)) -> io::Result<()> {
        while self.read(socket, libc::MSG_ERRQUEUE, |bytes, header, _| {
            if let Some(report) = report(header, bytes) {
                take(report);
            }
        })? > 0
        {}
        Ok(())
    }

    fn read(
        &mut self,
        socket: &TestSocket,
        flags: libc::c_int,
        mut take: impl FnMut(&[u8], &libc::msghdr, &libc::sockaddr_storage),
    ) -> io::Result<usize> {
        // SAFETY: the structures have no invalid bit pattern.
        let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { zeroed() };
        // SAFETY: as above.
        let mut names: [libc::sockaddr_storage; BATCH] = unsafe { zeroed() };
        let places = self.bytes.chunks_exact_mut(PAYLOAD_MAX).zip(self.control.iter_mut());
        for (at, (place, control)) in places.enumerate() {
            parts[at] = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
            let header = &mut messages[at].msg_hdr;
            header.msg_iov = &raw mut parts[at];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut names[at]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(control) as _;
        }
        // SAFETY: the kernel writes into the places, no further than their lengths, all of which live until it returns.
        let got = unsafe {
            libc::recvmmsg(
                socket.raw(),
                messages.as_mut_ptr(),
                self.packets as libc::c_uint,
                (libc::MSG_DONTWAIT | flags) as _,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(error) };
        }
        for at in 0..got as usize {
            let length = (messages[at].msg_len as usize).min(PAYLOAD_MAX);
            take(&self.bytes[at * PAYLOAD_MAX..][..length], &messages[at].msg_hdr, &names[at]);
        }
        Ok(got as usize)
    }
}

/// Calls `look` with level, type and content of each control message.
fn each_control(header: &libc::msghdr, mut look: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
    // SAFETY: the kernel wrote the control messages, whose room lives as long as the header.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            let length = ((*message).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            let content = std::slice::from_raw_parts(libc::CMSG_DATA(message), length);
            look((*message).cmsg_level, (*message).cmsg_type, content);
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
}

fn word(content: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(content.get(at..at + 4)?.try_into().ok()?))
}

/// Software and hardware stamp of a struct scm_timestamping, ns; None where the kernel left it at 0.
fn stamps(content: &[u8]) -> (Option<u64>, Option<u64>) {
    let long = |at: usize| Some(i64::from_ne_bytes(content.get(at..at + 8)?.try_into().ok()?));
    let stamp = |at: usize| {
        let (seconds, ns) = (long(at)?, long(at + 8)?);
        (seconds != 0 || ns != 0).then(|| (seconds as u64).wrapping_mul(units::NS_PER_S).wrapping_add(ns as u64))
    };
    (stamp(0), stamp(32))
}

fn facts(header: &libc::msghdr, from: SocketAddr) -> Facts {
    let mut found = Facts { from, at_unix_ns: 0, hardware_ns: None, ttl: None, traffic_class: 0, local: None };
    each_control(header, |level, kind, content| match (level, kind) {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
            let (software, hardware) = stamps(content);
            found.at_unix_ns = software.unwrap_or(0);
            found.hardware_ns = hardware;
        }
        (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
            found.ttl = word(content, 0).and_then(|ttl| u8::try_from(ttl).ok());
        }
        (libc::IPPROTO_IP, libc::IP_TOS) => found.traffic_class = content.first().copied().unwrap_or(0),
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
            found.traffic_class = word(content, 0).map_or(0, |class| class as u8);
        }
        // struct in_pktinfo: interface, own address, destination of the header.
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            found.local = word(content, 4).map(|own| Ipv4Addr::from(own.to_ne_bytes()).into());
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let octets: Option<[u8; 16]> = content.get(..16).and_then(|octets| octets.try_into().ok());
            found.local = octets.map(|octets| Ipv6Addr::from(octets).into());
        }
        _ => {}
    });
    if found.at_unix_ns == 0 {
        found.at_unix_ns = crate::clock::unix_ns();
    }
    found
}

/// Reads an entry of the error queue (struct sock_extended_err, with the offender's address behind it).
fn report(header: &libc::msghdr, payload: &[u8]) -> Option<Report> {
    let (mut times, mut error) = ((None, None), None);
    each_control(header, |level, kind, content| match (level, kind) {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => times = stamps(content),
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
            let [origin, kind, code] = [4, 5, 6].map(|at| content.get(at).copied().unwrap_or(0));
            let info = word(content, 8).unwrap_or(0) as u32;
            let data = word(content, 12).unwrap_or(0) as u32;
            error = Some((origin, kind, code, info, data, offender(content.get(16..).unwrap_or(&[]))));
        }
        _ => {}
    });
    let (origin, kind, code, info, data, offender) = error?;
    if origin == ORIGIN_TIMESTAMPING {
        return Some(Report::Sent { number: data, at_unix_ns: times.0, hardware_ns: times.1 });
    }
    let is_v6 = origin == libc::SO_EE_ORIGIN_ICMP6;
    let is_icmp = is_v6 || origin == libc::SO_EE_ORIGIN_ICMP;
    let at_unix_ns = times.0.unwrap_or_else(crate::clock::unix_ns);
    let is_too_big = if is_icmp { (is_v6 && kind == 2) || (!is_v6 && kind == 3 && code == 4) } else { info > 0 };
    // A refusal of the own host has no type: the packet is too big for its link.
    let (kind, code) = if is_icmp { (kind, code) } else { (3, 4) };
    let mtu = (is_too_big && info > 0).then_some(info);
    let mut quoted = ([0; QUOTED_MAX], payload.len().min(QUOTED_MAX));
    quoted.0[..quoted.1].copy_from_slice(&payload[..quoted.1]);
    Some(Report::Icmp { offender: offender.filter(|_| is_icmp), kind, code, mtu, at_unix_ns, is_v6, quoted })
}

fn offender(raw: &[u8]) -> Option<IpAddr> {
    let family = i32::from(u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?));
    match family {
        libc::AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(raw.get(4..8)?).ok()?).into()),
        libc::AF_INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(raw.get(8..24)?).ok()?).to_canonical()),
        _ => None,
    }
}

/// Sleeps until one of the sockets has something, or `timeout_ns` are over. False: a signal came.
pub(crate) fn wait(sockets: &[BorrowedFd<'_>], timeout_ns: u64) -> io::Result<bool> {
    use rustix::event::{poll, PollFd, PollFlags, Timespec};
    let mut asked: Vec<PollFd<'_>> = sockets.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let time = Timespec {
        tv_sec: (timeout_ns / units::NS_PER_S).min(i64::MAX as u64) as i64,
        tv_nsec: (timeout_ns % units::NS_PER_S) as _,
    };
    match poll(&mut asked, Some(&time)) {
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
