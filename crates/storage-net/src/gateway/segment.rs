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

/// The attachments, and which addresses are behind which.
#[derive(Debug)]
pub(super) struct Segment {
    attachments: Vec<Attachment>,
    behind: BTreeMap<Mac, usize>,
}

impl Segment {
    pub fn new(attachments: Vec<Attachment>) -> Segment {
        Segment { attachments, behind: BTreeMap::new() }
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

    /// The next frame of an attachment.
    pub fn receive(&mut self, index: usize, now_ns: u64) -> io::Result<Option<Bytes>> {
        let frame = self.attachments[index].receive(now_ns)?;
        if self.attachments.len() > 1 {
            if let Some(source) = frame.as_ref().and_then(|frame| address(frame, ADDRESS_BYTES)) {
                self.learn(source, index);
            }
        }
        Ok(frame)
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
