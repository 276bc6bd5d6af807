//! Messages of the sender: entries, for each of which the receiver decides its need; hashes, changes, ends.

use super::state::{fault, made, ReceiveFile, Receiver, State};
use crate::destination::{Base, Existing, Part};
use crate::session::lock;
use copy::{
    DeltaMode, Entry, EntryKind, FaultKind, FileKey, Message, Outcome, Plan, Want, WantChunks, WireEntry, WireError,
};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Entries that are not concluded, without a gap: the sender stops at half of them.
const OPEN_ENTRIES_MAX: u64 = 2 * 65_536;
/// Runs of chunks in one want.
const RUNS_MAX: usize = 4096;
/// Wants in one message.
const WANTS_MAX: usize = 16;

impl Receiver<'_> {
    /// Takes one message.
    ///
    /// # Errors
    /// It does not fit to what was said before.
    pub fn handle(&self, message: Message) -> Result<(), WireError> {
        match message {
            Message::Entries { first, entries } => self.entries(first, entries)?,
            Message::End { entries, complete } => {
                let mut state = lock(&self.state);
                if state.end.is_some() || entries != state.announced {
                    return Err(WireError("another number of entries than came"));
                }
                state.end = Some(entries);
                state.is_complete = complete;
                drop(state);
                self.commit_ready.notify_all();
            }
            Message::FileHash { number, generation, hash } => {
                if let Some(file) = self.file(number).filter(|file| file.generation == generation) {
                    lock(&file.inner).told = Some(hash);
                    self.check_whole(&file);
                }
            }
            Message::Again { number, generation, entry } => self.again(number, generation, *entry)?,
            Message::Dropped { number, kind, reason } => self.dropped(number, kind, &reason)?,
            Message::LeftOut(paths) => self.destination.leave_out(paths),
            Message::StreamLost { id } => {
                self.session.remove_stream(id);
                // It never came to this end, so its frames did not either.
                if !lock(&self.streams).contains_key(&id) {
                    self.session.say(&Message::StreamEnded { id, frames: 0 });
                }
            }
            Message::Bye => self.session.succeed(),
            _ => return Err(WireError("a message that a sender has not")),
        }
        Ok(())
    }

    fn entries(&self, first: u64, entries: Vec<WireEntry>) -> Result<(), WireError> {
        let mut wants = vec![];
        if first != lock(&self.state).announced {
            return Err(WireError("an entry out of order"));
        }
        for (number, WireEntry { entry, first, content_left_out, is_source_link }) in (first..).zip(entries) {
            {
                let mut state = lock(&self.state);
                if number != state.announced || state.end.is_some() {
                    return Err(WireError("an entry out of order"));
                }
                let concluded = state.manifest.as_ref().map_or(0, |rows| rows.concluded());
                if number - concluded > OPEN_ENTRIES_MAX {
                    return Err(WireError("more entries than it may before answers"));
                }
                state.announced += 1;
            }
            if let EntryKind::File { size, .. } = entry.kind {
                self.session.counters.files_total.fetch_add(1, Relaxed);
                self.session.counters.bytes_total.fetch_add(size, Relaxed);
            }
            if content_left_out {
                self.destination.leave_content(&entry);
            }
            if is_source_link {
                self.destination.leave_folder(&entry);
            }
            self.entry(number, entry, first, &mut wants)?;
            if self.session.is_over() {
                return Ok(());
            }
        }
        self.say_wants(wants);
        self.tell_concluded(&mut lock(&self.state));
        self.commit_ready.notify_all();
        Ok(())
    }

    /// Tells what is wanted, in messages that keep their bound.
    pub(super) fn say_wants(&self, wants: Vec<Want>) {
        let mut said: Vec<Want> = vec![];
        let mut runs = 0;
        for want in wants {
            let WantChunks::Runs(all) = &want.chunks else {
                said.push(want);
                continue;
            };
            let parts = all.len().div_ceil(RUNS_MAX);
            runs += all.len();
            for (at, part) in all.chunks(RUNS_MAX).enumerate() {
                let chunks = WantChunks::Runs(part.to_vec());
                said.push(Want { more: want.more || at + 1 < parts, chunks, ..want });
            }
            if all.is_empty() {
                said.push(want);
            }
        }
        let step = if runs > RUNS_MAX { WANTS_MAX } else { said.len().max(1) };
        for part in said.chunks(step) {
            self.session.say(&Message::Wants(part.to_vec()));
        }
    }

    fn entry(
        &self,
        number: u64,
        entry: Entry,
        first: Option<Vec<Vec<u8>>>,
        wants: &mut Vec<Want>,
    ) -> Result<(), WireError> {
        let existing = match self.try_entry(|| self.destination.look(&entry, first.as_deref())) {
            None => return Ok(()),
            Some(Ok(existing)) => existing,
            Some(Err(fault)) => {
                let outcome = Outcome::Fault { kind: fault.kind, reason: fault.reason };
                self.conclude(number, &entry, first.as_deref(), outcome);
                return Ok(());
            }
        };
        match (&entry.kind, first) {
            (EntryKind::File { .. }, _) => {
                wants.extend(self.file_entry(number, entry, existing));
                return Ok(());
            }
            (EntryKind::HardLink { to }, Some(first)) => {
                let to = *to;
                if to >= number {
                    return Err(WireError("a hard link to what comes later"));
                }
                let mut state = lock(&self.state);
                if state.files.contains_key(&to) {
                    state.links.entry(to).or_default().push((number, entry, first));
                    return Ok(());
                }
                // Its first name may have been given to another file after the first look.
                let is_linked = existing == Existing::Same
                    && !state.left_out.contains(&to)
                    && !state.replaced.contains(&to)
                    && self.destination.look(&entry, Some(&first)) == Ok(Existing::Same);
                let outcome = match is_linked {
                    true => there(None),
                    false => self.make_link(&state, to, &entry, &first),
                };
                self.conclude_in(&mut state, number, &entry, Some(&first), outcome);
            }
            _ => {
                let outcome = match (existing, &entry.kind) {
                    (Existing::Same, kind) if *kind != EntryKind::Folder => there(None),
                    (existing, kind) => {
                        let Some(result) = self.try_entry(|| self.destination.make(&entry, None)) else {
                            return Ok(());
                        };
                        // The destination sets times and mode of each announced folder at the end.
                        match existing == Existing::Same && *kind == EntryKind::Folder {
                            true => was_there(made(result)),
                            false => made(result),
                        }
                    }
                };
                self.conclude(number, &entry, None, outcome);
            }
        }
        Ok(())
    }

    /// Decides what is needed of a file.
    fn file_entry(&self, number: u64, entry: Entry, existing: Existing) -> Option<Want> {
        let EntryKind::File { size, .. } = entry.kind else { return None };
        let plan = Plan::new(size, self.options.chunk_bytes);
        let known = lock(&self.state).index.remove(&FileKey::new(&entry, plan.chunk_bytes()));
        let written = whole_hash(&plan, &known);
        // A file that an earlier attempt of this copy wrote was checked then; an empty file has no bytes to read.
        let is_unread = written.is_none() && size > 0;
        let hash = written.or_else(|| self.known.get(&entry));
        let outcome = match existing {
            Existing::Same => Some(there(hash)),
            Existing::SameContent => {
                let metadata = self.destination.adjust(&entry).err().map(|fault| fault.reason);
                Some(Outcome::Done { was_there: true, hash, metadata })
            }
            Existing::Linkable => match self.destination.link_older(&entry) {
                Ok(()) => Some(there(hash)),
                // Too many links, for example: it is copied from there instead.
                Err(_) => None,
            },
            _ => None,
        };
        if let Some(outcome) = outcome {
            if is_unread {
                self.session.counters.unread_files.fetch_add(1, Relaxed);
            }
            self.conclude(number, &entry, None, outcome);
            return None;
        }
        if !known.is_empty() && self.destination.part_size(&entry).is_some() {
            if let Some(want) = self.resume(number, &entry, &known) {
                return Some(want);
            }
        }
        let base = match existing {
            Existing::Differs { size } if size > 0 => Base::Existing,
            Existing::Older { size } if size > 0 => Base::Older,
            Existing::Linkable => Base::Older,
            _ => Base::Nothing,
        };
        let is_delta = self.options.delta == DeltaMode::Chunks && base != Base::Nothing && size > 0;
        // One chunk that differs is sent whole anyway; its hash would cost a read and a round trip.
        let is_delta = is_delta && (plan.count() > 1 || self.options.checksum);
        let base = if is_delta { base } else { Base::Nothing };
        let has_records = !known.is_empty();
        let file = Arc::new(ReceiveFile::new(number, 0, entry, base, &self.options));
        if has_records {
            self.note_begin(&file);
        }
        self.add_file(&file, plan.count(), size);
        if is_delta {
            lock(&self.delta).push_back(file);
            self.delta_ready.notify_all();
            return None;
        }
        Some(Want { number, generation: 0, more: false, chunks: WantChunks::All })
    }

    fn add_file(&self, file: &Arc<ReceiveFile>, chunks: u64, bytes: u64) {
        let mut state = lock(&self.state);
        // The other end says how large its files are.
        state.wanted_chunks = state.wanted_chunks.saturating_add(chunks);
        state.wanted_bytes = state.wanted_bytes.saturating_add(bytes);
        state.files.insert(file.number, file.clone());
    }

    /// Earlier records of the file count no more. Its new part is made only after that is durable
    /// ([`Receiver::has_begun`]): the records would be taken for those of the new part.
    fn note_begin(&self, file: &ReceiveFile) {
        let mut commit = lock(&self.commit);
        copy::Record::Begin { key: file.key }.encode(&mut commit.records);
        commit.begun += 1;
        file.begun.store(commit.begun, Relaxed);
    }

    /// Takes the part of an earlier attempt; None: it is not there any more.
    fn resume(&self, number: u64, entry: &Entry, known: &[(u64, copy::ChunkHash)]) -> Option<Want> {
        let file = Arc::new(ReceiveFile::new(number, 0, entry.clone(), Base::Resume, &self.options));
        // Before its part is open: a full disk removes parts of other entries.
        lock(&self.state).files.insert(number, file.clone());
        let part = match self.destination.begin(number, entry, Base::Resume) {
            Ok(part) if self.is_device || has_length_of(&part, &file.plan, known) => part,
            _ => {
                lock(&self.state).files.remove(&number);
                return None;
            }
        };
        let mut inner = lock(&file.inner);
        let mut bytes = 0;
        // A device may have changed since the last journal record, and a part may have been cut and extended.
        let doubted = match self.is_device {
            true => known_chunks(&file.plan, known),
            false => in_doubt(&part, entry, &file.plan, known),
        };
        let mut there = copy::ChunkHashes::new(&file.plan);
        for &(chunk, hash) in known.iter().filter(|(chunk, _)| *chunk < file.plan.count()) {
            there.set(chunk, hash);
            if doubted.binary_search(&chunk).is_err() && inner.hashes.set(chunk, hash) {
                bytes += file.plan.length(chunk);
                inner.durable += 1;
            }
        }
        inner.part = Some(Arc::new(part));
        lock(&self.commit).open_parts += 1;
        // Doubted chunks are compared after the others were asked for.
        let runs = there.missing_runs();
        let missing = inner.hashes.missing();
        let is_doubted = !doubted.is_empty();
        inner.doubted = doubted;
        drop(inner);
        super::state::count_came(self.session, 0, bytes);
        self.session.counters.durable_bytes.fetch_add(bytes, Relaxed);
        self.add_file(&file, missing, file.plan.size() - bytes);
        if is_doubted {
            lock(&self.delta).push_back(file);
            self.delta_ready.notify_all();
        }
        Some(Want { number, generation: 0, more: is_doubted, chunks: WantChunks::Runs(runs) })
    }

    /// The sender begins a file anew.
    fn again(&self, number: u64, generation: u32, wire: WireEntry) -> Result<(), WireError> {
        let Some(old) = self.file(number) else { return Ok(()) };
        let EntryKind::File { size, .. } = wire.entry.kind else {
            return Err(WireError("a file that becomes something else"));
        };
        if wire.entry.path != old.entry.path || generation != old.generation + 1 {
            return Err(WireError("a new try with another file"));
        }
        let inode = |entry: &Entry| (entry.identity.device, entry.identity.inode);
        if inode(&wire.entry) != inode(&old.entry) {
            lock(&self.state).replaced.insert(number);
        }
        self.give_up(&old);
        let counters = &self.session.counters;
        counters.bytes_total.fetch_add(size, Relaxed);
        counters.bytes_total.fetch_sub(old.plan.size(), Relaxed);
        let file = Arc::new(ReceiveFile::new(number, generation, wire.entry, Base::Nothing, &self.options));
        self.note_begin(&file);
        self.add_file(&file, file.plan.count(), size);
        let want = Want { number, generation, more: false, chunks: WantChunks::All };
        self.session.say(&Message::Wants(vec![want]));
        Ok(())
    }

    fn dropped(&self, number: u64, kind: FaultKind, reason: &str) -> Result<(), WireError> {
        let reason = copy::show_bytes(reason.as_bytes());
        if let Some(file) = self.file(number) {
            self.give_up(&file);
            let mut state = lock(&self.state);
            state.files.remove(&number);
            self.left_out(&mut state, number);
            self.session.fault(fault(&file.entry, kind, reason));
        } else {
            let mut state = lock(&self.state);
            // One that could not be announced; the sender has told why, by its own report.
            if number == state.announced && state.end.is_none() {
                state.announced += 1;
                self.left_out(&mut state, number);
            }
        }
        self.commit_ready.notify_all();
        Ok(())
    }

    fn left_out(&self, state: &mut State, number: u64) {
        if let Some(rows) = &mut state.manifest {
            rows.left_out(number);
        }
        state.left_out.insert(number);
        for (link, entry, first) in state.links.remove(&number).unwrap_or_default() {
            let outcome = self.make_link(state, number, &entry, &first);
            self.conclude_in(state, link, &entry, Some(&first), outcome);
        }
        self.tell_concluded(state);
    }
}

fn was_there(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done { hash, metadata, .. } => Outcome::Done { was_there: true, hash, metadata },
        fault => fault,
    }
}

fn there(hash: Option<[u8; 32]>) -> Outcome {
    Outcome::Done { was_there: true, hash, metadata: None }
}

/// False: the part ends before the last chunk of its records, since somebody has cut it, or since its file system has
/// lost its end. A short part that ends in a hole may be sent again for it: its length is set when it is sealed.
fn has_length_of(part: &Part, plan: &Plan, known: &[(u64, copy::ChunkHash)]) -> bool {
    let chunks = known.iter().filter(|(chunk, _)| *chunk < plan.count());
    let end = chunks.map(|(chunk, _)| plan.begin(*chunk) + plan.length(*chunk)).max();
    part.length().is_ok_and(|length| length >= end.unwrap_or(0))
}

/// Chunks of records, in order.
fn known_chunks(plan: &Plan, known: &[(u64, copy::ChunkHash)]) -> Vec<u64> {
    let mut chunks: Vec<u64> = known.iter().map(|(chunk, _)| *chunk).filter(|chunk| *chunk < plan.count()).collect();
    chunks.sort_unstable();
    chunks.dedup();
    chunks
}

/// Chunks of records, in order, that the part may have lost since it was cut and extended again: those with a hole, and
/// those that no other known chunk follows, since a cut leaves no hole in its own block. A sealed part has lost none:
/// its time would be another one.
fn in_doubt(part: &Part, entry: &Entry, plan: &Plan, known: &[(u64, copy::ChunkHash)]) -> Vec<u64> {
    let chunks = known_chunks(plan, known);
    if chunks.len() as u64 == plan.count() && part.has_time_of(entry) {
        return vec![];
    }
    let mut hole = 0;
    let has_hole = |&chunk: &u64| {
        let (begin, end) = (plan.begin(chunk), plan.begin(chunk) + plan.length(chunk));
        if hole < end {
            hole = part.first_hole(begin);
        }
        hole < end
    };
    let holes: Vec<bool> = chunks.iter().map(has_hole).collect();
    let is_followed = |at: usize| chunks.get(at + 1) == Some(&(chunks[at] + 1)) && !holes[at + 1];
    // The chunk of an empty file has nothing to lose.
    let in_doubt = |&at: &usize| plan.length(chunks[at]) > 0 && (holes[at] || !is_followed(at));
    (0..chunks.len()).filter(in_doubt).map(|at| chunks[at]).collect()
}

/// Hash of a file of which the journal has all chunks.
fn whole_hash(plan: &Plan, known: &[(u64, copy::ChunkHash)]) -> Option<[u8; 32]> {
    let mut hashes = copy::ChunkHashes::new(plan);
    for &(chunk, hash) in known.iter().filter(|(chunk, _)| *chunk < plan.count()) {
        hashes.set(chunk, hash);
    }
    hashes.file_hash()
}
