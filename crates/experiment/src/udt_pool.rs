//! UDT's packets in flight: a token of 16 bytes on the links, the rest waits here.

use crate::packet::Packet;
use crate::transport::SegmentPool;
use std::collections::VecDeque;
use tcp::segment::IPV6_EXTRA_BYTES;
use udt::{Data, Segment};

/// A packet that waits, 24 bytes: data as it is, control packets are rare and larger.
enum Stored {
    /// Taken.
    Nothing,
    Data(Data),
    Control(Box<Segment>),
}

/// Packets of one source in the order of sending. A number is good for 2^32 packets.
#[derive(Default)]
struct Flight {
    /// Number of the first stored packet.
    head: u32,
    stored: VecDeque<Stored>,
    /// Number of the first packet of the present connection.
    connection_from: u32,
    /// Bytes of a packet's headers beside those of [`udt::HEADER_BYTES`].
    extra_bytes: u32,
}

impl Flight {
    fn put(&mut self, segment: &Segment) -> u32 {
        let number = self.head.wrapping_add(self.stored.len() as u32);
        self.stored.push_back(match segment {
            Segment::Data(data) => Stored::Data(*data),
            control => Stored::Control(Box::new(*control)),
        });
        number
    }

    fn take(&mut self, number: u32) -> Stored {
        let index = number.wrapping_sub(self.head) as usize;
        let stored = std::mem::replace(&mut self.stored[index], Stored::Nothing);
        while matches!(self.stored.front(), Some(Stored::Nothing)) {
            self.stored.pop_front();
            self.head = self.head.wrapping_add(1);
        }
        stored
    }
}

/// Packets of all sources in flight.
pub struct UdtPool {
    flights: Vec<Flight>,
}

impl SegmentPool for UdtPool {
    type Segment = Segment;

    fn new(sources: usize) -> UdtPool {
        UdtPool { flights: (0..sources).map(|_| Flight::default()).collect() }
    }

    fn use_ipv6(&mut self, source: u32) {
        self.flights[source as usize].extra_bytes = IPV6_EXTRA_BYTES;
    }

    fn pack(&mut self, segment: &Segment, hop: u32, source: u32, count: u32) -> Packet {
        debug_assert!(count == 1, "packets of UDT go out one by one");
        let flight = &mut self.flights[source as usize];
        let number = flight.put(segment);
        Packet::new(number, hop, source, segment.packet_bytes() + flight.extra_bytes, 0)
    }

    fn unpack(&mut self, packet: Packet, segment: &mut Segment) {
        *segment = match self.flights[packet.source() as usize].take(packet.number()) {
            Stored::Data(data) => Segment::Data(data),
            Stored::Control(control) => *control,
            Stored::Nothing => unreachable!("a packet arrives once"),
        };
    }

    fn is_current(&mut self, packet: Packet) -> bool {
        // Fewer than 2^31 packets of a source are in flight.
        let from = self.flights[packet.source() as usize].connection_from;
        packet.number().wrapping_sub(from) as i32 >= 0
    }

    fn discard(&mut self, packet: Packet) {
        self.flights[packet.source() as usize].take(packet.number());
    }

    fn begin_connection(&mut self, source: u32) {
        let flight = &mut self.flights[source as usize];
        flight.connection_from = flight.head.wrapping_add(flight.stored.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(number: u64) -> Segment {
        Segment::Data(Data { number, bytes: 1456 })
    }

    #[test]
    fn packets_come_back_in_any_order_and_nothing_stays() {
        let mut pool = UdtPool::new(2);
        let sent = [data(1), Segment::Ack2 { ack_number: 7 }, data(2), Segment::Shutdown];
        let packets = sent.map(|segment| pool.pack(&segment, 5, 1, 1));
        for index in [2, 0, 3] {
            let mut segment = Segment::default();
            pool.unpack(packets[index], &mut segment);
            assert_eq!(segment, sent[index]);
        }
        pool.discard(packets[1]);
        assert!(pool.flights[1].stored.is_empty());
    }

    #[test]
    fn packets_of_an_earlier_connection_are_known() {
        let mut pool = UdtPool::new(2);
        let pack = |pool: &mut UdtPool| pool.pack(&data(1), 0, 0, 1);
        let before = pack(&mut pool);
        pool.begin_connection(0);
        let after = pack(&mut pool);
        assert!(!pool.is_current(before) && pool.is_current(after));
    }
}
