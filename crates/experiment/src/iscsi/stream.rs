//! PDUs in transit through a simulated connection: the end of each in the stream of bytes.

use crate::transport::Transport;
use std::collections::VecDeque;
use units::Time;
use wire::iscsi::{Framing, Pdu};

/// Bytes that TCP has not sent yet above which no further PDU is handed over. A target has to be able to put a status
/// in front of the data that it has not begun to send, as it does on a socket; and this is more than an ACK lets go at
/// once.
const UNSENT_BYTES: u64 = 256 << 10;

/// One direction of a connection.
#[derive(Default)]
pub struct Stream {
    /// (first byte after it, PDU), ascending.
    pdus: VecDeque<(u64, Pdu)>,
    /// Bytes of all PDUs so far.
    end: u64,
    /// Bytes of them that TCP has taken.
    written: u64,
}

impl Stream {
    /// Returns true if there is room for another PDU.
    #[inline]
    pub fn has_room(&self, end: &impl Transport) -> bool {
        end.bytes_unsent() + (self.end - self.written) < UNSENT_BYTES
    }

    /// Adds a PDU behind the others.
    pub fn push(&mut self, framing: &Framing, pdu: Pdu) {
        self.end += framing.length(&pdu) as u64;
        self.pdus.push_back((self.end, pdu));
    }

    /// Hands the PDUs to TCP as far as it takes them; returns true if it took any.
    #[inline]
    pub fn write(&mut self, now: Time, end: &mut impl Transport) -> bool {
        if self.written == self.end {
            return false;
        }
        let taken = end.write(now, self.end - self.written);
        self.written += taken;
        taken > 0
    }

    /// The next PDU of which all bytes are among the `received` first.
    #[inline]
    pub fn pop(&mut self, received: u64) -> Option<Pdu> {
        match self.pdus.front() {
            Some(&(end, _)) if end <= received => self.pdus.pop_front().map(|(_, pdu)| pdu),
            _ => None,
        }
    }
}
