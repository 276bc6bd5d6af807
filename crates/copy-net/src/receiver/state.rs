//! State of the receiver, shared by its threads, and the ways of an entry to its end.

use crate::destination::{Base, Destination, Part};
use crate::error::{CopyError, EntryFault, ErrorKind};
use crate::journal_file::JournalFile;
use crate::known_hashes::KnownHashes;
use crate::manifest_file::ManifestFile;
use crate::session::{lock, CpuCount, Session};
use copy::{
    show_path, whole_records, ChunkHash, ChunkHashes, CopyOptions, Entry, EntryKind, FaultKind, FileFault, FileKey,
    Identity, JournalIndex, Message, Outcome, Plan,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Written bytes that make a commit due.
pub(super) const COMMIT_BYTES: u64 = 256 << 20;
/// Times that one file, or chunks of it, may come damaged.
pub(super) const DAMAGED_MAX: u32 = 100;

/// See the module.
pub(crate) struct Receiver<'a> {
    pub(super) session: &'a Session,
    pub(super) options: CopyOptions,
    pub(super) destination: &'a Destination,
    /// From the last copy.
    pub(super) known: KnownHashes,
    /// The source is a block device: its identity is the same whatever is written to it.
    pub(super) is_device: bool,
    pub(super) state: Mutex<State>,
    pub(super) commit: Mutex<Commit>,
    pub(super) commit_ready: Condvar,
    pub(super) commit_done: Condvar,
    pub(super) delta: Mutex<VecDeque<Arc<ReceiveFile>>>,
    pub(super) delta_ready: Condvar,
    /// Frames that were taken, by stream that is open.
    pub(super) streams: Mutex<BTreeMap<u32, Arc<AtomicU64>>>,
    /// Times that parts were removed to make room.
    rooms: Mutex<u64>,
    /// Paths that `mirror` removed.
    pub(super) removals: Mutex<Vec<String>>,
    /// Parts that may be open at once, and half of them before a commit.
    pub(super) parts_max: usize,
}

pub(super) struct State {
    pub(super) index: JournalIndex,
    /// Files that are wanted and not concluded.
    pub(super) files: BTreeMap<u64, Arc<ReceiveFile>>,
    /// Hard links that wait for their first name.
    pub(super) links: BTreeMap<u64, Vec<WaitingLink>>,
    /// Entries that are left out: a link to one cannot be made.
    pub(super) left_out: BTreeSet<u64>,
    /// Entries whose name another file has since the walk: their hard links are of the first one.
    pub(super) replaced: BTreeSet<u64>,
    pub(super) manifest: Option<ManifestFile>,
    pub(super) announced: u64,
    pub(super) end: Option<u64>,
    /// The sender has seen all of its sources.
    pub(super) is_complete: bool,
    /// Chunks and bytes that are wanted and have not come.
    pub(super) wanted_chunks: u64,
    pub(super) wanted_bytes: u64,
    /// Concluded and not told yet.
    pub(super) concluded: Vec<(u64, Outcome)>,
}

/// Number, entry and first name's path of a hard link.
type WaitingLink = (u64, Entry, Vec<Vec<u8>>);

/// Work of the next commit.
pub(super) struct Commit {
    /// Absent while a commit writes to it.
    pub(super) journal: Option<JournalFile>,
    /// Records that come before those of the chunks.
    pub(super) records: Vec<u8>,
    /// Files whose records of an earlier part count no more ([`Receiver::note_begin`]), and how many of the first ones
    /// the journal on the disk says so of.
    pub(super) begun: u64,
    pub(super) begun_durable: u64,
    pub(super) chunks: Vec<Written>,
    pub(super) bytes: u64,
    pub(super) since_ns: u64,
    /// Whole files, of which the sender has told the hash.
    pub(super) whole: Vec<Arc<ReceiveFile>>,
    pub(super) open_parts: usize,
    pub(super) last_ns: u64,
    /// A commit is at work.
    pub(super) is_busy: bool,
}

/// A chunk that is written and not synced.
pub(super) struct Written {
    pub(super) file: Arc<ReceiveFile>,
    pub(super) chunk: u64,
    pub(super) hash: ChunkHash,
}

/// A file of which something is wanted, for one try of the sender.
pub(super) struct ReceiveFile {
    pub(super) number: u64,
    pub(super) generation: u32,
    pub(super) entry: Entry,
    pub(super) plan: Plan,
    pub(super) key: FileKey,
    pub(super) base: Base,
    /// Number of its `Begin` record, which has to be durable before its new part is made; 0: there is none.
    pub(super) begun: AtomicU64,
    pub(super) inner: Mutex<ReceiveInner>,
}

pub(super) struct ReceiveInner {
    pub(super) part: Option<Arc<Part>>,
    /// Of chunks that are written.
    pub(super) hashes: ChunkHashes,
    /// Chunks of an earlier attempt's part that are compared: those that it may have lost, and all of a device, which
    /// does not tell that it changed.
    pub(super) doubted: Vec<u64>,
    /// Of chunks as the base has them (delta).
    pub(super) base_hashes: Vec<(u64, ChunkHash)>,
    /// Identity of the base before its first chunk was hashed.
    pub(super) base: Option<Identity>,
    /// Another process has written to the base: nothing more is taken over from it.
    pub(super) base_changed: bool,
    pub(super) durable: u64,
    /// Chunks that are as the base has them, while nothing else was written: the file may stay as it is.
    pub(super) same: Vec<(u64, ChunkHash)>,
    /// Chunks that are being taken over from the base.
    pub(super) taking: u64,
    /// BLAKE3 of the file, as the sender told.
    pub(super) told: Option<[u8; 32]>,
    pub(super) is_whole: bool,
    pub(super) is_gone: bool,
    /// Times that chunks were not what they should be.
    pub(super) damaged: u32,
    /// Bytes that came over the path.
    pub(super) came: u64,
}

impl<'a> Receiver<'a> {
    /// # Errors
    /// `Io`: the journal or the manifest cannot be written.
    pub fn new(
        session: &'a Session,
        spec: &copy::EndSpec,
        destination: &'a Destination,
        shape: copy::SourcesShape,
    ) -> Result<Receiver<'a>, CopyError> {
        let path = destination.state_folder().join("journal");
        let (journal, records) = JournalFile::open(&path, whole_records)
            .map_err(|error| CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", path.display()) })?;
        let index = JournalIndex::replay(&records);
        let manifest = ManifestFile::create(&spec.copy, "receiver", &spec.options)?;
        Ok(Receiver {
            session,
            options: spec.options.clone(),
            destination,
            known: manifest.known_hashes(),
            is_device: shape == copy::SourcesShape::OneDevice,
            state: Mutex::new(State {
                index,
                files: BTreeMap::new(),
                links: BTreeMap::new(),
                left_out: BTreeSet::new(),
                replaced: BTreeSet::new(),
                manifest: Some(manifest),
                announced: 0,
                end: None,
                is_complete: false,
                wanted_chunks: 0,
                wanted_bytes: 0,
                concluded: vec![],
            }),
            commit: Mutex::new(Commit {
                journal: Some(journal),
                records: vec![],
                begun: 0,
                begun_durable: 0,
                chunks: vec![],
                bytes: 0,
                since_ns: 0,
                whole: vec![],
                open_parts: 0,
                last_ns: 0,
                is_busy: false,
            }),
            commit_ready: Condvar::new(),
            commit_done: Condvar::new(),
            delta: Mutex::new(VecDeque::new()),
            delta_ready: Condvar::new(),
            streams: Mutex::new(BTreeMap::new()),
            rooms: Mutex::default(),
            removals: Mutex::default(),
            parts_max: raise_descriptors(),
        })
    }

    /// Bytes of which the journal has the chunks, from earlier attempts.
    pub fn resumed_bytes(&self) -> u64 {
        lock(&self.state).index.bytes()
    }

    pub(super) fn file(&self, number: u64) -> Option<Arc<ReceiveFile>> {
        lock(&self.state).files.get(&number).cloned()
    }

    /// The part of a file; it is begun with the first chunk that is not as the base has it. None: the file is over.
    pub(super) fn part(&self, file: &Arc<ReceiveFile>) -> Result<Option<Arc<Part>>, EntryFault> {
        if !self.has_begun(file) {
            return Ok(None);
        }
        let (part, same) = {
            let mut inner = lock(&file.inner);
            if inner.is_gone {
                return Ok(None);
            }
            if let Some(part) = &inner.part {
                return Ok(Some(part.clone()));
            }
            let part = Arc::new(self.destination.begin(file.number, &file.entry, file.base)?);
            lock(&self.commit).open_parts += 1;
            inner.part = Some(part.clone());
            let same = std::mem::take(&mut inner.same);
            inner.taking += same.len() as u64;
            (part, same)
        };
        // Without the lock: this may be many bytes.
        for (chunk, hash) in same {
            let begin = file.plan.begin(chunk);
            let is_lost = lock(&file.inner).base_changed;
            let take = || part.take(begin, begin + file.plan.length(chunk));
            let result = if is_lost { Ok(()) } else { self.with_room(take) };
            if let Err(error) = result {
                if !self.is_fatal(&error) {
                    return Err(fault(&file.entry, FaultKind::Unwritable, error.to_string()).into());
                }
                // `taking` still counts the chunk, so the file cannot become whole in this attempt.
                return Ok(None);
            }
            lock(&file.inner).taking -= 1;
            if !is_lost {
                self.to_commit(file, chunk, hash);
            }
        }
        Ok(Some(part))
    }

    /// A chunk is in the part: it goes to the next commit.
    pub(super) fn to_commit(&self, file: &Arc<ReceiveFile>, chunk: u64, hash: ChunkHash) {
        let mut commit = lock(&self.commit);
        let is_first = commit.chunks.is_empty();
        if is_first {
            commit.since_ns = path_net::monotonic_ns();
        }
        commit.bytes += file.plan.length(chunk);
        commit.chunks.push(Written { file: file.clone(), chunk, hash });
        if is_first || commit.bytes >= COMMIT_BYTES || commit.open_parts >= self.parts_max / 2 {
            self.commit_ready.notify_one();
        }
    }

    /// An entry is done with; the sender is told with the next batch.
    pub(super) fn conclude(&self, number: u64, entry: &Entry, first: Option<&[Vec<u8>]>, outcome: Outcome) {
        let mut state = lock(&self.state);
        self.conclude_in(&mut state, number, entry, first, outcome);
    }

    pub(super) fn conclude_in(
        &self,
        state: &mut State,
        number: u64,
        entry: &Entry,
        first: Option<&[Vec<u8>]>,
        outcome: Outcome,
    ) {
        state.files.remove(&number);
        match &outcome {
            Outcome::Done { was_there, hash, metadata } => {
                if let Some(rows) = &mut state.manifest {
                    rows.done(number, entry, first, *hash);
                }
                self.session.count_done(&entry.kind, *was_there);
                if let Some(reason) = metadata {
                    self.session.fault(fault(entry, FaultKind::Metadata, reason.clone()));
                }
            }
            Outcome::Fault { kind, reason } => {
                if let Some(rows) = &mut state.manifest {
                    rows.left_out(number);
                }
                state.left_out.insert(number);
                self.session.fault(fault(entry, *kind, reason.clone()));
            }
        }
        state.concluded.push((number, outcome));
        for (link, entry, first) in state.links.remove(&number).unwrap_or_default() {
            let outcome = self.make_link(state, number, &entry, &first);
            self.conclude_in(state, link, &entry, Some(&first), outcome);
        }
        if state.concluded.len() >= 1024 {
            self.tell_concluded(state);
        }
    }

    pub(super) fn tell_concluded(&self, state: &mut State) {
        let concluded = std::mem::take(&mut state.concluded);
        // A reason has up to 4 KiB: a message keeps its bound.
        for part in concluded.chunks(128) {
            self.session.say(&Message::Concluded(part.to_vec()));
        }
    }

    pub(super) fn make_link(&self, state: &State, to: u64, entry: &Entry, first: &[Vec<u8>]) -> Outcome {
        if state.left_out.contains(&to) {
            let reason = format!("a hard link to {}, which is not copied", show_path(first));
            return Outcome::Fault { kind: FaultKind::Unwritable, reason };
        }
        if state.replaced.contains(&to) {
            let reason = format!("a hard link to {}, whose name another file was given meanwhile", show_path(first));
            return Outcome::Fault { kind: FaultKind::Changed, reason };
        }
        match self.destination.make(entry, Some(first)) {
            Err(fault) if fault.is_full() => {
                // The copy ends, and what it says of this entry is not heard.
                self.session.fail(self.destination.full(state.wanted_bytes));
                made(Err(fault))
            }
            result => made(result),
        }
    }

    /// Repeats an action as long as the disk is full and there are parts that no entry of this attempt needs.
    pub(super) fn with_room<T>(&self, mut action: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
        loop {
            let rooms = *lock(&self.rooms);
            match action() {
                Err(error) if crate::names::is_full(&error) && self.make_room(rooms) => {}
                result => return result,
            }
        }
    }

    /// The same for what is made at the destination. `None`: the disk is full, and the copy has ended with that.
    pub(super) fn try_entry<T>(
        &self,
        mut action: impl FnMut() -> Result<T, EntryFault>,
    ) -> Option<Result<T, EntryFault>> {
        loop {
            let rooms = *lock(&self.rooms);
            match action() {
                Err(fault) if fault.is_full() => {
                    if !self.make_room(rooms) {
                        let needed = lock(&self.state).wanted_bytes;
                        self.session.fail(self.destination.full(needed));
                        return None;
                    }
                }
                result => return Some(result),
            }
        }
    }

    /// Removes parts of earlier attempts that no entry of this one needs so far. False: there are none, and no other
    /// thread has removed any since `rooms` was read.
    fn make_room(&self, rooms: u64) -> bool {
        let mut made = lock(&self.rooms);
        if *made == rooms {
            let files: Vec<_> = lock(&self.state).files.values().cloned().collect();
            *made += u64::from(self.destination.make_room(files.iter().map(|file| &file.entry)) > 0);
        }
        *made > rooms
    }

    /// Takes a file out of the work: it is begun anew, left out or concluded. Its part is thrown away.
    pub(super) fn give_up(&self, file: &ReceiveFile) {
        let part = {
            let mut inner = lock(&file.inner);
            inner.is_gone = true;
            inner.part.take()
        };
        if let Some(part) = part {
            lock(&self.commit).open_parts -= 1;
            if let Some(part) = alone(part) {
                self.destination.discard(part);
            }
        }
        let (mut chunks, mut bytes) = (0, 0);
        let inner = lock(&file.inner);
        for (begin, end) in inner.hashes.missing_runs() {
            chunks += end - begin;
            bytes += file.plan.begin(end).min(file.plan.size()) - file.plan.begin(begin);
        }
        drop(inner);
        let mut state = lock(&self.state);
        state.wanted_chunks = state.wanted_chunks.saturating_sub(chunks);
        state.wanted_bytes = state.wanted_bytes.saturating_sub(bytes);
    }

    /// A file cannot be made.
    pub(super) fn unwritable(&self, file: &ReceiveFile, kind: FaultKind, reason: String) {
        self.give_up(file);
        let is_current = lock(&self.state).files.get(&file.number).is_some_and(|now| now.generation == file.generation);
        if is_current {
            self.conclude(file.number, &file.entry, None, Outcome::Fault { kind, reason });
        }
    }

    /// The disk takes no more, or something else that one file is not the reason of; true: the copy ends.
    pub(super) fn is_fatal(&self, error: &std::io::Error) -> bool {
        if crate::names::is_full(error) {
            let needed = lock(&self.state).wanted_bytes;
            self.session.fail(self.destination.full(needed));
            return true;
        }
        if error.raw_os_error() == Some(libc::EIO) {
            let text = format!("{}: {error}", self.destination.state_folder().display());
            self.session.fail(CopyError { kind: ErrorKind::Io, text });
            return true;
        }
        false
    }

    /// Paths that `mirror` removed, the first 10,000.
    pub fn take_removals(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.removals))
    }

    /// Root and manifest of a copy that is done, after all threads have ended.
    ///
    /// # Errors
    /// `Io`: the manifest cannot be written.
    pub fn close(self, is_done: bool) -> Result<([u8; 32], String), CopyError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.manifest {
            Some(rows) if is_done => Ok((rows.root(), rows.keep()?)),
            _ => Ok(([0; 32], String::new())),
        }
    }
}

impl ReceiveFile {
    pub(super) fn new(number: u64, generation: u32, entry: Entry, base: Base, options: &CopyOptions) -> ReceiveFile {
        let size = match entry.kind {
            EntryKind::File { size, .. } => size,
            _ => 0,
        };
        let plan = Plan::new(size, options.chunk_bytes);
        let key = FileKey::new(&entry, plan.chunk_bytes());
        let inner = ReceiveInner {
            part: None,
            hashes: ChunkHashes::new(&plan),
            doubted: vec![],
            base_hashes: vec![],
            base: None,
            base_changed: false,
            durable: 0,
            same: vec![],
            taking: 0,
            told: None,
            is_whole: false,
            is_gone: false,
            damaged: 0,
            came: 0,
        };
        let begun = AtomicU64::new(0);
        ReceiveFile { number, generation, entry, plan, key, base, begun, inner: Mutex::new(inner) }
    }
}

pub(super) fn fault(entry: &Entry, kind: FaultKind, reason: String) -> FileFault {
    FileFault { path: show_path(&entry.path), kind, reason }
}

/// Outcome of an entry without content.
pub(super) fn made(result: Result<Option<EntryFault>, EntryFault>) -> Outcome {
    match result {
        Ok(metadata) => Outcome::Done { was_there: false, hash: None, metadata: metadata.map(|fault| fault.reason) },
        Err(fault) => Outcome::Fault { kind: fault.kind, reason: fault.reason },
    }
}

/// The part itself, when no stream is at it any more: each leaves it within one piece.
pub(super) fn alone(mut part: Arc<Part>) -> Option<Part> {
    for _ in 0..1000 {
        match Arc::try_unwrap(part) {
            Ok(part) => return Some(part),
            Err(still) => part = still,
        }
        let condition = Condvar::new();
        drop(crate::session::wait(&condition, lock(&Mutex::new(())), std::time::Duration::from_millis(1)));
    }
    None
}

/// Raises this process's soft limit of descriptors to the hard one, and returns how many parts may be open.
pub(super) fn raise_descriptors() -> usize {
    use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
    const SPARE: u64 = 512;
    const PARTS: u64 = 4096;
    let now = getrlimit(Resource::Nofile);
    let wished = now.maximum.unwrap_or(PARTS + SPARE).min(65_536);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit { current: Some(wished.max(now.current.unwrap_or(0))), maximum: now.maximum },
    );
    let current = getrlimit(Resource::Nofile).current.unwrap_or(65_536);
    (current.saturating_sub(SPARE) / 2).clamp(64, PARTS) as usize
}

/// Sums for progress.
pub(super) fn count_came(session: &Session, sent: u64, reused: u64) {
    let counters = &session.counters;
    counters.sent_bytes.fetch_add(sent, Relaxed);
    counters.reused_bytes.fetch_add(reused, Relaxed);
    counters.bytes_done.fetch_add(sent + reused, Relaxed);
}

impl crate::meeting::RoleWork for Receiver<'_> {
    fn handle(&self, message: Message) -> Result<(), copy::WireError> {
        Receiver::handle(self, message)
    }

    fn start<'scope, 'env: 'scope>(&'env self, scope: &'scope std::thread::Scope<'scope, 'env>) {
        scope.spawn(|| {
            let _cpu = CpuCount(self.session);
            self.run_commits();
        });
        scope.spawn(|| {
            let _cpu = CpuCount(self.session);
            self.run_delta();
        });
    }

    fn steer(&self, _steering: copy::Steering) {}
}
