//! A connected socket of TCP, shared by its halves and its handle.

use crate::transport::{Handle, StreamFacts};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Sets an option of a socket.
///
/// # Errors
/// Those of setsockopt(2).
pub(crate) fn set_option<T: Copy>(socket: BorrowedFd<'_>, level: i32, name: i32, value: T) -> io::Result<()> {
    // SAFETY: the pointer is to `value`, of the length that is told.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(&value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A connected socket, shared by its halves and its handle.
#[derive(Clone)]
pub(crate) struct TcpEnd {
    pub stream: Arc<TcpStream>,
}

impl TcpEnd {
    pub fn new(stream: TcpStream) -> TcpEnd {
        TcpEnd { stream: Arc::new(stream) }
    }

    pub fn timeouts(&self, wait: Option<Duration>) -> io::Result<()> {
        let wait = wait.map(|wait| wait.max(Duration::from_millis(1)));
        self.stream.set_read_timeout(wait)?;
        self.stream.set_write_timeout(wait)
    }
}

impl Handle for TcpEnd {
    fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn is_open(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut polled, Some(&now)), Ok(1..))
    }

    fn facts(&self) -> StreamFacts {
        // SAFETY: the structure has no invalid bit pattern, and the kernel writes at most the length that is told.
        let info = unsafe {
            let mut info: libc::tcp_info = std::mem::zeroed();
            let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
            let result = libc::getsockopt(
                self.stream.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                std::ptr::from_mut(&mut info).cast(),
                &mut length,
            );
            if result != 0 {
                return StreamFacts::default();
            }
            info
        };
        StreamFacts {
            rtt_s: Some(f64::from(info.tcpi_rtt) / 1e6),
            window_bytes: Some(u64::from(info.tcpi_snd_cwnd) * u64::from(info.tcpi_snd_mss)),
            retransmitted: Some(u64::from(info.tcpi_total_retrans)),
        }
    }

    fn pace(&self, bytes_per_s: Option<u64>) -> bool {
        // 64 bits since Linux 4.20; ~0 takes the limit away.
        let rate = bytes_per_s.unwrap_or(u64::MAX);
        set_option(self.stream.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate).is_ok()
    }
}
