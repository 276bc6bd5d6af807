//! State of the sender, shared by its threads; entries that change or are left out.

use super::hashes::HashJournal;
use crate::error::CopyError;
use crate::manifest_file::ManifestFile;
use crate::session::{lock, CpuCount, Session};
use crate::source::{SourceFile, SourceFiles, SourceTree};
use copy::{
    show_path, Bucket, ChunkHash, ChunkHashes, CopyOptions, Entry, EntryKind, FaultKind, FileFault, FileKey, Message,
    Plan, Task, WireEntry, Work,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};

/// Tries with a file that changes while it is read.
const TRIES: u32 = 3;
/// Entries that are announced and not concluded, without a gap: about 20 MB of state at most with usual names.
pub(super) const WINDOW: u64 = 65_536;

/// See the module.
pub(crate) struct Sender<'a> {
    pub(super) session: &'a Session,
    pub(super) options: CopyOptions,
    pub(super) files: Arc<SourceFiles>,
    /// Until the walk begins.
    pub(super) tree: Mutex<Option<SourceTree>>,
    pub(super) state: Mutex<State>,
    /// There is work, or another number of streams may send.
    pub(super) work_ready: Condvar,
    /// Entries were concluded.
    pub(super) window_open: Condvar,
    pub(super) journal: Mutex<HashJournal>,
    pub(super) streams: Mutex<BTreeMap<u32, Arc<SentFrames>>>,
    /// Streams that may send (`Steering::streams`).
    pub active: AtomicU32,
    pub(super) rate: Mutex<Rate>,
}

pub(super) struct State {
    pub(super) work: Work,
    /// Entries that are announced and not concluded.
    pub(super) entries: BTreeMap<u64, Arc<SendEntry>>,
    /// None after the end.
    pub(super) manifest: Option<ManifestFile>,
    pub(super) announced: u64,
    pub(super) end: Option<u64>,
}

/// The limit of all streams together.
pub(super) struct Rate {
    pub(super) bits_per_s: u64,
    pub(super) bucket: Bucket,
}

/// One entry, for one try.
pub(super) struct SendEntry {
    pub(super) number: u64,
    pub(super) entry: Entry,
    pub(super) first: Option<Vec<Vec<u8>>>,
    pub(super) plan: Plan,
    pub(super) key: FileKey,
    pub(super) generation: u32,
    pub(super) inner: Mutex<SendInner>,
}

pub(super) struct SendInner {
    pub(super) hashes: ChunkHashes,
    /// From the journal of earlier attempts, until the receiver has said what it has.
    pub(super) known: Vec<(u64, ChunkHash)>,
    /// Chunks that the receiver has spoken of; None: of all.
    pub(super) mentioned: Option<Vec<bool>>,
    /// The receiver has said all that it has.
    pub(super) is_settled: bool,
    pub(super) open: Option<Arc<SourceFile>>,
    /// The hash that the receiver was told.
    pub(super) told: Option<[u8; 32]>,
}

/// Frames that a stream has sent and the receiver has not spoken of.
#[derive(Default)]
pub(super) struct SentFrames {
    pub(super) inner: Mutex<SentInner>,
}

#[derive(Default)]
pub(super) struct SentInner {
    pub(super) tasks: VecDeque<Task>,
    /// Frames before the first of `tasks`.
    pub(super) taken: u64,
    pub(super) has_ended: bool,
}

impl<'a> Sender<'a> {
    /// # Errors
    /// `Io`: the user's state folder cannot be written.
    pub fn new(session: &'a Session, spec: &copy::EndSpec, tree: SourceTree) -> Result<Sender<'a>, CopyError> {
        let now_ns = path_net::monotonic_ns();
        let bits_per_s = spec.rate_bps.unwrap_or(0);
        Ok(Sender {
            session,
            options: spec.options.clone(),
            files: tree.files(),
            tree: Mutex::new(Some(tree)),
            state: Mutex::new(State {
                work: Work::default(),
                entries: BTreeMap::new(),
                manifest: Some(ManifestFile::create(&spec.copy, "sender", &spec.options)?),
                announced: 0,
                end: None,
            }),
            work_ready: Condvar::new(),
            window_open: Condvar::new(),
            journal: Mutex::new(HashJournal::open(&spec.copy)?),
            streams: Mutex::new(BTreeMap::new()),
            active: AtomicU32::new(spec.streams),
            rate: Mutex::new(Rate { bits_per_s, bucket: Bucket::new(bits_per_s / 8, burst(bits_per_s), now_ns) }),
        })
    }

    pub(super) fn new_entry(&self, number: u64, wire: WireEntry, generation: u32) -> SendEntry {
        let WireEntry { entry, first, .. } = wire;
        let size = match entry.kind {
            EntryKind::File { size, .. } => size,
            _ => 0,
        };
        let plan = Plan::new(size, self.options.chunk_bytes);
        let key = FileKey::new(&entry, plan.chunk_bytes());
        let known = match entry.kind {
            EntryKind::File { .. } => lock(&self.journal).known(&key),
            _ => vec![],
        };
        // Most entries are not files of many chunks: they get room for hashes when they need it.
        let hashes = ChunkHashes::new(&plan);
        let inner = SendInner { hashes, known, mentioned: None, is_settled: false, open: None, told: None };
        SendEntry { number, entry, first, plan, key, generation, inner: Mutex::new(inner) }
    }

    pub(super) fn entry(&self, number: u64, generation: u32) -> Option<Arc<SendEntry>> {
        let state = lock(&self.state);
        state.entries.get(&number).filter(|entry| entry.generation == generation).cloned()
    }

    /// Notes the hash of a chunk. After the last one the receiver is told the file's.
    pub(super) fn hashed(&self, entry: &Arc<SendEntry>, chunk: u64, hash: ChunkHash, file: &SourceFile) {
        let file_hash = {
            let mut inner = lock(&entry.inner);
            inner.hashes.set(chunk, hash);
            if inner.hashes.missing() > 0 || inner.told.is_some() {
                None
            } else {
                inner.hashes.file_hash()
            }
        };
        lock(&self.journal).note(&entry.key, chunk, hash);
        if let Some(hash) = file_hash {
            self.complete(entry, hash, Some(file));
        }
    }

    /// All chunks are hashed: if the source is as it was, that is the file.
    pub(super) fn complete(&self, entry: &Arc<SendEntry>, hash: [u8; 32], file: Option<&SourceFile>) {
        let unchanged = match file {
            Some(file) => self.is_unchanged(entry, file),
            None => self.open(entry).and_then(|file| self.is_unchanged(entry, &file)),
        };
        match unchanged {
            Err(fault) => self.drop_entry(entry, fault.kind, fault.reason),
            Ok(false) => self.changed(entry),
            Ok(true) => {
                let mut inner = lock(&entry.inner);
                inner.open = None;
                if inner.told.replace(hash).is_none() {
                    let (number, generation) = (entry.number, entry.generation);
                    self.session.say(&Message::FileHash { number, generation, hash });
                }
            }
        }
    }

    /// The open file of an entry; one of several chunks stays open while it is worked on.
    pub(super) fn open(&self, entry: &SendEntry) -> Result<Arc<SourceFile>, FileFault> {
        if let Some(file) = &lock(&entry.inner).open {
            return Ok(file.clone());
        }
        let file = Arc::new(self.files.open(entry.number, &entry.entry)?);
        if entry.plan.count() > 1 {
            lock(&entry.inner).open = Some(file.clone());
        }
        Ok(file)
    }

    pub(super) fn is_unchanged(&self, entry: &SendEntry, file: &SourceFile) -> Result<bool, FileFault> {
        match file.identity() {
            Ok(identity) => Ok(identity == entry.entry.identity),
            Err(error) => Err(fault(&entry.entry, FaultKind::Unreadable, error.to_string())),
        }
    }

    /// The source is not what it was: the file is begun anew, or given up.
    pub(super) fn changed(&self, entry: &Arc<SendEntry>) {
        if entry.generation + 1 >= TRIES {
            let reason = format!("it changed while it was read, {TRIES} times");
            return self.drop_entry(entry, FaultKind::Changed, reason);
        }
        let now = match self.files.again(entry.number, &entry.entry) {
            Ok(now) => now,
            Err(fault) => return self.drop_entry(entry, fault.kind, fault.reason),
        };
        let size = |entry: &Entry| match entry.kind {
            EntryKind::File { size, .. } => size,
            _ => 0,
        };
        let mut wire = WireEntry { entry: now, first: None, content_left_out: false, is_source_link: false };
        if let Some(reason) = wire.exceeds() {
            return self.drop_entry(entry, FaultKind::Changed, reason);
        }
        let generation = entry.generation + 1;
        let new = Arc::new(self.new_entry(entry.number, wire.clone(), generation));
        {
            let mut state = lock(&self.state);
            match state.entries.get_mut(&entry.number) {
                Some(current) if current.generation == entry.generation => *current = new,
                // Another thread has seen it too.
                _ => return,
            }
            let counters = &self.session.counters;
            counters.bytes_total.fetch_add(size(&wire.entry), Relaxed);
            counters.bytes_total.fetch_sub(size(&entry.entry), Relaxed);
        }
        self.session.retry(format!("{}: it changed while it was read", show_path(&entry.entry.path)));
        without_extents(&mut wire.entry);
        self.session.say(&Message::Again { number: entry.number, generation, entry: Box::new(wire) });
    }

    /// Leaves an entry out.
    pub(super) fn drop_entry(&self, entry: &SendEntry, kind: FaultKind, reason: String) {
        let is_current = {
            let mut state = lock(&self.state);
            let is_current = state.entries.get(&entry.number).is_some_and(|now| now.generation == entry.generation);
            if is_current {
                state.entries.remove(&entry.number);
                self.left_out(&mut state, entry.number);
            }
            is_current
        };
        if is_current {
            self.session.say(&Message::Dropped { number: entry.number, kind, reason: reason.clone() });
            self.session.fault(fault(&entry.entry, kind, reason));
        }
    }

    pub(super) fn left_out(&self, state: &mut State, number: u64) {
        if let Some(manifest) = &mut state.manifest {
            manifest.left_out(number);
        }
        self.window_open.notify_all();
    }
}

pub(super) fn fault(entry: &Entry, kind: FaultKind, reason: String) -> FileFault {
    FileFault { path: show_path(&entry.path), kind, reason }
}

/// The receiver needs no extents: frames say what is zero.
pub(super) fn without_extents(entry: &mut Entry) {
    if let EntryKind::File { extents, .. } = &mut entry.kind {
        *extents = None;
    }
}

/// A bucket holds 20 ms, at least one piece.
pub(super) fn burst(bits_per_s: u64) -> u64 {
    (bits_per_s / 8 / 50).max(copy::PIECE_BYTES as u64)
}

impl crate::meeting::RoleWork for Sender<'_> {
    fn handle(&self, message: Message) -> Result<(), copy::WireError> {
        Sender::handle(self, message)
    }

    fn start<'scope, 'env: 'scope>(&'env self, scope: &'scope std::thread::Scope<'scope, 'env>) {
        scope.spawn(|| {
            let _cpu = CpuCount(self.session);
            if let Some(tree) = lock(&self.tree).take() {
                self.scan(tree);
            }
        });
    }

    fn steer(&self, steering: copy::Steering) {
        Sender::steer(self, steering);
    }
}
