//! The frame around an IP packet on a line: what it adds to the time on the line, and the bits that its check covers.

/// Bytes that a link layer adds to each packet. The default adds nothing: the line carries IP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Framing {
    /// Bytes of the frame around its packet: headers, tags and check sequence; at most [`MAX_OVERHEAD_BYTES`].
    pub header_bytes: u32,
    /// Shortest frame, bytes: a shorter one is padded; at most 65,535.
    pub min_frame_bytes: u32,
    /// Bytes between two frames: preamble and gap, or a flag; at most [`MAX_OVERHEAD_BYTES`].
    pub gap_bytes: u32,
}

/// Largest part of a frame that is no packet, and largest gap, bytes: with a packet of 65,535 B below 2^32. Far beyond
/// any link layer; a host's cost per packet is counted in bytes as well.
pub const MAX_OVERHEAD_BYTES: u32 = 1 << 30;

impl Framing {
    /// Bytes of the frame around a packet of `packet_bytes`, without what lies between frames: those that its check
    /// sequence protects.
    #[inline]
    pub fn frame_bytes(&self, packet_bytes: u32) -> u32 {
        (packet_bytes + self.header_bytes).max(self.min_frame_bytes)
    }

    /// Bytes that a packet of `packet_bytes` takes on the line.
    #[inline]
    pub fn line_bytes(&self, packet_bytes: u32) -> u32 {
        self.frame_bytes(packet_bytes) + self.gap_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_takes_1538_bytes_for_1500_and_84_for_an_ack() {
        let ethernet = Framing { header_bytes: 18, min_frame_bytes: 64, gap_bytes: 20 };
        assert_eq!((ethernet.frame_bytes(1500), ethernet.line_bytes(1500)), (1518, 1538));
        assert_eq!((ethernet.frame_bytes(40), ethernet.line_bytes(40)), (64, 84), "padded");
        assert_eq!((ethernet.frame_bytes(46), ethernet.frame_bytes(47)), (64, 65));
        assert_eq!(Framing::default().line_bytes(1500), 1500);
    }
}
