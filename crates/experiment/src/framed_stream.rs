//! Units in transit through a simulated connection, such as PDUs: the end of each in the stream of bytes.

use crate::transport::Transport;
use std::collections::VecDeque;
use units::Time;

/// One direction of a connection.
pub struct FramedStream<U> {
    /// (first byte after it, unit), ascending.
    units: VecDeque<(u64, U)>,
    /// Bytes of all units so far.
    end: u64,
    /// Bytes of them that TCP has taken.
    written: u64,
}

impl<U> Default for FramedStream<U> {
    fn default() -> FramedStream<U> {
        FramedStream { units: VecDeque::new(), end: 0, written: 0 }
    }
}

impl<U> FramedStream<U> {
    /// Returns true if fewer than `unsent_bytes` wait for TCP to send them for the first time.
    #[inline]
    pub fn has_room(&self, end: &impl Transport, unsent_bytes: u64) -> bool {
        end.bytes_unsent() + (self.end - self.written) < unsent_bytes
    }

    /// Returns true if there are bytes that TCP has not taken.
    #[inline]
    pub fn waits(&self) -> bool {
        self.written != self.end
    }

    /// Adds a unit of `bytes` behind the others.
    pub fn push(&mut self, bytes: u64, unit: U) {
        self.end += bytes;
        self.units.push_back((self.end, unit));
    }

    /// Hands the units to TCP as far as it takes them; returns true if it took any.
    #[inline]
    pub fn write(&mut self, now: Time, end: &mut impl Transport) -> bool {
        if !self.waits() {
            return false;
        }
        let taken = end.write(now, self.end - self.written);
        self.written += taken;
        taken > 0
    }

    /// The next unit of which all bytes are among the `received` first.
    #[inline]
    pub fn peek(&self, received: u64) -> Option<&U> {
        self.units.front().filter(|&&(end, _)| end <= received).map(|(_, unit)| unit)
    }

    /// Takes the unit that [`FramedStream::peek`] shows.
    #[inline]
    pub fn pop(&mut self, received: u64) -> Option<U> {
        match self.units.front() {
            Some(&(end, _)) if end <= received => self.units.pop_front().map(|(_, unit)| unit),
            _ => None,
        }
    }
}
