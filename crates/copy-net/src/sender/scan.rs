//! The walk over the sources: entries are announced as they are found, without waiting for answers.

use super::state::{fault, without_extents, SendEntry, Sender, WINDOW};
use crate::destination::path_hash;
use crate::session::{lock, wait, GLANCE};
use crate::source::SourceTree;
use copy::{EntryKind, Event, FaultKind, Message, WireEntry, ENTRIES_MAX, HASHES_MAX};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Bytes of entries in one message, about.
const BATCH_BYTES: usize = 128 << 10;
/// An entry waits no longer than that for others.
const BATCH_NS: u64 = 20_000_000;
/// Between two events `scanned`.
const SCANNED_NS: u64 = 500_000_000;

/// Entries that are not announced yet, numbered one after the other.
struct Batch {
    first: u64,
    wire: Vec<WireEntry>,
    bytes: usize,
    since_ns: u64,
}

impl Sender<'_> {
    /// Walks to the end.
    pub fn scan(&self, mut tree: SourceTree) {
        let mut batch = Batch { first: 0, wire: vec![], bytes: 0, since_ns: path_net::monotonic_ns() };
        let mut count = 0;
        let mut is_complete = true;
        let mut told_ns = path_net::monotonic_ns();
        while !self.session.is_over() {
            let found = tree.next();
            tree.take_notes().into_iter().for_each(|text| self.session.event(Event::Note { text }));
            self.tell_left_out(&tree.take_left_out());
            let Some(found) = found else {
                tree.left_out_notes().into_iter().for_each(|text| self.session.event(Event::Note { text }));
                self.announce(&mut batch);
                *lock(&self.session.mounts) = tree.mounts().to_vec();
                lock(&self.state).end = Some(count);
                self.session.say(&Message::End { entries: count, complete: is_complete });
                self.scanned(true);
                return;
            };
            let (number, entry) = match found {
                Ok(found) => found,
                Err(fault) => {
                    is_complete = false;
                    self.session.fault(fault);
                    continue;
                }
            };
            count = number + 1;
            let first = match entry.kind {
                EntryKind::HardLink { to } => tree.first_path(to),
                _ => None,
            };
            let wire = WireEntry {
                entry,
                first,
                content_left_out: tree.content_left_out(),
                is_source_link: tree.is_source_link(),
            };
            if let Some(reason) = wire.exceeds() {
                is_complete = false;
                self.announce(&mut batch);
                let mut state = lock(&self.state);
                self.left_out(&mut state, number);
                state.announced = number + 1;
                drop(state);
                self.session.fault(fault(&wire.entry, FaultKind::Unreadable, reason.clone()));
                self.session.say(&Message::Dropped { number, kind: FaultKind::Unreadable, reason });
                continue;
            }
            if batch.wire.is_empty() {
                batch.first = number;
            }
            batch.bytes += 128 + wire.entry.path.iter().map(Vec::len).sum::<usize>();
            batch.bytes += wire.entry.xattrs.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
            batch.wire.push(wire);
            let now_ns = path_net::monotonic_ns();
            let is_due = now_ns - batch.since_ns > BATCH_NS;
            if is_due || batch.bytes > BATCH_BYTES || batch.wire.len() >= ENTRIES_MAX {
                self.announce(&mut batch);
            }
            if now_ns - told_ns > SCANNED_NS {
                told_ns = now_ns;
                self.scanned(false);
            }
        }
    }

    /// Tells the receiver which names `mirror` has to leave.
    fn tell_left_out(&self, paths: &[Vec<Vec<u8>>]) {
        if self.options.mirror {
            let hashes: Vec<u64> = paths.iter().map(|path| path_hash(path)).collect();
            hashes.chunks(HASHES_MAX).for_each(|some| self.session.say(&Message::LeftOut(some.to_vec())));
        }
    }

    fn scanned(&self, complete: bool) {
        let counters = &self.session.counters;
        let (files, bytes) = (counters.files_total.load(Relaxed), counters.bytes_total.load(Relaxed));
        self.session.event(Event::Scanned { files, bytes, complete });
    }

    /// Announces a batch, when the receiver is not too far behind.
    fn announce(&self, batch: &mut Batch) {
        batch.bytes = 0;
        batch.since_ns = path_net::monotonic_ns();
        if batch.wire.is_empty() || !self.session.wait_said() {
            return;
        }
        let mut entries = std::mem::take(&mut batch.wire);
        let made: Vec<Arc<SendEntry>> = (batch.first..)
            .zip(&entries)
            .map(|(number, wire)| Arc::new(self.new_entry(number, wire.clone(), 0)))
            .collect();
        let counters = &self.session.counters;
        for wire in &entries {
            if let EntryKind::File { size, .. } = wire.entry.kind {
                counters.files_total.fetch_add(1, Relaxed);
                counters.bytes_total.fetch_add(size, Relaxed);
            }
        }
        let mut state = lock(&self.state);
        while state.announced.saturating_sub(state.manifest.as_ref().map_or(0, |rows| rows.concluded())) >= WINDOW {
            if self.session.is_over() {
                return;
            }
            state = wait(&self.window_open, state, GLANCE);
        }
        for entry in made {
            state.announced = entry.number + 1;
            state.entries.insert(entry.number, entry);
        }
        drop(state);
        entries.iter_mut().for_each(|wire| without_extents(&mut wire.entry));
        self.session.say(&Message::Entries { first: batch.first, entries });
    }
}
