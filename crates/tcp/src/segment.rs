//! One TCP segment as the endpoints exchange it: numbers that never wrap, no payload bytes, only their count.

use std::num::NonZeroU8;

/// Bytes of an IPv4 and a TCP header without options (RFC 791, 3.1; RFC 9293, 3.1).
pub const BASE_HEADER_BYTES: u32 = 40;
/// Bytes that an IPv6 header is longer (RFC 8200, 3).
pub const IPV6_EXTRA_BYTES: u32 = 20;
/// Bytes of the timestamp option with its padding (RFC 7323, appendix A).
pub const TIMESTAMP_OPTION_BYTES: u32 = 12;
/// Most SACK blocks that fit the 40 option bytes: 4 alone, 3 beside timestamps (RFC 2018, 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// Segment flags, as in the TCP header, with the version and the two ECN bits of the IP header beside them.
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u16 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u16 = 0x02;
    /// Push.
    pub const PSH: u16 = 0x08;
    /// Acknowledgment field is significant.
    pub const ACK: u16 = 0x10;
    /// IP: version 6. TCP's own flag of this value is URG, which no endpoint sends.
    pub const IPV6: u16 = 0x20;
    /// ECN-Echo (RFC 3168).
    pub const ECE: u16 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u16 = 0x80;
    /// IP: ECN-capable transport, ECT(0).
    pub const ECT: u16 = 0x100;
    /// IP: congestion experienced, set by a queue on the way.
    pub const CE: u16 = 0x200;
    /// The timestamp option is present.
    pub const TIMESTAMPS: u16 = 0x400;
    /// SYN only: the sender offers SACK.
    pub const SACK_PERMITTED: u16 = 0x800;
}

/// Bytes of an IP and a TCP header without options.
#[inline]
pub const fn base_header_bytes(is_ipv6: bool) -> u32 {
    BASE_HEADER_BYTES + is_ipv6 as u32 * IPV6_EXTRA_BYTES
}

/// Bytes `start..end` that the receiver holds beyond the cumulative ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First byte held.
    pub start: u64,
    /// First byte not held.
    pub end: u64,
}

/// The window scale option (RFC 7323, 2.2). An `Option` of it is one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowScale(NonZeroU8);

const _: () = assert!(std::mem::size_of::<Option<WindowScale>>() == 1);

impl WindowScale {
    /// The option with a shift, 0..=14.
    pub const fn new(shift: u8) -> WindowScale {
        // One more than the shift: zero is an absent option.
        WindowScale(NonZeroU8::MIN.saturating_add(shift))
    }

    /// Returns the shift.
    pub const fn shift(self) -> u8 {
        self.0.get() - 1
    }
}

/// A segment. Sequence numbers are byte numbers from the SYN at 0 on and never wrap (u64: 16 EB).
///
/// The 32-bit fields that a packet keeps are no neighbours: the compiler would read two of them as one word, and just
/// after each was written alone that stalls the processor.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Segment {
    /// Number of the first byte (of the SYN or FIN itself when there is no payload).
    pub seq: u64,
    /// Next byte expected from the peer; meaningful with ACK.
    pub ack: u64,
    /// Receive window offered, bytes, after scaling: what the peer reads, its low `wscale` bits lost.
    pub window: u32,
    /// See [`flags`].
    pub flags: u16,
    /// SYN only: maximum segment size offered, bytes.
    pub mss: u16,
    /// Timestamp value, ms of the sender's clock (RFC 7323); wraps after 49 days.
    pub ts_val: u32,
    /// SYN only: window scale offered; None = option absent.
    pub wscale: Option<WindowScale>,
    /// SACK blocks in use.
    pub sack_count: u8,
    /// Timestamp echoed, ms.
    pub ts_ecr: u32,
    /// Payload bytes. A SYN and a FIN each take one number more.
    pub len: u32,
    /// SACK blocks, most recent first; a DSACK (RFC 2883) comes first of all.
    pub sacks: [SackBlock; MAX_SACK_BLOCKS],
}

impl Segment {
    /// Returns whether all of `mask` is set.
    #[inline]
    pub fn has(&self, mask: u16) -> bool {
        self.flags & mask == mask
    }

    /// Numbers the segment takes: payload, SYN and FIN.
    #[inline]
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len) + u64::from(self.flags & flags::SYN != 0) + u64::from(self.flags & flags::FIN != 0)
    }

    /// Number after the segment's last byte.
    #[inline]
    pub fn end_seq(&self) -> u64 {
        self.seq + self.seq_len()
    }

    /// Bytes of TCP options with padding, as Linux lays them out.
    #[inline]
    pub fn option_bytes(&self) -> u32 {
        let mut bytes = 0;
        if self.flags & flags::SYN != 0 {
            bytes += 4; // MSS
            if self.wscale.is_some() {
                bytes += 4; // window scale and a NOP
            }
            if self.flags & flags::TIMESTAMPS != 0 {
                bytes += TIMESTAMP_OPTION_BYTES; // shares its padding with SACK-permitted
            } else if self.flags & flags::SACK_PERMITTED != 0 {
                bytes += 4;
            }
            return bytes;
        }
        if self.flags & flags::TIMESTAMPS != 0 {
            bytes += TIMESTAMP_OPTION_BYTES;
        }
        if self.sack_count > 0 {
            bytes += 4 + 8 * u32::from(self.sack_count);
        }
        bytes
    }

    /// Bytes of the IP packet before the payload: headers and options.
    #[inline]
    pub fn header_bytes(&self) -> u32 {
        base_header_bytes(self.flags & flags::IPV6 != 0) + self.option_bytes()
    }

    /// Bytes of the IP packet: headers, options, payload.
    #[inline]
    pub fn packet_bytes(&self) -> u32 {
        self.header_bytes() + self.len
    }
}
