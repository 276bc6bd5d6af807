//! Messages of the receiver: chunks that it wants, entries that are concluded, streams that ended.

use super::state::{fault, SendEntry, Sender};
use crate::error::CopyError;
use crate::session::lock;
use copy::{Action, EntryKind, FaultKind, FileFault, Message, Outcome, Task, Want, WantChunks, WireError};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Runs of chunks that wait to be sent: a file in the worst order of a resumed copy has some thousand.
const JOBS_MAX: usize = 4 << 20;

impl Sender<'_> {
    /// Takes one message.
    ///
    /// # Errors
    /// It does not fit to what was said before.
    pub fn handle(&self, message: Message) -> Result<(), WireError> {
        match message {
            Message::Wants(wants) => {
                for want in wants {
                    // Many wants of large files take their time.
                    if self.session.is_over() {
                        return Ok(());
                    }
                    self.want(want)?;
                }
                self.work_ready.notify_all();
            }
            Message::Concluded(all) => {
                for (number, outcome) in all {
                    self.concluded(number, outcome)?;
                }
                self.window_open.notify_all();
            }
            Message::Mismatch { number, generation } => {
                if let Some(entry) = self.entry(number, generation) {
                    self.changed(&entry);
                }
            }
            Message::Durable { bytes, frames } => {
                self.session.counters.durable_bytes.store(bytes, Relaxed);
                for (id, count) in frames {
                    self.frames_taken(id, count);
                }
                lock(&self.journal).sync();
            }
            Message::StreamEnded { id, frames } => self.stream_ended(id, frames),
            Message::Finished { root, removed, faults } => return self.finished(root, removed, faults),
            _ => return Err(WireError("a message that a receiver has not")),
        }
        Ok(())
    }

    fn want(&self, want: Want) -> Result<(), WireError> {
        let Some(entry) = self.entry(want.number, want.generation) else {
            let is_announced = want.number < lock(&self.state).announced;
            // It was dropped or begun anew meanwhile.
            return if is_announced { Ok(()) } else { Err(WireError("a want of an entry that is none")) };
        };
        if !matches!(entry.entry.kind, EntryKind::File { .. }) {
            return Err(WireError("a want of what is no file"));
        }
        let count = entry.plan.count();
        let mut runs = match want.chunks {
            WantChunks::All => vec![(0, count)],
            WantChunks::Runs(runs) => runs,
            WantChunks::Compare { begin, hashes } => {
                let end = begin.checked_add(hashes.len() as u64).filter(|&end| end <= count);
                let end = end.filter(|&end| begin < end).ok_or(WireError("a want beyond a file"))?;
                if !self.is_first_comparison(&entry, begin, end) {
                    return Err(WireError("a comparison of the same chunks again"));
                }
                self.mention(&entry, begin, end);
                lock(&self.state).work.push_compare(entry.number, entry.generation, begin, hashes, entry.plan);
                vec![]
            }
        };
        if runs.iter().any(|&(_, end)| end > count) {
            return Err(WireError("a want beyond a file"));
        }
        for &(begin, end) in &runs {
            self.mention(&entry, begin, end);
        }
        if !want.more {
            self.settle(&entry);
        }
        let mut state = lock(&self.state);
        if state.work.jobs() + runs.len() > JOBS_MAX {
            return Err(WireError("more wants than there is to be sent"));
        }
        for (begin, end) in runs.drain(..) {
            let bytes = entry.plan.begin(end).saturating_sub(entry.plan.begin(begin));
            self.session.counters.wanted_bytes.fetch_add(bytes, Relaxed);
            state.work.push(entry.number, entry.generation, begin, end, entry.plan);
        }
        Ok(())
    }

    /// True if these chunks were not spoken of: so hashes that wait here are never more than the files have chunks.
    fn is_first_comparison(&self, entry: &SendEntry, begin: u64, end: u64) -> bool {
        let inner = lock(&entry.inner);
        let is_new = |all: &Vec<bool>| !all[begin as usize..end as usize].contains(&true);
        !inner.is_settled && inner.mentioned.as_ref().is_none_or(is_new)
    }

    /// The receiver wants these chunks: they are hashed when they are read.
    fn mention(&self, entry: &SendEntry, begin: u64, end: u64) {
        let mut inner = lock(&entry.inner);
        let count = entry.plan.count() as usize;
        let mentioned = inner.mentioned.get_or_insert_with(|| vec![false; count]);
        mentioned[begin as usize..end as usize].fill(true);
        for chunk in begin..end {
            inner.hashes.clear(chunk);
        }
        inner.told = None;
    }

    /// The receiver has all other chunks: their hashes come from the journal, or the file is read for them.
    fn settle(&self, entry: &Arc<SendEntry>) {
        let mut unknown = vec![];
        let (mut known, mut there) = (0, 0);
        let file_hash = {
            let mut inner = lock(&entry.inner);
            inner.is_settled = true;
            let mut is_mentioned = inner.mentioned.take().unwrap_or_default();
            is_mentioned.resize(entry.plan.count() as usize, false);
            for (chunk, hash) in std::mem::take(&mut inner.known) {
                if is_mentioned.get(chunk as usize) == Some(&false) && inner.hashes.set(chunk, hash) {
                    there += entry.plan.length(chunk);
                    known += 1;
                }
            }
            for chunk in (0..entry.plan.count()).filter(|&chunk| !is_mentioned[chunk as usize]) {
                if inner.hashes.get(chunk).is_none() {
                    there += entry.plan.length(chunk);
                    unknown.push(chunk);
                }
            }
            let counters = &self.session.counters;
            counters.reused_bytes.fetch_add(there, Relaxed);
            counters.bytes_done.fetch_add(there, Relaxed);
            if known > 0 && inner.hashes.missing() == 0 {
                inner.hashes.file_hash()
            } else {
                None
            }
        };
        let mut state = lock(&self.state);
        for chunk in unknown {
            let (number, generation) = (entry.number, entry.generation);
            state.work.push_hash(Task { number, generation, chunk, action: Action::Hash });
        }
        drop(state);
        if let Some(hash) = file_hash {
            self.complete(entry, hash, None);
        }
    }

    fn concluded(&self, number: u64, outcome: Outcome) -> Result<(), WireError> {
        let mut state = lock(&self.state);
        let Some(entry) = state.entries.remove(&number) else {
            // Left out at this end meanwhile.
            return if number < state.announced { Ok(()) } else { Err(WireError("the end of an entry that is none")) };
        };
        match outcome {
            Outcome::Done { was_there, hash, metadata } => {
                let told = lock(&entry.inner).told;
                if let (Some(told), Some(hash)) = (told, hash) {
                    if told != hash {
                        return Err(WireError("another hash of a file than it has"));
                    }
                }
                if let Some(rows) = &mut state.manifest {
                    rows.done(number, &entry.entry, entry.first.as_deref(), hash);
                }
                drop(state);
                self.session.count_done(&entry.entry.kind, was_there);
                if let Some(reason) = metadata {
                    self.session.fault(fault(&entry.entry, FaultKind::Metadata, reason));
                }
            }
            Outcome::Fault { kind, reason } => {
                self.left_out(&mut state, number);
                drop(state);
                self.session.fault(fault(&entry.entry, kind, copy::show_bytes(reason.as_bytes())));
            }
        }
        Ok(())
    }

    fn frames_taken(&self, id: u32, count: u64) {
        let Some(frames) = lock(&self.streams).get(&id).cloned() else { return };
        let mut frames = lock(&frames.inner);
        while frames.taken < count && frames.tasks.pop_front().is_some() {
            frames.taken += 1;
        }
    }

    /// Frames that the receiver did not take from a stream are sent again, on others.
    fn stream_ended(&self, id: u32, count: u64) {
        self.frames_taken(id, count);
        let Some(frames) = lock(&self.streams).remove(&id) else { return };
        let lost: Vec<Task> = {
            let mut frames = lock(&frames.inner);
            frames.has_ended = true;
            frames.tasks.drain(..).collect()
        };
        let mut state = lock(&self.state);
        lost.into_iter().for_each(|task| state.work.push_again(task));
        drop(state);
        self.session.remove_stream(id);
        self.work_ready.notify_all();
    }

    fn finished(
        &self,
        root: [u8; 32],
        removed: u64,
        faults: Vec<(String, FaultKind, String)>,
    ) -> Result<(), WireError> {
        {
            let state = lock(&self.state);
            let concluded = state.manifest.as_ref().map_or(0, |rows| rows.concluded());
            if state.end != Some(concluded) {
                return Err(WireError("the end of a copy that is not done"));
            }
            if state.manifest.as_ref().is_some_and(|rows| rows.root() != root) {
                return Err(WireError("another root of the copy"));
            }
        }
        self.session.counters.removed.store(removed, Relaxed);
        for (path, kind, reason) in faults {
            let show = |text: String| copy::show_bytes(text.as_bytes());
            // It is shown already, if the other end is honest.
            let path = if copy::parse_shown_path(&path).is_some() { path } else { show(path) };
            self.session.fault(FileFault { path, kind, reason: show(reason) });
        }
        self.session.say(&Message::Bye);
        self.session.settle();
        Ok(())
    }

    /// After all threads have ended. Returns root and manifest of a copy that is done; what is durable stays noted if
    /// not.
    ///
    /// # Errors
    /// `Io`: the manifest cannot be written.
    pub fn close(self, is_done: bool) -> Result<([u8; 32], String), CopyError> {
        let mut journal = self.journal.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let state = self.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        match state.manifest {
            Some(rows) if is_done => {
                let root = rows.root();
                let path = rows.keep()?;
                journal.remove();
                Ok((root, path))
            }
            _ => {
                journal.sync();
                Ok(([0; 32], String::new()))
            }
        }
    }
}
