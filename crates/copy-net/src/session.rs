//! State that all threads of an end share: first error, messages to be sent, connections, counters.

use crate::error::{CopyError, ErrorKind};
use crate::transport::Handle;
use copy::{EntryKind, Event, FaultKind, FileFault, Message, SourceMount};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A wait is looked at again after this time, so that a copy that ends wakes every thread.
pub(crate) const GLANCE: Duration = Duration::from_millis(100);
/// Faults that a report lists.
const FAULTS_MAX: usize = 10_000;
/// Bytes of messages that wait for the path, beyond which their makers wait.
const OUTBOX_BYTES: usize = 4 << 20;
/// Bytes of messages that wait for the path, at most: the other end asks, and does not take the answers.
const OUTBOX_MAX: usize = 256 << 20;

/// The lock, whatever happened to another thread that had it: counters and queues hold at each point.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notice, or a moment.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
    condition.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}

/// Sums of this attempt.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub entries: AtomicU64,
    pub files_done: AtomicU64,
    pub files_total: AtomicU64,
    pub bytes_done: AtomicU64,
    pub bytes_total: AtomicU64,
    pub durable_bytes: AtomicU64,
    /// Sender: see `Event::Progress`.
    pub wanted_bytes: AtomicU64,
    pub sent_bytes: AtomicU64,
    pub reused_bytes: AtomicU64,
    /// Receiver: see [`copy::EndReport::unread_files`].
    pub unread_files: AtomicU64,
    pub retries: AtomicU64,
    pub cpu_ns: AtomicU64,
    /// Entries that `mirror` removed; bytes of files that are concluded without a fault.
    pub removed: AtomicU64,
    pub whole_bytes: AtomicU64,
}

/// A data stream as others see it.
pub(crate) struct OpenStream {
    pub handle: Arc<dyn Handle>,
    pub sent_bytes: Arc<AtomicU64>,
    pub is_active: bool,
}

/// See the module.
pub(crate) struct Session {
    error: Mutex<Option<CopyError>>,
    over: Arc<AtomicBool>,
    done: AtomicBool,
    outbox: Mutex<Outbox>,
    outbox_filled: Condvar,
    outbox_drained: Condvar,
    pub streams: Mutex<BTreeMap<u32, OpenStream>>,
    control: Mutex<Option<Arc<dyn Handle>>>,
    pub heard_ns: AtomicU64,
    /// A message is being dealt with: the next ones wait at this end, and the other is not silent.
    pub is_handling: AtomicBool,
    events: Mutex<Sender<Event>>,
    pub counters: Counters,
    faults: Mutex<(Vec<FileFault>, u64)>,
    /// Mount points below the sources, once the walk has ended.
    pub mounts: Mutex<Vec<SourceMount>>,
}

#[derive(Default)]
struct Outbox {
    bytes: Vec<u8>,
    is_closing: bool,
    is_drained: bool,
}

impl Session {
    pub fn new(events: Sender<Event>) -> Session {
        Session {
            error: Mutex::new(None),
            over: Arc::new(AtomicBool::new(false)),
            done: AtomicBool::new(false),
            outbox: Mutex::new(Outbox::default()),
            outbox_filled: Condvar::new(),
            outbox_drained: Condvar::new(),
            streams: Mutex::new(BTreeMap::new()),
            control: Mutex::new(None),
            heard_ns: AtomicU64::new(path_net::monotonic_ns()),
            is_handling: AtomicBool::new(false),
            events: Mutex::new(events),
            counters: Counters::default(),
            faults: Mutex::new((vec![], 0)),
            mounts: Mutex::default(),
        }
    }

    /// The copy is over, well or not: threads end.
    pub fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// The same, for transports.
    pub fn over_flag(&self) -> Arc<AtomicBool> {
        self.over.clone()
    }

    /// Waits for the end of the copy, at most `time`.
    pub fn wait_over(&self, time: Duration) {
        let end_ns = path_net::monotonic_ns() + time.as_nanos() as u64;
        let mut outbox = lock(&self.outbox);
        while !self.is_over() && path_net::monotonic_ns() < end_ns {
            outbox = wait(&self.outbox_filled, outbox, GLANCE);
        }
    }

    /// Ends the copy; the first error counts. The other end is told why, if it can be told at once.
    pub fn fail(&self, error: CopyError) {
        {
            let mut first = lock(&self.error);
            if self.done.load(Relaxed) {
                drop(first);
                return self.finish();
            }
            if first.is_some() {
                return;
            }
            *first = Some(error.clone());
        }
        let mut outbox = lock(&self.outbox);
        let text = error.text;
        Message::Abort { kind: kind_number(error.kind), text }.encode(&mut outbox.bytes);
        outbox.is_closing = true;
        self.outbox_filled.notify_all();
        // The writer gets a moment to say it; a path that is down takes nothing.
        let mut left = 5;
        while !outbox.is_drained && left > 0 && lock(&self.control).is_some() {
            outbox = wait(&self.outbox_drained, outbox, GLANCE);
            left -= 1;
        }
        drop(outbox);
        self.finish();
    }

    /// A stranger's bytes were not what they should be.
    pub fn fail_protocol(&self, text: impl std::fmt::Display) {
        self.fail(CopyError { kind: ErrorKind::Protocol, text: format!("the other end sent {text}") });
    }

    /// The copy is done: what is to be said yet is said, then all ends.
    pub fn succeed(&self) {
        self.done.store(true, Relaxed);
        let mut outbox = lock(&self.outbox);
        outbox.is_closing = true;
        self.outbox_filled.notify_all();
        let mut left = 50;
        while !outbox.is_drained && left > 0 {
            outbox = wait(&self.outbox_drained, outbox, GLANCE);
            left -= 1;
        }
        drop(outbox);
        self.finish();
    }

    /// The copy is done, and the other end is told: it closes when it has heard, and no loss is an error any more.
    pub fn settle(&self) {
        self.done.store(true, Relaxed);
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Relaxed)
    }

    fn finish(&self) {
        self.over.store(true, Relaxed);
        if let Some(control) = &*lock(&self.control) {
            control.close();
        }
        for stream in lock(&self.streams).values() {
            stream.handle.close();
        }
        self.outbox_filled.notify_all();
        self.outbox_drained.notify_all();
    }

    /// The error that ended the copy.
    pub fn error(&self) -> Option<CopyError> {
        lock(&self.error).clone()
    }

    pub fn set_control(&self, handle: Arc<dyn Handle>) {
        if self.is_over() {
            handle.close();
        }
        *lock(&self.control) = Some(handle);
    }

    pub fn has_control(&self) -> bool {
        lock(&self.control).is_some()
    }

    /// Registers a stream; false: the copy is over.
    pub fn add_stream(&self, id: u32, handle: Arc<dyn Handle>, sent_bytes: Arc<AtomicU64>) -> bool {
        lock(&self.streams).insert(id, OpenStream { handle, sent_bytes, is_active: true });
        if self.is_over() {
            self.remove_stream(id);
            return false;
        }
        true
    }

    pub fn remove_stream(&self, id: u32) {
        if let Some(stream) = lock(&self.streams).remove(&id) {
            stream.handle.close();
        }
    }

    /// Says something to the other end, when the path takes it. Never waits.
    pub fn say(&self, message: &Message) {
        let is_beyond = {
            let mut outbox = lock(&self.outbox);
            if outbox.is_closing {
                return;
            }
            message.encode(&mut outbox.bytes);
            self.outbox_filled.notify_one();
            outbox.bytes.len() > OUTBOX_MAX
        };
        if is_beyond {
            let text = "the other end does not take the messages that it asks for".into();
            self.fail(CopyError { kind: ErrorKind::Protocol, text });
        }
    }

    /// Waits until the path has taken most of what was said; false: the copy is over.
    pub fn wait_said(&self) -> bool {
        let mut outbox = lock(&self.outbox);
        while outbox.bytes.len() > OUTBOX_BYTES {
            if self.is_over() {
                return false;
            }
            outbox = wait(&self.outbox_drained, outbox, GLANCE);
        }
        !self.is_over()
    }

    /// Takes what is to be said, for the writer; None: nothing more will be.
    pub fn take_said(&self, into: &mut Vec<u8>) -> bool {
        into.clear();
        let mut outbox = lock(&self.outbox);
        loop {
            if !outbox.bytes.is_empty() {
                std::mem::swap(&mut outbox.bytes, into);
                self.outbox_drained.notify_all();
                return true;
            }
            if outbox.is_closing || self.is_over() {
                outbox.is_drained = true;
                self.outbox_drained.notify_all();
                return false;
            }
            outbox = wait(&self.outbox_filled, outbox, GLANCE);
        }
    }

    pub fn heard(&self) {
        self.heard_ns.store(path_net::monotonic_ns(), Relaxed);
    }

    pub fn event(&self, event: Event) {
        let _ = lock(&self.events).send(event);
    }

    pub fn retry(&self, reason: String) {
        self.counters.retries.fetch_add(1, Relaxed);
        self.event(Event::Retry { reason });
    }

    /// Counts an entry that is at the destination.
    pub fn count_done(&self, kind: &EntryKind, was_there: bool) {
        let counters = &self.counters;
        counters.entries.fetch_add(1, Relaxed);
        if let EntryKind::File { size, .. } = kind {
            counters.files_done.fetch_add(1, Relaxed);
            counters.whole_bytes.fetch_add(*size, Relaxed);
            if was_there {
                counters.reused_bytes.fetch_add(*size, Relaxed);
                counters.bytes_done.fetch_add(*size, Relaxed);
            }
        }
    }

    /// An entry that is not copied, or not with all of its metadata.
    pub fn fault(&self, fault: FileFault) {
        {
            let mut faults = lock(&self.faults);
            if faults.0.len() >= FAULTS_MAX {
                faults.1 += 1;
                // Its event would wait in memory, if they come faster than they are told.
                return;
            }
            faults.0.push(fault.clone());
        }
        self.event(Event::Fault(fault));
    }

    pub fn faults(&self) -> (Vec<FileFault>, u64) {
        lock(&self.faults).clone()
    }

    /// True if an entry is missing at the destination.
    pub fn has_faults(&self) -> bool {
        let faults = lock(&self.faults);
        faults.1 > 0 || faults.0.iter().any(|fault| fault.kind != FaultKind::Metadata)
    }
}

/// Adds the CPU time of a thread to the session's when the thread ends, and ends the copy if the thread panics.
pub(crate) struct CpuCount<'a>(pub &'a Session);

impl Drop for CpuCount<'_> {
    fn drop(&mut self) {
        // The others would wait for what this thread had to do.
        if std::thread::panicking() {
            self.0.fail(CopyError {
                kind: ErrorKind::Io,
                text: "a thread of this end failed: a fault of elephan".into(),
            });
        }
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        self.0.counters.cpu_ns.fetch_add(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, Relaxed);
        // The other threads, and the other end, would wait for this one.
        if std::thread::panicking() {
            self.0.fail(CopyError { kind: ErrorKind::Io, text: "a thread of this end has panicked".into() });
        }
    }
}

const KINDS: [ErrorKind; 9] = [
    ErrorKind::Input,
    ErrorKind::Port,
    ErrorKind::Peer,
    ErrorKind::Token,
    ErrorKind::Protocol,
    ErrorKind::Full,
    ErrorKind::Io,
    ErrorKind::Busy,
    ErrorKind::Stopped,
];

pub(crate) fn kind_number(kind: ErrorKind) -> u8 {
    KINDS.iter().position(|&known| known == kind).unwrap_or(6) as u8
}

/// The error of an end that gave up, as the other end reports it.
pub(crate) fn peer_error(kind: u8, text: &str) -> CopyError {
    let kind = KINDS.get(usize::from(kind)).copied().unwrap_or(ErrorKind::Peer);
    CopyError { kind, text: format!("the other end: {}", copy::show_bytes(text.as_bytes())) }
}
