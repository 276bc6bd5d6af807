//! Bytes that wait for a socket.

use super::frame::Framing;
use super::payload::Payload;
use super::pdu::Pdu;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Data below this is copied beside its header, bytes: one slice less for the kernel costs more than copying so much.
const COPY_BELOW: usize = 2048;

/// A queue of encoded PDUs. Large data stays where it is; headers and small data share buffers.
#[derive(Debug, Default)]
pub struct Outgoing {
    pieces: VecDeque<Bytes>,
    /// Bytes behind the last piece.
    small: BytesMut,
    len: usize,
}

impl Outgoing {
    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a PDU.
    ///
    /// # Panics
    /// As [`Framing::head`].
    pub fn push(&mut self, framing: &Framing, pdu: &Pdu) {
        let before = self.small.len();
        framing.head(pdu, &mut self.small);
        let data = match &pdu.data {
            Payload::Bytes(bytes) => bytes.clone(),
            zeros => zeros.to_bytes(),
        };
        self.len += self.small.len() - before;
        if data.len() >= COPY_BELOW {
            self.seal();
            self.len += data.len();
            self.pieces.push_back(data.clone());
        } else {
            self.small.extend_from_slice(&data);
            self.len += data.len();
        }
        let before = self.small.len();
        framing.tail(&data, &mut self.small);
        self.len += self.small.len() - before;
    }

    fn seal(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push_back(self.small.split().freeze());
        }
    }

    /// Fills `slices` from the front; returns how many.
    pub fn slices<'a>(&'a mut self, slices: &mut [IoSlice<'a>]) -> usize {
        self.seal();
        let mut count = 0;
        for (slot, piece) in slices.iter_mut().zip(&self.pieces) {
            *slot = IoSlice::new(piece);
            count += 1;
        }
        count
    }

    /// Takes `sent` bytes off the front.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn consume(&mut self, mut sent: usize) {
        assert!(sent <= self.len, "{sent} bytes sent of {}", self.len);
        self.len -= sent;
        self.seal();
        while sent > 0 {
            let Some(first) = self.pieces.front_mut() else { return };
            if first.len() > sent {
                first.advance(sent);
                return;
            }
            sent -= first.len();
            self.pieces.pop_front();
        }
    }
}
