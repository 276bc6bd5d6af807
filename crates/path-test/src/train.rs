//! Packet trains: when each packet is to leave, and when it was seen.

use core::net::IpAddr;

/// Packets of one size that leave by one schedule: a stream, a pair, a chirp, one packet at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Train {
    /// Of each packet, from the IP header on, bytes.
    pub packet_bytes: u32,
    /// Time at which each packet is to leave, ns from the first; never falling. One entry per packet.
    pub offsets_ns: Vec<u64>,
    /// IPv4 TTL or IPv6 hop limit of each packet.
    pub ttl: u8,
    /// Routers are to be told not to fragment (RFC 791, DF; RFC 8899, 3).
    pub do_not_fragment: bool,
}

impl Train {
    /// `packets` of `packet_bytes`, one every `gap_ns`; 0: back to back.
    pub fn even(packets: u32, packet_bytes: u32, gap_ns: u64) -> Train {
        let offsets_ns = (0..u64::from(packets)).map(|index| index * gap_ns).collect();
        Train { packet_bytes, offsets_ns, ttl: 64, do_not_fragment: false }
    }

    /// All its bytes, from the IP headers on.
    pub fn bytes(&self) -> u64 {
        u64::from(self.packet_bytes) * self.offsets_ns.len() as u64
    }
}

/// A router that answered in place of the far end (ICMP time exceeded, packet too big).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouterReply {
    /// The router.
    pub address: IpAddr,
    /// ICMP or ICMPv6 type.
    pub icmp_type: u8,
    /// Its code.
    pub icmp_code: u8,
    /// The next hop's MTU in a "packet too big", bytes.
    pub mtu_bytes: Option<u32>,
    /// At the sender, ns of the sender's clock.
    pub at_ns: u64,
}

/// One packet of a train, as both ends saw it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TrainPacket {
    /// Time at which it left, ns of the sender's clock.
    pub sent_ns: u64,
    /// Time at which it arrived, ns of the receiver's clock; none: lost, or nobody told.
    pub received_ns: Option<u64>,
    /// Time at which its answer was back, ns of the sender's clock.
    pub returned_ns: Option<u64>,
    /// The router that answered.
    pub router: Option<RouterReply>,
}

/// A train that is over: every packet has come, or has been waited for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TrainReport {
    /// In the order of the train; shorter than the train where the sender stopped.
    pub packets: Vec<TrainPacket>,
    /// Steps in which the receiver's time stamps advance, ns; 1 where they are exact.
    pub stamp_step_ns: u64,
    /// Packets that left later than they were due, by more than the driver allows.
    pub late: u32,
}
