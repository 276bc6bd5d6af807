//! PAUSE frames of Ethernet (IEEE 802.3, annex 31B).

use crate::ethernet::EthernetHeader;
use bytes::{BufMut, Bytes, BytesMut};

/// Group address of MAC control frames. Bridges do not forward it: a PAUSE is for the other end of the link alone.
pub const MAC_CONTROL_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
/// Type of MAC control frames.
pub const ETHERTYPE_MAC_CONTROL: u16 = 0x8808;
/// Bits of a quantum, the unit of the time of a PAUSE.
pub const QUANTUM_BITS: u64 = 512;
const OPCODE_PAUSE: u16 = 0x0001;
/// Shortest frame without its check sequence, bytes.
const FRAME_BYTES_MIN: usize = 60;

/// A frame that asks the other end of a link to send nothing for a number of quanta; 0: to send again.
pub fn encode(source: [u8; 6], quanta: u16) -> Bytes {
    let mut frame = BytesMut::with_capacity(FRAME_BYTES_MIN);
    let header = EthernetHeader { destination: MAC_CONTROL_ADDRESS, source, vlan: None };
    header.encode(ETHERTYPE_MAC_CONTROL, &mut frame);
    frame.put_u16(OPCODE_PAUSE);
    frame.put_u16(quanta);
    frame.resize(FRAME_BYTES_MIN, 0);
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_as_the_standard_has_it() {
        let frame = encode([2, 0, 0, 0, 0, 1], 0x1234);
        assert_eq!(frame[..18], [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 0, 1, 0x12, 0x34]);
        assert!(frame.len() == 60 && frame[18..].iter().all(|byte| *byte == 0));
    }
}
