//! A data stream of the sender: its thread reads chunks, hashes them and writes frames.

use super::state::{fault, SendEntry, Sender, SentFrames};
use crate::links::StreamUser;
use crate::session::{lock, wait, GLANCE};
use crate::source::SourceFile;
use crate::transport::{Connection, Handle};
use copy::{Action, ChunkHash, EntryKind, FaultKind, FileFault, FrameHead, Message, Piece, Task, HEAD_BYTES};
use copy::{PIECE_BYTES, PIECE_HEAD_BYTES, TAIL_BYTES};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Chunks of about so many bytes are taken from the queue at once.
const TAKE_BYTES: u64 = 1 << 20;

/// Reason that a chunk was not sent.
enum Failed {
    /// The path: the stream is lost.
    Stream(io::Error),
    /// The source.
    Source(FileFault),
    /// The source is not what it was.
    Changed,
}

impl StreamUser for Sender<'_> {
    fn run_stream(&self, id: u32, connection: Connection) {
        let sent_bytes = Arc::new(AtomicU64::new(0));
        let frames = Arc::new(SentFrames::default());
        lock(&self.streams).insert(id, frames.clone());
        if !self.session.add_stream(id, connection.handle.clone(), sent_bytes.clone()) {
            return;
        }
        let is_paced = self.pace(&*connection.handle);
        let mut stream = SendStream {
            sender: self,
            id,
            writer: connection.writer,
            handle: connection.handle,
            frames,
            sent_bytes,
            buffer: Vec::with_capacity(PIECE_BYTES + 65_536),
            piece: vec![0; PIECE_BYTES],
            is_paced,
        };
        if let Err(error) = stream.run() {
            if !self.session.is_over() {
                self.session.retry(format!("stream {id} is lost: {error}"));
                self.session.say(&Message::StreamLost { id });
            }
        }
    }
}

struct SendStream<'a, 'b> {
    sender: &'a Sender<'b>,
    id: u32,
    writer: Box<dyn Write + Send>,
    handle: Arc<dyn Handle>,
    frames: Arc<SentFrames>,
    sent_bytes: Arc<AtomicU64>,
    /// Frames that are not handed to the transport yet.
    buffer: Vec<u8>,
    piece: Vec<u8>,
    is_paced: bool,
}

impl SendStream<'_, '_> {
    fn run(&mut self) -> io::Result<()> {
        let mut tasks = vec![];
        loop {
            if !self.take(&mut tasks)? {
                return Ok(());
            }
            for at in 0..tasks.len() {
                if let Err(error) = self.run_task(&tasks[at]) {
                    // Those that were not begun go to other streams.
                    let mut state = lock(&self.sender.state);
                    tasks.drain(at + 1..).for_each(|task| state.work.push_again(task));
                    drop(state);
                    self.sender.work_ready.notify_all();
                    return Err(error);
                }
            }
            tasks.clear();
        }
    }

    /// Waits for work; false: the copy is over.
    fn take(&mut self, tasks: &mut Vec<Task>) -> io::Result<bool> {
        loop {
            let mut state = lock(&self.sender.state);
            if self.sender.session.is_over() {
                return Ok(false);
            }
            if self.sender.may_send(self.id) {
                state.work.take(TAKE_BYTES, tasks);
                if !tasks.is_empty() {
                    return Ok(true);
                }
            }
            // Buffered frames must not wait for more work.
            if !self.buffer.is_empty() {
                drop(state);
                self.flush()?;
                continue;
            }
            if lock(&self.frames.inner).has_ended || !self.handle.is_open() {
                return Err(io::Error::other("the other end has closed it"));
            }
            drop(wait(&self.sender.work_ready, state, GLANCE));
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.buffer.clear();
        self.writer.flush()
    }

    /// One chunk. An error is the stream's; faults of the source are dealt with.
    fn run_task(&mut self, task: &Task) -> io::Result<()> {
        let Some(entry) = self.sender.entry(task.number, task.generation) else { return Ok(()) };
        match self.chunk(&entry, task) {
            Ok((hash, file)) => self.sender.hashed(&entry, task.chunk, hash, &file),
            Err(Failed::Stream(error)) => return Err(error),
            Err(Failed::Source(fault)) => self.sender.drop_entry(&entry, fault.kind, fault.reason),
            Err(Failed::Changed) => self.sender.changed(&entry),
        }
        Ok(())
    }

    fn chunk(&mut self, entry: &Arc<SendEntry>, task: &Task) -> Result<(ChunkHash, Arc<SourceFile>), Failed> {
        let file = self.sender.open(entry).map_err(Failed::Source)?;
        if !self.sender.is_unchanged(entry, &file).map_err(Failed::Source)? {
            return Err(Failed::Changed);
        }
        let hash = match task.action {
            Action::Hash => self.hash_alone(entry, &file, task.chunk)?,
            Action::Compare(theirs) => {
                let hash = self.hash_alone(entry, &file, task.chunk)?;
                let length = entry.plan.length(task.chunk) as u32;
                // The frame of an empty file has no piece, so it cannot say that the file is the same.
                if hash == theirs && length > 0 {
                    self.begin(entry, task)?;
                    self.buffer.extend_from_slice(&Piece::Same(length).encode());
                    self.end(&hash)?;
                    self.count_reused(u64::from(length));
                    hash
                } else {
                    self.sender.session.counters.wanted_bytes.fetch_add(u64::from(length), Relaxed);
                    self.send(entry, &file, task)?
                }
            }
            Action::Send => self.send(entry, &file, task)?,
        };
        file.release(entry.plan.begin(task.chunk), entry.plan.begin(task.chunk) + entry.plan.length(task.chunk));
        Ok((hash, file))
    }

    fn count_reused(&self, bytes: u64) {
        let counters = &self.sender.session.counters;
        counters.reused_bytes.fetch_add(bytes, Relaxed);
        counters.bytes_done.fetch_add(bytes, Relaxed);
    }

    /// Hash of a chunk that is not sent.
    fn hash_alone(&mut self, entry: &SendEntry, file: &SourceFile, chunk: u64) -> Result<ChunkHash, Failed> {
        let mut hasher = entry.plan.hasher(chunk);
        let (mut at, end) = (entry.plan.begin(chunk), entry.plan.begin(chunk) + entry.plan.length(chunk));
        while at < end {
            match run_at(entry, at, end) {
                Run::Zeros(count) => {
                    hasher.zeros(count);
                    at += count;
                }
                Run::Data(count) => {
                    let step = count.min(PIECE_BYTES as u64) as usize;
                    file.read_at(at, &mut self.piece[..step]).map_err(|error| read_failed(entry, &error))?;
                    hasher.update(&self.piece[..step]);
                    at += step as u64;
                }
            }
            self.check_over()?;
        }
        Ok(hasher.finish())
    }

    fn check_over(&self) -> Result<(), Failed> {
        match self.sender.session.is_over() {
            true => Err(Failed::Stream(io::Error::other("the copy is over"))),
            false => Ok(()),
        }
    }

    /// The frame's head. From here on the chunk counts as sent on this stream.
    fn begin(&mut self, entry: &SendEntry, task: &Task) -> Result<(), Failed> {
        {
            let mut frames = lock(&self.frames.inner);
            if frames.has_ended {
                lock(&self.sender.state).work.push_again(task.clone());
                return Err(Failed::Stream(io::Error::other("the other end has closed it")));
            }
            frames.tasks.push_back(task.clone());
        }
        let head = FrameHead {
            number: task.number,
            generation: task.generation,
            chunk: task.chunk,
            length: entry.plan.length(task.chunk) as u32,
        };
        self.buffer.reserve(HEAD_BYTES + PIECE_HEAD_BYTES + TAIL_BYTES);
        self.buffer.extend_from_slice(&head.encode());
        Ok(())
    }

    fn end(&mut self, hash: &ChunkHash) -> Result<(), Failed> {
        self.buffer.extend_from_slice(hash);
        self.flush_full()
    }

    fn flush_full(&mut self) -> Result<(), Failed> {
        if self.buffer.len() >= PIECE_BYTES {
            self.flush().map_err(Failed::Stream)?;
        }
        Ok(())
    }

    /// Reads, hashes and sends a chunk, piece by piece.
    fn send(&mut self, entry: &SendEntry, file: &SourceFile, task: &Task) -> Result<ChunkHash, Failed> {
        let mut hasher = entry.plan.hasher(task.chunk);
        let (mut at, end) =
            (entry.plan.begin(task.chunk), entry.plan.begin(task.chunk) + entry.plan.length(task.chunk));
        self.begin(entry, task)?;
        let counters = &self.sender.session.counters;
        while at < end {
            match run_at(entry, at, end) {
                Run::Zeros(count) => {
                    hasher.zeros(count);
                    self.buffer.extend_from_slice(&Piece::Zeros(count as u32).encode());
                    self.count_reused(count);
                    at += count;
                }
                Run::Data(count) => {
                    let step = count.min(PIECE_BYTES as u64) as usize;
                    self.buffer.extend_from_slice(&Piece::Data(step as u32).encode());
                    // Read to where it is sent from.
                    let begin = self.buffer.len();
                    self.buffer.resize(begin + step, 0);
                    if let Err(error) = file.read_at(at, &mut self.buffer[begin..]) {
                        self.buffer.truncate(begin - PIECE_HEAD_BYTES);
                        self.buffer.extend_from_slice(&Piece::Abort.encode());
                        // A file that was cut has changed; it is not damaged.
                        return match self.sender.is_unchanged(entry, file) {
                            Ok(true) => Err(read_failed(entry, &error)),
                            Ok(false) => Err(Failed::Changed),
                            Err(fault) => Err(Failed::Source(fault)),
                        };
                    }
                    hasher.update(&self.buffer[begin..]);
                    self.wait_for_rate(step as u64)?;
                    self.flush_full()?;
                    self.sent_bytes.fetch_add(step as u64, Relaxed);
                    counters.sent_bytes.fetch_add(step as u64, Relaxed);
                    counters.bytes_done.fetch_add(step as u64, Relaxed);
                    at += step as u64;
                }
            }
        }
        let hash = hasher.finish();
        self.end(&hash)?;
        Ok(hash)
    }

    /// Waits for a token, where the transport does not pace.
    fn wait_for_rate(&mut self, bytes: u64) -> Result<(), Failed> {
        if self.is_paced {
            return Ok(());
        }
        let wait_ns = lock(&self.sender.rate).bucket.take(bytes, path_net::monotonic_ns());
        let end_ns = path_net::monotonic_ns().saturating_add(wait_ns);
        let condition = std::sync::Condvar::new();
        let mutex = std::sync::Mutex::new(());
        while !self.sender.session.is_over() {
            let left_ns = end_ns.saturating_sub(path_net::monotonic_ns());
            if left_ns == 0 {
                break;
            }
            let left = std::time::Duration::from_nanos(left_ns);
            drop(wait(&condition, lock(&mutex), left.min(GLANCE)));
        }
        Ok(())
    }
}

impl Drop for SendStream<'_, '_> {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl Sender<'_> {
    /// True for the first of the open streams, as many as may send.
    pub(super) fn may_send(&self, id: u32) -> bool {
        let active = self.active.load(Relaxed) as usize;
        let streams = lock(&self.session.streams);
        streams.len() <= active || streams.keys().take(active).any(|&known| known == id)
    }

    /// Gives a stream its share of the rate; true if no bucket is needed.
    pub(super) fn pace(&self, handle: &dyn Handle) -> bool {
        let bits_per_s = lock(&self.rate).bits_per_s;
        if bits_per_s == 0 {
            return handle.pace(None);
        }
        handle.pace(Some((bits_per_s / 8 / u64::from(self.active.load(Relaxed).max(1))).max(1)))
    }

    /// Another rate and number of streams.
    pub fn steer(&self, steering: copy::Steering) {
        if let Some(streams) = steering.streams {
            self.active.store(streams.clamp(1, crate::links::STREAMS_MAX), Relaxed);
            self.session.say(&Message::Streams(streams.clamp(1, crate::links::STREAMS_MAX)));
        }
        if let Some(bits_per_s) = steering.rate_bps {
            let mut rate = lock(&self.rate);
            rate.bits_per_s = bits_per_s;
            rate.bucket.set_rate(bits_per_s / 8, path_net::monotonic_ns());
        }
        let active = self.active.load(Relaxed) as usize;
        for (place, stream) in lock(&self.session.streams).values_mut().enumerate() {
            stream.is_active = place < active;
            self.pace(&*stream.handle);
        }
        self.work_ready.notify_all();
    }
}

fn read_failed(entry: &SendEntry, error: &io::Error) -> Failed {
    Failed::Source(fault(&entry.entry, FaultKind::Unreadable, error.to_string()))
}

/// Content at a place of a file, and its length.
enum Run {
    Data(u64),
    Zeros(u64),
}

fn run_at(entry: &SendEntry, at: u64, end: u64) -> Run {
    let EntryKind::File { extents: Some(extents), .. } = &entry.entry.kind else { return Run::Data(end - at) };
    let next = extents.partition_point(|&(_, extent_end)| extent_end <= at);
    match extents.get(next) {
        Some(&(begin, extent_end)) if begin <= at => Run::Data(extent_end.min(end) - at),
        Some(&(begin, _)) => Run::Zeros(begin.min(end) - at),
        None => Run::Zeros(end - at),
    }
}
