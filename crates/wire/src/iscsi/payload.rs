//! Data segments: bytes, or no more than their number.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Pieces of a [`Rope`] below this are copied behind the one before, bytes. What a piece costs beside its data (its
/// place, the header that came with it) is a few percent of so much.
const COPY_BELOW: usize = 4096;
/// A piece that has so many bytes gets no more behind it: what was copied is not copied again as it grows.
const JOINED: usize = 65_536;

/// The data of a PDU.
///
/// The simulator moves no payload: there a payload is a length, and counts as zeros where somebody looks. Cloning and
/// cutting copy no data.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Real data.
    Bytes(Bytes),
    /// So many bytes that nobody looks at.
    Zeros(u32),
}

impl Payload {
    /// Bytes.
    pub fn len(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Zeros(length) => *length as usize,
        }
    }

    /// Returns whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cuts off and returns the first `at` bytes, or all when there are fewer.
    pub fn split_to(&mut self, at: usize) -> Payload {
        let at = at.min(self.len());
        match self {
            Payload::Bytes(bytes) => Payload::Bytes(bytes.split_to(at)),
            Payload::Zeros(length) => {
                *length -= at as u32;
                Payload::Zeros(at as u32)
            }
        }
    }

    /// `length` bytes from `start` on, or as many of them as there are.
    pub fn slice(&self, start: usize, length: usize) -> Payload {
        let start = start.min(self.len());
        let end = start.saturating_add(length).min(self.len());
        match self {
            Payload::Bytes(bytes) => Payload::Bytes(bytes.slice(start..end)),
            Payload::Zeros(_) => Payload::Zeros((end - start) as u32),
        }
    }

    /// The data as bytes; a length becomes that many zeros.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Payload::Bytes(bytes) => bytes.clone(),
            Payload::Zeros(length) => Bytes::from(vec![0; *length as usize]),
        }
    }
}

impl Default for Payload {
    fn default() -> Payload {
        Payload::Zeros(0)
    }
}

/// Equal data; a length equals that many zeros.
impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        match (self, other) {
            (Payload::Bytes(a), Payload::Bytes(b)) => a == b,
            (Payload::Zeros(a), Payload::Zeros(b)) => a == b,
            (Payload::Bytes(a), Payload::Zeros(n)) | (Payload::Zeros(n), Payload::Bytes(a)) => {
                a.len() == *n as usize && a.iter().all(|&byte| byte == 0)
            }
        }
    }
}

impl Eq for Payload {}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Payload::Bytes(bytes.into())
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Payload {
        Payload::Bytes(bytes)
    }
}

/// Data that came in pieces, in order, and stays in them: the data of one command.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    pieces: VecDeque<Payload>,
    len: usize,
}

impl Rope {
    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces, in order; none is empty.
    pub fn pieces(&self) -> impl Iterator<Item = &Payload> {
        self.pieces.iter()
    }

    /// Adds data at the end. Lengths join, so that simulated data of any size is one piece. Small pieces are copied
    /// together: a peer that sends byte by byte would else have a piece kept for each, and the buffer that it came in.
    pub fn push(&mut self, data: Payload) {
        if data.is_empty() {
            return;
        }
        self.len += data.len();
        match (self.pieces.back_mut(), &data) {
            (Some(Payload::Zeros(last)), Payload::Zeros(more)) => {
                if let Some(sum) = last.checked_add(*more) {
                    *last = sum;
                    return;
                }
            }
            (Some(Payload::Bytes(last)), Payload::Bytes(more)) if last.len() < JOINED && more.len() < COPY_BELOW => {
                let mut joined = std::mem::take(last).try_into_mut().unwrap_or_else(BytesMut::from);
                joined.extend_from_slice(more);
                *last = joined.freeze();
                return;
            }
            _ => {}
        }
        self.pieces.push_back(data);
    }

    /// Cuts off and returns the first `at` bytes, or all when there are fewer.
    pub fn split_to(&mut self, mut at: usize) -> Rope {
        let mut head = Rope::default();
        while at > 0 {
            let Some(first) = self.pieces.front_mut() else { break };
            let taken = first.split_to(at);
            if first.is_empty() {
                self.pieces.pop_front();
            }
            at -= taken.len();
            self.len -= taken.len();
            head.push(taken);
        }
        head
    }

    /// The data in one piece; copies when there are several.
    pub fn to_payload(&self) -> Payload {
        if self.pieces.len() <= 1 {
            return self.pieces.front().cloned().unwrap_or_default();
        }
        let mut all = Vec::with_capacity(self.len);
        for piece in &self.pieces {
            match piece {
                Payload::Bytes(bytes) => all.extend_from_slice(bytes),
                Payload::Zeros(length) => all.resize(all.len() + *length as usize, 0),
            }
        }
        all.into()
    }
}

impl From<Payload> for Rope {
    fn from(data: Payload) -> Rope {
        let mut rope = Rope::default();
        rope.push(data);
        rope
    }
}

/// Equal data, in whatever pieces.
impl PartialEq for Rope {
    fn eq(&self, other: &Rope) -> bool {
        self.len == other.len && self.to_payload() == other.to_payload()
    }
}

impl Eq for Rope {}
