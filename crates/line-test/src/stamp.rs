//! The stamp of a frame: which stream it is of, its number and its time, behind the Ethernet header.

/// Bytes of a stamp. With addresses and type it leaves 16 of the shortest frame to the pattern.
pub const STAMP_BYTES: usize = 30;
const MARK: u8 = 0xe1;
const VERSION: u8 = 1;
const CHECKED: usize = STAMP_BYTES - 4;

/// A kind of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A frame of a stream, which is counted.
    Test,
    /// A frame of a stream while its rate rises, which is not.
    Ramp,
    /// A message behind the stamp.
    Message,
}

/// A stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Kind of the frame.
    pub kind: Kind,
    /// Number of its pattern; of a message, 0.
    pub pattern: u8,
    /// Bytes from the stamp's first to the frame's last, without the check sequence: those of a frame that was cut
    /// short are fewer.
    pub content_bytes: u16,
    /// Number of the stream, by its sender.
    pub stream: u32,
    /// Number of the frame within the stream, from 0; of a message, its length in bytes.
    pub sequence: u64,
    /// Time of sending, ns since 1970 by the sender's clock.
    pub sent_ns: u64,
}

impl Stamp {
    /// The stamp as bytes: mark, version and kind, pattern, 0, length, stream, sequence, time, CRC-32 of all these.
    #[inline]
    pub fn encode(&self) -> [u8; STAMP_BYTES] {
        let kind = match self.kind {
            Kind::Test => 0,
            Kind::Ramp => 1,
            Kind::Message => 2,
        };
        let mut bytes = [0; STAMP_BYTES];
        bytes[..4].copy_from_slice(&[MARK, VERSION << 4 | kind, self.pattern, 0]);
        bytes[4..6].copy_from_slice(&self.content_bytes.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.stream.to_be_bytes());
        bytes[10..18].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[18..26].copy_from_slice(&self.sent_ns.to_be_bytes());
        let check = crc32fast::hash(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    /// The stamp at the begin of bytes; None where its check sequence is wrong, or it is of another version.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Stamp> {
        let bytes: &[u8; STAMP_BYTES] = bytes.get(..STAMP_BYTES)?.try_into().ok()?;
        let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if bytes[0] != MARK || bytes[1] >> 4 != VERSION || crc32fast::hash(&bytes[..CHECKED]) != word(CHECKED) {
            return None;
        }
        let kind = match bytes[1] & 15 {
            0 => Kind::Test,
            1 => Kind::Ramp,
            2 => Kind::Message,
            _ => return None,
        };
        let content_bytes = u16::from_be_bytes([bytes[4], bytes[5]]);
        Some(Stamp { kind, pattern: bytes[2], content_bytes, stream: word(6), sequence: long(10), sent_ns: long(18) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_stamp_goes_through_bytes_and_any_wrong_bit_shows(
            content_bytes: u16, stream: u32, sequence: u64, sent_ns: u64, bit in 0..STAMP_BYTES * 8
        ) {
            let stamp = Stamp { kind: Kind::Ramp, pattern: 2, content_bytes, stream, sequence, sent_ns };
            let mut bytes = stamp.encode();
            prop_assert_eq!(Stamp::decode(&bytes), Some(stamp));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Stamp::decode(&bytes), None);
        }

        #[test]
        fn bytes_of_others_make_no_stamp(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(Stamp::decode(&bytes), None);
        }
    }
}
