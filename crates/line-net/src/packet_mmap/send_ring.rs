//! A ring of frames to be sent (TPACKET_V2), filled once: a frame that is put changes its stamp and its length.

use crate::map::Map;
use crate::packet_socket;
use crate::socket::set;
use line_test::{Due, STAMP_BYTES};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// Frames of the ring: more than an interface takes while this process waits for a processor for a moment.
const PLACES: usize = 1024;
/// Bytes before a frame's first (TPACKET2_HDRLEN without the address behind it, which is not there when sending).
const DATA: usize = TPACKET_ALIGN(size_of::<libc::tpacket2_hdr>());
const STATUS: usize = offset_of!(libc::tpacket2_hdr, tp_status);
const LENGTH: usize = offset_of!(libc::tpacket2_hdr, tp_len);
/// Bytes of a `virtio_net_hdr` before each frame: its length of headers is how many bytes the kernel copies.
const VNET_BYTES: usize = 10;
const HEADERS_LENGTH: usize = 2;
/// Frames up to this long are copied as a whole. Of a longer one the kernel maps pages, which saves a copy where an
/// adapter reads them, and costs a page each where another interface of this machine gets the frame.
const COPIED_BYTES: usize = 2048;
/// Bytes that the socket may have under way.
const SEND_BYTES: libc::c_int = 64 << 20;

#[allow(non_snake_case, reason = "the kernel's name")]
const fn TPACKET_ALIGN(bytes: usize) -> usize {
    bytes.next_multiple_of(16)
}

/// The ring.
#[derive(Debug)]
pub(super) struct SendRing {
    // Before the descriptor, so that it is unmapped first.
    map: Map,
    fd: OwnedFd,
    place_bytes: usize,
    stamp_at: usize,
    next: usize,
}

impl SendRing {
    /// A ring to an interface whose places hold a frame, the longest, with its stamp at an offset.
    pub fn new(index: i32, longest: &[u8], stamp_at: usize) -> io::Result<SendRing> {
        let fd = packet_socket::sending(index)?;
        set(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        // Past the queueing discipline: what it drops would not be known. Not every interface has the way.
        let _ = set(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32);
        if set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BYTES).is_err() {
            set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BYTES)?;
        }
        set(&fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1_i32)?;
        // A power of two, so that whole places fill a block of whole pages.
        let place_bytes = (DATA + VNET_BYTES + longest.len()).next_power_of_two().max(128);
        let block_bytes = (place_bytes * PLACES).min(1 << 16);
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: (place_bytes * PLACES / block_bytes) as u32,
            tp_frame_size: place_bytes as u32,
            tp_frame_nr: PLACES as u32,
        };
        set(&fd, libc::SOL_PACKET, libc::PACKET_TX_RING, &request)?;
        let map = Map::of(&fd, place_bytes * PLACES, 0)?;
        for place in 0..PLACES {
            let to = map.at(place * place_bytes + DATA + VNET_BYTES, longest.len());
            // SAFETY: no place is the kernel's before its status says so; both parts are as long.
            unsafe { std::ptr::copy_nonoverlapping(longest.as_ptr(), to, longest.len()) };
        }
        Ok(SendRing { map, fd, place_bytes, stamp_at, next: 0 })
    }

    /// True while the next place is free.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.map.word(self.next * self.place_bytes + STATUS).load(Ordering::Acquire) == libc::TP_STATUS_AVAILABLE
    }

    /// Puts a frame into the next place, which is free.
    #[inline]
    pub fn put(&mut self, due: &Due, tag_bytes: usize) {
        let place = self.next * self.place_bytes;
        let length = due.bytes + tag_bytes;
        let copied = if length <= COPIED_BYTES { length as u16 } else { 0 };
        let headers = self.map.at(place + DATA + HEADERS_LENGTH, 2);
        let to = self.map.at(place + DATA + VNET_BYTES + self.stamp_at, STAMP_BYTES);
        // SAFETY: the place is this process's, and its parts have the lengths that are written.
        unsafe { headers.cast::<u16>().write_unaligned(copied) };
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(due.stamp.as_ptr(), to, STAMP_BYTES) };
        self.map.word(place + LENGTH).store((VNET_BYTES + length) as u32, Ordering::Relaxed);
        self.map.word(place + STATUS).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next = (self.next + 1) % PLACES;
    }

    /// Has the kernel send what was put.
    pub fn flush(&mut self) -> io::Result<()> {
        // SAFETY: without a message, the kernel looks at the ring alone.
        let sent = unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, flags, std::ptr::null(), 0)
        };
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            _ if sent >= 0 => Ok(()),
            // No room now: what was put stays, and leaves later.
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(()),
            _ => Err(error),
        }
    }
}
