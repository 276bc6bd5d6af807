//! Commits: what is written is synced, then noted in the journal, then acknowledged; whole files get their names.

use super::state::{Commit, ReceiveFile, Receiver, Written, COMMIT_BYTES, DAMAGED_MAX};
use crate::destination::{Base, Kept, Part};
use crate::error::{CopyError, ErrorKind};
use crate::journal_file::JournalFile;
use crate::session::{lock, wait, GLANCE};
use copy::{plural, Event, FaultKind, FileKey, Message, Outcome, Record, PIECE_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar};
use std::time::Duration;

/// Age of the oldest chunk that makes a commit due.
const COMMIT_NS: u64 = 1_000_000_000;
/// Between two commits while nothing is wanted: a line that is slower than the disk is no reason to sync each file.
const IDLE_NS: u64 = 100_000_000;

/// One commit's work.
#[derive(Default)]
struct Batch {
    records: Vec<u8>,
    /// `Begin` records that are written when these are, as `Commit` counts them.
    begun: u64,
    chunks: Vec<Written>,
    whole: Vec<Arc<ReceiveFile>>,
}

impl Receiver<'_> {
    /// All chunks are here and the sender has told the file's hash: it can be finished, if the hashes agree.
    pub(super) fn check_whole(&self, file: &Arc<ReceiveFile>) {
        {
            let mut inner = lock(&file.inner);
            let Some(told) = inner.told else { return };
            if inner.is_whole || inner.is_gone || inner.hashes.missing() > 0 || inner.taking > 0 {
                return;
            }
            if inner.hashes.file_hash() != Some(told) {
                inner.told = None;
                inner.damaged += 1;
                let times = inner.damaged;
                drop(inner);
                if times > DAMAGED_MAX {
                    let reason = format!("its hash was wrong {}", plural(times.into(), "time"));
                    return self.unwritable(file, FaultKind::Unwritable, reason);
                }
                let (number, generation) = (file.number, file.generation);
                self.session.say(&Message::Mismatch { number, generation });
                return;
            }
            inner.is_whole = true;
            let base = inner.base.filter(|_| inner.part.is_none() && file.base == Base::Existing);
            drop(inner);
            if let Some(Kept::Yes(metadata)) = base.map(|base| self.destination.keep(&file.entry, base)) {
                lock(&file.inner).is_gone = true;
                let outcome = Outcome::Done { was_there: true, hash: Some(told), metadata };
                self.conclude(file.number, &file.entry, None, outcome);
                self.commit_ready.notify_all();
                return;
            }
        }
        // The file at the destination has all chunks and is not kept: all are taken over into a part.
        match self.try_entry(|| self.part(file)) {
            Some(Ok(Some(_))) => {}
            Some(Err(fault)) => return self.unwritable(file, fault.kind, fault.reason),
            // The disk is full, for example: the part lacks chunks.
            Some(Ok(None)) | None => return,
        }
        let mut commit = lock(&self.commit);
        if commit.chunks.is_empty() && commit.whole.is_empty() {
            commit.since_ns = path_net::monotonic_ns();
        }
        commit.whole.push(file.clone());
        drop(commit);
        self.commit_ready.notify_one();
    }

    /// Commits until the copy is over.
    pub fn run_commits(&self) {
        let mut is_closed = false;
        while let Some(batch) = self.next_batch() {
            if !batch.chunks.is_empty() || !batch.whole.is_empty() {
                if let Err(error) = self.commit(batch) {
                    self.session.fail(error);
                }
                let mut commit = lock(&self.commit);
                commit.is_busy = false;
                commit.last_ns = path_net::monotonic_ns();
                self.commit_done.notify_all();
            }
            if !is_closed && self.is_all_concluded() {
                is_closed = true;
                self.finish_copy();
            }
        }
    }

    fn is_all_concluded(&self) -> bool {
        let mut state = lock(&self.state);
        self.tell_concluded(&mut state);
        state.manifest.as_ref().is_some_and(|rows| state.end == Some(rows.concluded()))
    }

    /// Waits for a commit to be due, or for a moment; None: the copy is over.
    fn next_batch(&self) -> Option<Batch> {
        let is_idle = {
            let state = lock(&self.state);
            (state.wanted_chunks == 0, state.end.is_some())
        };
        let mut commit = lock(&self.commit);
        if self.session.is_over() {
            return None;
        }
        if !self.is_due(&commit, is_idle) {
            let pause =
                if commit.chunks.is_empty() && commit.whole.is_empty() { GLANCE } else { Duration::from_millis(20) };
            commit = wait(&self.commit_ready, commit, pause);
            if !self.is_due(&commit, is_idle) {
                return Some(Batch::default());
            }
        }
        commit.is_busy = true;
        commit.bytes = 0;
        Some(Batch {
            records: std::mem::take(&mut commit.records),
            begun: commit.begun,
            chunks: std::mem::take(&mut commit.chunks),
            whole: std::mem::take(&mut commit.whole),
        })
    }

    fn is_due(&self, commit: &Commit, (nothing_wanted, has_end): (bool, bool)) -> bool {
        if commit.chunks.is_empty() && commit.whole.is_empty() {
            return false;
        }
        let now_ns = path_net::monotonic_ns();
        commit.bytes >= COMMIT_BYTES
            || commit.open_parts >= self.parts_max / 2
            || now_ns - commit.since_ns >= COMMIT_NS
            || nothing_wanted && (has_end || now_ns - commit.last_ns >= IDLE_NS)
    }

    fn commit(&self, mut batch: Batch) -> Result<(), CopyError> {
        let mut parts: BTreeMap<u64, (Arc<ReceiveFile>, Arc<Part>)> = BTreeMap::new();
        for file in batch.chunks.iter().map(|written| &written.file).chain(&batch.whole) {
            if let Some(part) = lock(&file.inner).part.clone() {
                parts.entry(file.number).or_insert_with(|| (file.clone(), part));
            }
        }
        // Before any chunk counts as durable: a chunk was taken over before its base is looked at here.
        let lost: BTreeSet<u64> = parts
            .iter()
            .filter(|(_, (file, part))| !self.has_its_base(file, part, &mut batch.records))
            .map(|(&number, _)| number)
            .collect();
        batch.chunks.retain(|written| !lost.contains(&written.file.number));
        batch.whole.retain(|file| match parts.get(&file.number) {
            Some((_, part)) => {
                !lost.contains(&file.number) && (!self.options.verify_read || self.has_its_length(file, part))
            }
            None => false,
        });
        if self.options.verify_read {
            let whole: Vec<&Part> =
                batch.whole.iter().filter_map(|file| parts.get(&file.number)).map(|(_, part)| &**part).collect();
            self.sync(&whole)?;
            batch.whole.retain(|file| match parts.get(&file.number) {
                Some((_, part)) => self.is_as_written(file, part, &mut batch.records),
                None => false,
            });
        }
        // Size and metadata first: one sync makes them durable with the data.
        let mut metadata = BTreeMap::new();
        batch.whole.retain(|file| {
            let Some((_, part)) = parts.get(&file.number) else { return false };
            match self.destination.seal(part, &file.entry) {
                Ok(fault) => {
                    metadata.extend(fault.map(|fault| (file.number, fault.reason)));
                    true
                }
                Err(fault) => {
                    parts.remove(&file.number);
                    self.unwritable(file, fault.kind, fault.reason);
                    false
                }
            }
        });
        let all: Vec<&Part> = parts.values().map(|(_, part)| &**part).collect();
        self.sync(&all)?;
        let bytes = self.note(&mut batch)?;
        for written in &batch.chunks {
            let mut inner = lock(&written.file.inner);
            inner.durable += 1;
            if written.file.plan.count() > 1 {
                if let Some(part) = &inner.part {
                    let begin = written.file.plan.begin(written.chunk);
                    part.release(begin, begin + written.file.plan.length(written.chunk));
                }
            }
        }
        drop(parts);
        self.session.counters.durable_bytes.fetch_add(bytes, Relaxed);
        self.finish_files(&batch.whole, &mut metadata);
        let frames = lock(&self.streams).iter().map(|(&id, frames)| (id, frames.load(Relaxed))).collect();
        self.tell_concluded(&mut lock(&self.state));
        let bytes = self.session.counters.durable_bytes.load(Relaxed);
        self.session.say(&Message::Durable { bytes, frames });
        Ok(())
    }

    fn sync(&self, parts: &[&Part]) -> Result<(), CopyError> {
        if parts.is_empty() {
            return Ok(());
        }
        self.destination.sync(parts).map_err(|error| self.disk_error(&error, "sync"))
    }

    fn disk_error(&self, error: &std::io::Error, what: &str) -> CopyError {
        if crate::names::is_full(error) {
            return self.destination.full(lock(&self.state).wanted_bytes);
        }
        let folder = self.destination.state_folder().display();
        CopyError { kind: ErrorKind::Io, text: format!("{folder}: {what}: {error}") }
    }

    /// Notes the chunks in the journal, durably; returns their bytes.
    fn note(&self, batch: &mut Batch) -> Result<u64, CopyError> {
        let mut by_file: BTreeMap<FileKey, (u64, Vec<(u64, copy::ChunkHash)>)> = BTreeMap::new();
        let mut bytes = 0;
        for written in &batch.chunks {
            if !lock(&written.file.inner).is_gone {
                let length = written.file.plan.length(written.chunk);
                let known = by_file.entry(written.file.key).or_default();
                known.0 += length;
                known.1.push((written.chunk, written.hash));
                bytes += length;
            }
        }
        let mut records = std::mem::take(&mut batch.records);
        let commit_begun = batch.begun;
        for (key, (bytes, chunks)) in by_file {
            Record::Chunks { key, bytes, chunks }.encode(&mut records);
        }
        self.journal(records, commit_begun)?;
        Ok(bytes)
    }

    /// Appends records to the journal and syncs it; `begun`: see `Batch`.
    fn journal(&self, records: Vec<u8>, begun: u64) -> Result<(), CopyError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut commit = lock(&self.commit);
        // Streams may go on while the disk works: the journal is taken out for the time.
        let journal = loop {
            match commit.journal.take() {
                Some(journal) => break journal,
                None if self.session.is_over() => {
                    return Err(CopyError { kind: ErrorKind::Stopped, text: "stopped".into() });
                }
                None => commit = wait(&self.commit_done, commit, GLANCE),
            }
        };
        drop(commit);
        self.write_journal(journal, &records, begun)
    }

    /// Writes to the journal that was taken out, and puts it back.
    fn write_journal(&self, mut journal: JournalFile, records: &[u8], begun: u64) -> Result<(), CopyError> {
        let result = self.with_room(|| journal.append(records)).and_then(|()| journal.sync());
        let mut commit = lock(&self.commit);
        commit.journal = Some(journal);
        if result.is_ok() {
            commit.begun_durable = commit.begun_durable.max(begun);
        }
        drop(commit);
        self.commit_done.notify_all();
        result.map_err(|error| self.disk_error(&error, "journal"))
    }

    /// Makes it durable that earlier records of a file count no more, if there are any. False: the copy is over.
    pub(super) fn has_begun(&self, file: &ReceiveFile) -> bool {
        let begun = file.begun.load(Relaxed);
        if begun == 0 {
            return true;
        }
        let mut commit = lock(&self.commit);
        while begun > commit.begun_durable {
            // A commit that has begun may still write records of the file's earlier part: they come first.
            let journal = if commit.is_busy { None } else { commit.journal.take() };
            let Some(journal) = journal else {
                if self.session.is_over() {
                    return false;
                }
                commit = wait(&self.commit_done, commit, GLANCE);
                continue;
            };
            // Records of all files that wait, with the journal: what is taken later is written later.
            let (records, all) = (std::mem::take(&mut commit.records), commit.begun);
            drop(commit);
            if let Err(error) = self.write_journal(journal, &records, all) {
                self.session.fail(error);
                return false;
            }
            commit = lock(&self.commit);
        }
        true
    }

    /// Whole, checked and synced files get their names.
    fn finish_files(&self, whole: &[Arc<ReceiveFile>], metadata: &mut BTreeMap<u64, String>) {
        let mut parts = vec![];
        let mut files = vec![];
        for file in whole {
            let taken = {
                let mut inner = lock(&file.inner);
                // Begun anew meanwhile.
                if inner.is_gone {
                    continue;
                }
                inner.is_gone = true;
                inner.part.take()
            };
            match taken.and_then(super::state::alone) {
                Some(part) => {
                    parts.push((part, &file.entry));
                    files.push(file);
                }
                None => {
                    let reason = "a stream does not let go of it".to_string();
                    self.conclude(
                        file.number,
                        &file.entry,
                        None,
                        Outcome::Fault { kind: FaultKind::Unwritable, reason },
                    );
                }
            }
        }
        let count = parts.len();
        let results = if parts.is_empty() { vec![] } else { self.destination.finish(parts) };
        {
            let mut commit = lock(&self.commit);
            commit.open_parts = commit.open_parts.saturating_sub(count);
        }
        for (file, result) in files.into_iter().zip(results) {
            let (told, came) = {
                let inner = lock(&file.inner);
                (inner.told, inner.came)
            };
            let outcome = match result {
                Ok(()) => Outcome::Done {
                    was_there: came == 0 && file.plan.size() > 0,
                    hash: told,
                    metadata: metadata.remove(&file.number),
                },
                Err(fault) => Outcome::Fault { kind: fault.kind, reason: fault.reason },
            };
            self.conclude(file.number, &file.entry, None, outcome);
        }
    }

    /// Reads a synced part back from its disk; chunks that are not what was written are wanted again.
    fn is_as_written(&self, file: &Arc<ReceiveFile>, part: &Part, records: &mut Vec<u8>) -> bool {
        part.release(0, file.plan.size());
        let mut buffer = vec![0; PIECE_BYTES];
        let mut wrong = vec![];
        for chunk in 0..file.plan.count() {
            let mut hasher = file.plan.hasher(chunk);
            let (mut at, end) = (file.plan.begin(chunk), file.plan.begin(chunk) + file.plan.length(chunk));
            let mut is_read = true;
            while at < end && is_read {
                let step = (end - at).min(PIECE_BYTES as u64) as usize;
                is_read = part.read_at(at, &mut buffer[..step]).is_ok();
                hasher.update(&buffer[..step]);
                at += step as u64;
            }
            if !is_read || lock(&file.inner).hashes.get(chunk) != Some(hasher.finish()) {
                wrong.push(chunk);
            }
            if self.session.is_over() {
                return false;
            }
        }
        if wrong.is_empty() {
            return true;
        }
        let count = wrong.len();
        if self.lose_chunks(file, wrong, records) > 3 {
            self.unwritable(file, FaultKind::Unwritable, "the disk does not keep what is written".into());
        } else {
            let path = copy::show_path(&file.entry.path);
            let are = if count == 1 { "is" } else { "are" };
            let chunks = plural(count as u64, "chunk");
            self.session.retry(format!("{path}: {chunks} {are} not on the disk as written"));
        }
        false
    }

    /// False: another process has written to the file that chunks were taken over from, and the chunks that are here
    /// are requested from the sender.
    fn has_its_base(&self, file: &Arc<ReceiveFile>, part: &Part, records: &mut Vec<u8>) -> bool {
        let mut inner = lock(&file.inner);
        let is_base = |base| !part.took_from_another(base);
        if inner.base_changed || inner.base.is_none_or(is_base) {
            return true;
        }
        inner.base_changed = true;
        // Another thread may be copying a chunk from the base: it must not overwrite the chunk that is sent instead.
        while inner.taking > 0 && !self.session.is_over() {
            inner = wait(&Condvar::new(), inner, GLANCE);
        }
        let chunks = (0..file.plan.count()).filter(|&chunk| inner.hashes.get(chunk).is_some()).collect();
        drop(inner);
        let path = copy::show_path(&file.entry.path);
        self.session.retry(format!("{path}: another process has changed it at the destination: it is sent whole"));
        self.lose_chunks(file, chunks, records);
        false
    }

    /// Gives a part its length: a hole at its end is read back too.
    fn has_its_length(&self, file: &Arc<ReceiveFile>, part: &Part) -> bool {
        match self.with_room(|| part.set_len(file.plan.size())) {
            Ok(()) => true,
            Err(error) => {
                if !self.is_fatal(&error) {
                    self.unwritable(file, FaultKind::Unwritable, error.to_string());
                }
                false
            }
        }
    }

    /// Requests chunks again that the part does not have; returns how often this file was damaged.
    fn lose_chunks(&self, file: &Arc<ReceiveFile>, chunks: Vec<u64>, records: &mut Vec<u8>) -> u32 {
        let times = {
            let mut inner = lock(&file.inner);
            chunks.iter().for_each(|&chunk| inner.hashes.clear(chunk));
            inner.is_whole = false;
            inner.told = None;
            inner.damaged += 1;
            inner.damaged
        };
        Record::Lost { key: file.key, chunks: chunks.clone() }.encode(records);
        {
            let mut state = lock(&self.state);
            state.wanted_chunks += chunks.len() as u64;
            state.wanted_bytes += chunks.iter().map(|&chunk| file.plan.length(chunk)).sum::<u64>();
        }
        self.want_again(file, chunks.into_iter().map(|chunk| (chunk, chunk + 1)).collect());
        times
    }

    /// All entries are concluded: folders get their times, `mirror` removes, all is durable; then the sender is told.
    fn finish_copy(&self) {
        let complete = !self.session.has_faults() && lock(&self.state).is_complete;
        match self.destination.close(complete) {
            Err(error) => self.session.fail(error),
            Ok(closed) => {
                let root = lock(&self.state).manifest.as_ref().map_or([0; 32], |rows| rows.root());
                self.session.counters.removed.store(closed.removed, Relaxed);
                *lock(&self.removals) = closed.removals;
                closed.notes.into_iter().for_each(|text| self.session.event(Event::Note { text }));
                let mut faults = vec![];
                for fault in closed.faults {
                    // A message holds a megabyte.
                    if faults.len() < 100 {
                        faults.push((fault.path.clone(), fault.kind, fault.reason.clone()));
                    }
                    self.session.fault(fault.into());
                }
                self.session.say(&Message::Finished { root, removed: closed.removed, faults });
            }
        }
    }
}
