//! Packets of a capture that are noted before those of earlier events: horizons handle many events of one host before
//! those of another one.

use std::ops::Range;

/// The medium of a noted packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// IP.
    Ip,
    /// A frame of Fibre Channel.
    FibreChannel,
}

/// A noted packet.
pub struct Note {
    /// Time of its event, ns.
    pub at: u64,
    /// Order of its event among those of one time.
    cause: u64,
    pub medium: Medium,
    /// Bytes of the packet on the line, of which those at `bytes` are kept.
    pub length: u32,
    bytes: Range<usize>,
}

/// Noted packets, until they are in the order of events.
#[derive(Default)]
pub struct Notes {
    all: Vec<Note>,
    bytes: Vec<u8>,
}

impl Notes {
    /// Notes a packet of an event of `cause` at `at`: `parts` are its bytes.
    pub fn push(&mut self, (at, cause): (u64, u64), medium: Medium, parts: [&[u8]; 2], length: u32) {
        let start = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.all.push(Note { at, cause, medium, length, bytes: start..self.bytes.len() });
    }

    /// Takes all in the order of their events; those of one event keep theirs. No earlier one may come later.
    pub fn take(&mut self) -> Notes {
        self.all.sort_by_key(|note| (note.at, note.cause));
        std::mem::take(self)
    }

    /// Each with its bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&Note, &[u8])> {
        self.all.iter().map(|note| (note, &self.bytes[note.bytes.clone()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_in_the_order_of_their_events() {
        let mut notes = Notes::default();
        for (number, key) in [(5, 2), (3, 9), (5, 1), (3, 9), (5, 2)].into_iter().enumerate() {
            notes.push(key, Medium::Ip, [&[number as u8], &[7]], 40);
        }
        let order: Vec<_> = notes.take().iter().map(|(note, bytes)| (note.at, bytes.to_vec())).collect();
        assert_eq!(order, [(3, vec![1, 7]), (3, vec![3, 7]), (5, vec![2, 7]), (5, vec![0, 7]), (5, vec![4, 7])]);
        assert_eq!(notes.take().iter().count(), 0);
    }
}
