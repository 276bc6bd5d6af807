//! Data segments of a connection, as they are on the wire.

use super::info::Info;
use std::io;
use std::os::fd::RawFd;

/// TCP's own header, bytes.
const TCP_BYTES: u32 = 20;

/// Counters of a connection at one moment. The kernel counts segments that its adapter cuts or joins one by one
/// (tcp_skb_pcount, gso_segs).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentCounts {
    /// Bytes of TCP's header in each, with options.
    pub tcp_header_bytes: u32,
    /// Least round-trip time so far, us; None before the first sample.
    pub min_rtt_us: Option<u64>,
    sent: u32,
    /// Payload sent; from segments where the kernel does not count bytes.
    sent_bytes: u64,
    received: u32,
    received_bytes: u64,
}

impl SegmentCounts {
    /// Those of the TCP socket `fd`.
    ///
    /// # Errors
    /// The kernel's; "unsupported" when it is older than Linux 4.6.
    pub fn of(fd: RawFd) -> io::Result<SegmentCounts> {
        let info = Info::of(fd)?;
        let raw = info.raw();
        Ok(SegmentCounts {
            tcp_header_bytes: TCP_BYTES + info.option_bytes(),
            min_rtt_us: info.min_rtt_us(),
            sent: raw.data_segs_out,
            sent_bytes: info.bytes_sent().unwrap_or(u64::from(raw.data_segs_out) * u64::from(raw.snd_mss)),
            received: raw.data_segs_in,
            received_bytes: raw.bytes_received,
        })
    }

    /// Segments sent since `earlier`, again ones included, and their payload in bytes. The kernel's counter of segments
    /// has 32 bits: of 1448 B at 400 Gbit/s it has wrapped after 124 s.
    pub fn sent_since(&self, earlier: &SegmentCounts) -> (u64, u64) {
        (self.sent.wrapping_sub(earlier.sent).into(), self.sent_bytes.saturating_sub(earlier.sent_bytes))
    }

    /// Segments received since `earlier`, and the payload among them that was new, in bytes.
    pub fn received_since(&self, earlier: &SegmentCounts) -> (u64, u64) {
        let bytes = self.received_bytes.saturating_sub(earlier.received_bytes);
        (self.received.wrapping_sub(earlier.received).into(), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_counted_over_the_wrap_of_their_counter() {
        let before = SegmentCounts {
            tcp_header_bytes: 32,
            min_rtt_us: None,
            sent: u32::MAX,
            sent_bytes: 5,
            received: 7,
            received_bytes: 9,
        };
        let after = SegmentCounts { sent: 9, sent_bytes: 14485, received: 8, received_bytes: 1457, ..before };
        assert_eq!((after.sent_since(&before), after.received_since(&before)), ((10, 14480), (1, 1448)));
    }
}
