//! The Ethernet of a forwarder: one interface, or several sockets, each with nodes behind it.

use crate::ethernet::{Attachment, Losses, Mac};
use bytes::Bytes;
use rustix::event::PollFlags;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;

/// Ethernet addresses that are remembered with their attachment.
const ADDRESSES_MAX: usize = 8192;
const ADDRESS_BYTES: usize = 6;

/// A frame of an attachment.
#[derive(Debug)]
pub(super) enum Received {
    /// One that the forwarder takes.
    Frame(Bytes),
    /// One from the address of a node that has a login at another attachment; with a line for the log, when the last
    /// such frame was of another address.
    Intruder(Option<String>),
}

/// The attachments, and which addresses are behind which.
#[derive(Debug)]
pub(super) struct Segment {
    attachments: Vec<Attachment>,
    behind: BTreeMap<Mac, usize>,
    /// The last address that came at another attachment than its own, with that attachment.
    last_intruder: Option<(Mac, usize)>,
}

impl Segment {
    pub fn new(attachments: Vec<Attachment>) -> Segment {
        Segment { attachments, behind: BTreeMap::new(), last_intruder: None }
    }

    /// Descriptors with what to wait for; `reads`: frames of the attachment with a number are taken now.
    pub fn waits_for(&self, reads: impl Fn(usize) -> bool) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.attachments.iter().enumerate().flat_map(move |(index, one)| one.waits_for(reads(index)))
    }

    /// True while a frame that has come at an attachment waits to be taken.
    pub fn has_frames(&self, index: usize) -> bool {
        self.attachments[index].has_frames()
    }

    /// True unless an address is known to be behind another attachment.
    pub fn may_be_behind(&self, mac: Mac, index: usize) -> bool {
        self.behind.get(&mac).is_none_or(|known| *known == index)
    }

    /// True while all queues have room.
    pub fn has_room(&self) -> bool {
        self.attachments.iter().all(Attachment::has_room)
    }

    /// True while a frame waits.
    pub fn is_blocked(&self) -> bool {
        self.attachments.iter().any(Attachment::is_blocked)
    }

    /// Number of attachments.
    pub fn len(&self) -> usize {
        self.attachments.len()
    }

    /// The next frame of an attachment. `node_of` gives the own address of a node that is logged in, by that address or
    /// by one of its ports: it stays where it is.
    pub fn receive(
        &mut self,
        index: usize,
        now_ns: u64,
        node_of: impl Fn(Mac) -> Option<Mac>,
    ) -> io::Result<Option<Received>> {
        let Some(frame) = self.attachments[index].receive(now_ns)? else { return Ok(None) };
        if self.attachments.len() > 1 {
            if let Some(source) = address(&frame, ADDRESS_BYTES) {
                let is_known = self.behind.get(&source) == Some(&index);
                let node = if is_known { None } else { node_of(source) };
                if node.is_some_and(|node| !self.may_be_behind(node, index)) {
                    let intruder = Some((source, index));
                    let is_new = std::mem::replace(&mut self.last_intruder, intruder) != intruder;
                    return Ok(Some(Received::Intruder(is_new.then(|| self.intrusion(source, index)))));
                }
                self.learn(source, index);
            }
        }
        Ok(Some(Received::Frame(frame)))
    }

    fn intrusion(&self, source: Mac, index: usize) -> String {
        let octets = source.map(|octet| format!("{octet:02x}")).join(":");
        format!("{}: refused: {octets} has a login at another socket", self.attachments[index].name())
    }

    /// Takes a frame to be sent to where its receiver is, or everywhere. It leaves with [`Segment::flush`] at the
    /// latest.
    pub fn send(&mut self, frame: Bytes, now_ns: u64) {
        let one = if let [_] = self.attachments[..] {
            Some(0)
        } else {
            address(&frame, 0).and_then(|receiver| self.behind.get(&receiver).copied())
        };
        if let Some(index) = one {
            self.attachments[index].send(frame, now_ns);
            return;
        }
        for attachment in &mut self.attachments {
            attachment.send(frame.clone(), now_ns);
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self, now_ns: u64) {
        for attachment in &mut self.attachments {
            attachment.flush(now_ns);
        }
    }

    /// Does what is due about once a second; lines on what changed.
    pub fn handle_timeout(&mut self, now_ns: u64) -> Vec<String> {
        self.attachments.iter_mut().filter_map(|one| one.handle_timeout(now_ns)).collect()
    }

    /// Closes all attachments for good.
    pub fn shut(&mut self) {
        for attachment in &mut self.attachments {
            attachment.shut();
        }
    }

    /// Frames that did not pass, of all attachments.
    pub fn losses(&self) -> Losses {
        self.attachments.iter().fold(Losses::default(), |sum, one| {
            let losses = one.losses();
            Losses {
                kernel_drops: sum.kernel_drops + losses.kernel_drops,
                held_too_long: sum.held_too_long + losses.held_too_long,
                unreachable: sum.unreachable + losses.unreachable,
            }
        })
    }

    fn learn(&mut self, source: Mac, index: usize) {
        let is_group = source[0] & 1 != 0;
        if is_group || self.behind.get(&source) == Some(&index) {
            return;
        }
        if self.behind.len() >= ADDRESSES_MAX {
            // Frames to those that are forgotten go everywhere until they send again.
            self.behind.clear();
        }
        self.behind.insert(source, index);
    }
}

/// The Ethernet address at an offset of a frame.
fn address(frame: &Bytes, at: usize) -> Option<Mac> {
    frame.get(at..at + ADDRESS_BYTES)?.try_into().ok()
}
