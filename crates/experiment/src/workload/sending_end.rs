//! The sending end of a connection, as an application sees it.

use units::{Span, Time};

/// Bytes of a copy that a connection takes at once: GridFTP's default block.
pub const BLOCK_BYTES: u64 = 256 << 10;

/// The sending end of a connection, as an application sees it: a simulated endpoint or a socket.
pub trait SendingEnd {
    /// Hands over up to `bytes` of data; returns how many were taken.
    fn write(&mut self, now: Time, bytes: u64) -> u64;
    /// No more will be written: the end of the stream follows the data written before. May be called again, to no
    /// effect.
    fn close(&mut self, now: Time);
    /// Takes back the data that was written and never sent, as far as this end can.
    fn discard_unsent(&mut self, now: Time);
    /// Bytes taken so far and not taken back.
    fn bytes_written(&self) -> u64;
    /// Returns true if the connection is established and not lost.
    fn is_established(&self) -> bool;
    /// Bytes taken and not acknowledged by the other end's TCP.
    fn unacknowledged(&self) -> u64;
    /// Returns true if it takes data and has less than `unsent` bytes that it has not begun to send.
    fn has_room(&self, unsent: u64) -> bool;
    /// Returns the smoothed round-trip time; None: none was measured.
    fn round_trip(&self) -> Option<Span>;
}

impl SendingEnd for tcp::Endpoint {
    #[inline]
    fn write(&mut self, now: Time, bytes: u64) -> u64 {
        self.write(now, bytes)
    }
    #[inline]
    fn close(&mut self, now: Time) {
        self.close(now);
    }
    #[inline]
    fn discard_unsent(&mut self, now: Time) {
        self.discard_unsent(now);
    }
    #[inline]
    fn bytes_written(&self) -> u64 {
        self.bytes_written()
    }
    fn is_established(&self) -> bool {
        self.established_at().is_some() && !self.is_closed()
    }
    fn unacknowledged(&self) -> u64 {
        self.bytes_written().saturating_sub(self.bytes_acked())
    }
    fn has_room(&self, unsent: u64) -> bool {
        self.bytes_unsent() < unsent && self.send_queue_free() > 0 && !self.is_closed()
    }
    fn round_trip(&self) -> Option<Span> {
        self.srtt()
    }
}
