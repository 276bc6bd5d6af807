//! Frames by an AF_XDP socket: memory that the interface's driver writes to and reads from, without the network stack.

mod ring;

use crate::clock::FrameClock;
use crate::frame::Frame;
use crate::interface::Interface;
use crate::map::Map;
use crate::packet_socket;
use crate::socket::{bind, get, set, socket};
use bpf::{XdpRedirect, ARRIVAL_BYTES};
use line_test::{Due, Mac, ETHERTYPE, STAMP_BYTES};
use ring::Ring;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of a place for a frame: a page, the most that the kernel takes.
const PLACE_BYTES: usize = 4096;
/// Bytes that the kernel keeps free before a frame (XDP_PACKET_HEADROOM).
const HEADROOM_BYTES: usize = 256;
/// Places for frames that come: 16 MiB, what 1 Mpps brings in 4 ms.
const RECEIVE_PLACES: u32 = 4096;
/// Places for frames to be sent.
const SEND_PLACES: u32 = 1024;
/// Frames of one portion.
const PORTION: u32 = 256;
/// The queue: frames that are not IP have no hash, and come on the first one.
const QUEUE: u32 = 0;

/// Both directions of an interface.
#[derive(Debug)]
pub(crate) struct AfXdp {
    fill: Ring<u64>,
    completed: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    send: Ring<libc::xdp_desc>,
    memory: Map,
    /// Detached before the socket goes.
    _redirect: XdpRedirect,
    fd: OwnedFd,
    /// Sends messages, and has the interface take frames for its address.
    messages: OwnedFd,
    /// Places for frames to be sent that are free.
    free: Vec<u64>,
    stamp_at: usize,
    is_zero_copy: bool,
}

impl AfXdp {
    /// Opens an interface for the frames of line tests to an address; copying is allowed or not.
    ///
    /// # Errors
    /// The process may not (CAP_NET_RAW, CAP_BPF, CAP_NET_ADMIN), or the driver takes no program or socket at this MTU.
    pub fn open(interface: &Interface, address: Mac, may_copy: bool) -> io::Result<AfXdp> {
        let room = PLACE_BYTES - HEADROOM_BYTES - ARRIVAL_BYTES;
        if interface.mtu_bytes as usize + line_test::HEADER_BYTES > room {
            let most = room - line_test::HEADER_BYTES;
            let text = format!("AF_XDP takes an MTU of up to {most}; this is {}", interface.mtu_bytes);
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let fd = socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        let places = (RECEIVE_PLACES + SEND_PLACES) as usize;
        let memory = Map::anonymous(places * PLACE_BYTES)?;
        // SAFETY: the structure has no invalid bit pattern.
        let mut region: libc::xdp_umem_reg_v1 = unsafe { zeroed() };
        region.addr = memory.at(0, places * PLACE_BYTES) as u64;
        region.len = (places * PLACE_BYTES) as u64;
        region.chunk_size = PLACE_BYTES as u32;
        set(&fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
        for (option, size) in [
            (libc::XDP_UMEM_FILL_RING, RECEIVE_PLACES),
            (libc::XDP_UMEM_COMPLETION_RING, SEND_PLACES),
            (libc::XDP_RX_RING, RECEIVE_PLACES),
            (libc::XDP_TX_RING, SEND_PLACES),
        ] {
            set(&fd, libc::SOL_XDP, option, &size)?;
        }
        // SAFETY: the structure has no invalid bit pattern.
        let none: libc::xdp_mmap_offsets = unsafe { zeroed() };
        let at = get(&fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, none)?;
        let mut fill = Ring::new(&fd, &at.fr, RECEIVE_PLACES, libc::XDP_UMEM_PGOFF_FILL_RING)?;
        let completed = Ring::new(&fd, &at.cr, SEND_PLACES, libc::XDP_UMEM_PGOFF_COMPLETION_RING)?;
        let receive = Ring::new(&fd, &at.rx, RECEIVE_PLACES, libc::XDP_PGOFF_RX_RING as u64)?;
        let send = Ring::new(&fd, &at.tx, SEND_PLACES, libc::XDP_PGOFF_TX_RING as u64)?;
        (0..RECEIVE_PLACES).for_each(|place| fill.put(u64::from(place) * PLACE_BYTES as u64));
        fill.publish();
        let redirect = XdpRedirect::attach(interface.index, ETHERTYPE, address).map_err(io::Error::other)?;
        let is_zero_copy = bind_queue(&fd, interface.index, may_copy)?;
        redirect.add(QUEUE, fd.as_fd()).map_err(io::Error::other)?;
        let messages = packet_socket::sending(interface.index)?;
        packet_socket::add_address(&messages, interface, address)?;
        let free = (RECEIVE_PLACES..RECEIVE_PLACES + SEND_PLACES).map(|place| u64::from(place) * PLACE_BYTES as u64);
        Ok(AfXdp {
            fill,
            completed,
            receive,
            send,
            memory,
            _redirect: redirect,
            fd,
            messages,
            free: free.collect(),
            stamp_at: 0,
            is_zero_copy,
        })
    }

    /// True when the driver works on the memory itself.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// The descriptor to wait for frames.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Hands a portion of the frames that have come to `take`.
    pub fn receive(&mut self, mut take: impl FnMut(Frame<'_>)) -> usize {
        let count = self.receive.filled().min(PORTION);
        if count == 0 {
            return 0;
        }
        let clock = FrameClock::new();
        for _ in 0..count {
            let entry = self.receive.take();
            let at = entry.addr as usize;
            let bytes = self.memory.bytes(at, entry.len as usize);
            let arrival = self.memory.bytes(at - ARRIVAL_BYTES, ARRIVAL_BYTES).try_into().expect("eight bytes");
            take(Frame { bytes, tag: None, at_ns: clock.day_of(u64::from_ne_bytes(arrival)) });
            self.fill.put(entry.addr / PLACE_BYTES as u64 * PLACE_BYTES as u64);
        }
        self.receive.release();
        self.fill.publish();
        count as usize
    }

    /// Sends a message by a call of its own.
    pub fn send_message(&mut self, frame: &[u8]) {
        packet_socket::send(&self.messages, frame);
    }

    /// Fills all places with the longest frame.
    pub fn prepare(&mut self, longest: &[u8], stamp_at: usize) -> io::Result<()> {
        if self.free.len() < SEND_PLACES as usize {
            self.collect();
        }
        for place in RECEIVE_PLACES..RECEIVE_PLACES + SEND_PLACES {
            let to = self.memory.at(place as usize * PLACE_BYTES, longest.len());
            // SAFETY: both parts are as long; a frame of a stream before that still waits has a stamp of its own kind,
            // which its receiver does not count for this stream.
            unsafe { std::ptr::copy_nonoverlapping(longest.as_ptr(), to, longest.len()) };
        }
        self.stamp_at = stamp_at;
        Ok(())
    }

    /// True while a place is free.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Puts a frame.
    #[inline]
    pub fn put(&mut self, due: &Due, tag_bytes: usize) {
        let Some(place) = self.free.pop() else { return };
        let to = self.memory.at(place as usize + self.stamp_at, STAMP_BYTES);
        // SAFETY: the place is this process's; both parts are as long.
        unsafe { std::ptr::copy_nonoverlapping(due.stamp.as_ptr(), to, STAMP_BYTES) };
        self.send.put(libc::xdp_desc { addr: place, len: (due.bytes + tag_bytes) as u32, options: 0 });
    }

    /// Has the kernel send what was put, and takes back the places of what has left.
    pub fn flush(&mut self) -> io::Result<()> {
        self.send.publish();
        // SAFETY: without a message, the kernel looks at the ring alone.
        let sent = unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, flags, std::ptr::null(), 0)
        };
        let error = io::Error::last_os_error();
        self.collect();
        match error.raw_os_error() {
            _ if sent >= 0 => Ok(()),
            // No room now, or more than one call sends: what was put stays, and leaves later.
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => Ok(()),
            _ => Err(error),
        }
    }

    fn collect(&mut self) {
        for _ in 0..self.completed.filled() {
            self.free.push(self.completed.take());
        }
        self.completed.release();
    }

    /// Frames that did not fit.
    pub fn drops(&mut self) -> u64 {
        // SAFETY: the structure has no invalid bit pattern.
        let none: libc::xdp_statistics = unsafe { zeroed() };
        get(&self.fd, libc::SOL_XDP, libc::XDP_STATISTICS, none)
            .map_or(0, |statistics| statistics.rx_dropped + statistics.rx_ring_full)
    }
}

/// Binds a socket to the first queue, without copies where the driver can; returns whether it can.
fn bind_queue(fd: &OwnedFd, index: i32, may_copy: bool) -> io::Result<bool> {
    // SAFETY: the structure has no invalid bit pattern.
    let mut address: libc::sockaddr_xdp = unsafe { zeroed() };
    address.sxdp_family = libc::AF_XDP as u16;
    address.sxdp_ifindex = index as u32;
    address.sxdp_queue_id = QUEUE;
    address.sxdp_flags = libc::XDP_ZEROCOPY;
    match bind(fd, &address) {
        Err(error) if may_copy && error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            address.sxdp_flags = libc::XDP_COPY;
            bind(fd, &address).map(|()| false)
        }
        done => done.map(|()| true),
    }
}
