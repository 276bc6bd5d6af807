//! Several frames by one system call (recvmmsg(2), sendmmsg(2)).

use bytes::Bytes;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd};

/// Frames of one call.
pub(super) const FRAMES: usize = 32;
/// Longest frame that is taken, bytes: the largest FCoE frame has 2176 with a tag.
const FRAME_BYTES_MAX: usize = 4096;
/// Room for one control message with the auxiliary data of a packet socket, in words of the alignment that it needs.
const CONTROL_WORDS: usize = 8;

/// Room for frames that come.
#[derive(Debug)]
pub(super) struct Room {
    frames: Box<[u8]>,
    control: Box<[[u64; CONTROL_WORDS]]>,
}

impl Room {
    pub fn new() -> Room {
        let frames = vec![0; FRAMES * FRAME_BYTES_MAX].into_boxed_slice();
        Room { frames, control: vec![[0; CONTROL_WORDS]; FRAMES].into_boxed_slice() }
    }

    /// Hands the frames that have come to `take`, each with its message's header; returns their number. `WouldBlock`
    /// when there is none. Frames that are longer than the room for one are cut off.
    pub fn receive(&mut self, socket: impl AsFd, mut take: impl FnMut(&[u8], &libc::msghdr)) -> io::Result<usize> {
        // SAFETY: the structures have no invalid bit pattern.
        let (mut parts, mut messages): ([libc::iovec; FRAMES], [libc::mmsghdr; FRAMES]) = unsafe { zeroed() };
        let places = self.frames.chunks_exact_mut(FRAME_BYTES_MAX).zip(self.control.iter_mut());
        for ((part, message), (place, control)) in parts.iter_mut().zip(&mut messages).zip(places) {
            *part = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of_val(control) as _;
        }
        // SAFETY: the kernel writes into the places, no further than their lengths, which live until it returns.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                FRAMES as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        let got = got as usize;
        for (message, place) in messages[..got].iter().zip(self.frames.chunks_exact(FRAME_BYTES_MAX)) {
            take(&place[..(message.msg_len as usize).min(FRAME_BYTES_MAX)], &message.msg_hdr);
        }
        Ok(got)
    }
}

/// Sends the first of the frames, at most [`FRAMES`]; returns their number, which is above 0. An error is the first
/// frame's.
pub(super) fn send<'a>(socket: impl AsFd, frames: impl Iterator<Item = &'a Bytes>) -> io::Result<usize> {
    // SAFETY: the structures have no invalid bit pattern.
    let (mut parts, mut messages): ([libc::iovec; FRAMES], [libc::mmsghdr; FRAMES]) = unsafe { zeroed() };
    let mut count = 0;
    for ((part, message), frame) in parts.iter_mut().zip(&mut messages).zip(frames) {
        *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the kernel reads the frames, which the caller lends until it returns.
    let sent = unsafe {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        libc::sendmmsg(socket.as_fd().as_raw_fd(), messages.as_mut_ptr(), count, flags as _)
    };
    match sent {
        ..0 => Err(io::Error::last_os_error()),
        sent => Ok(sent as usize),
    }
}
