//! A packet as a link sees it.

/// The properties of a packet that a link reads.
pub trait Packet {
    /// Bytes that the line's rate counts: those of the IP packet, at most 65,535.
    fn bytes(&self) -> u32;
    /// Equal for packets of one flow: FQ-CoDel spreads flows over its queues by it, and independent losses are drawn
    /// per flow.
    fn flow_hash(&self) -> u64;
    /// Returns whether the packet may be marked instead of dropped (ECT(0), ECT(1) or CE, RFC 3168).
    fn is_ect(&self) -> bool;
    /// Sets "congestion experienced" (RFC 3168).
    fn mark_ce(&mut self);
    /// Payload, bytes, that an offload cuts from that of others of its flow, or joins to it (TSO, GRO): that of a TCP
    /// segment whose header differs from the next one's in the sequence number alone; 0: none does.
    fn offload_bytes(&self) -> u32 {
        0
    }
}
