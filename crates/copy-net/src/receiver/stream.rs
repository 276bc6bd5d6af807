//! A data stream of the receiver: its thread takes frames, hashes and writes them.

use super::state::{ReceiveFile, Receiver, DAMAGED_MAX};
use crate::destination::{Base, Part};
use crate::links::StreamUser;
use crate::session::{lock, wait, GLANCE};
use crate::transport::Connection;
use copy::{plural, ChunkHash, FaultKind, FrameHead, Message, Piece, Want, WantChunks};
use copy::{HEAD_BYTES, PIECE_BYTES, PIECE_HEAD_BYTES, TAIL_BYTES};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Bytes that are written and not synced, at most: beyond, streams wait for the commit.
const DIRTY_BYTES: u64 = 1 << 30;

/// Target of a chunk; its part is begun with the first byte that is written.
struct Target {
    file: Arc<ReceiveFile>,
    part: Option<Arc<Part>>,
}

impl StreamUser for Receiver<'_> {
    fn run_stream(&self, id: u32, mut connection: Connection) {
        let sent_bytes = Arc::new(AtomicU64::new(0));
        let frames = Arc::new(AtomicU64::new(0));
        lock(&self.streams).insert(id, frames.clone());
        if !self.session.add_stream(id, connection.handle.clone(), sent_bytes.clone()) {
            return;
        }
        let mut buffer = vec![0; PIECE_BYTES];
        let error = loop {
            match self.frame(&mut connection.reader, &mut buffer, &sent_bytes) {
                Ok(()) => frames.fetch_add(1, Relaxed),
                Err(error) => break error,
            };
        };
        if !self.session.is_over() {
            // A stranger's frame harms its own copy: what cannot be understood ends it.
            if error.kind() == io::ErrorKind::InvalidInput {
                self.session.fail_protocol(error);
            } else {
                self.session.retry(format!("stream {id} is lost: {error}"));
            }
        }
        lock(&self.streams).remove(&id);
        self.session.say(&Message::StreamEnded { id, frames: frames.load(Relaxed) });
        connection.handle.close();
    }
}

fn protocol(error: copy::WireError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}

impl Receiver<'_> {
    /// Takes one frame. An error is the stream's, or ends the copy.
    fn frame(&self, reader: &mut dyn Read, buffer: &mut [u8], sent_bytes: &AtomicU64) -> io::Result<()> {
        let mut head = [0; HEAD_BYTES];
        reader.read_exact(&mut head)?;
        let head = FrameHead::decode(&head).map_err(protocol)?;
        let file = self.file(head.number).filter(|file| file.generation == head.generation);
        if let Some(file) = &file {
            if head.chunk >= file.plan.count() || u64::from(head.length) != file.plan.length(head.chunk) {
                return Err(protocol(copy::WireError("a chunk that the file has not")));
            }
        }
        self.wait_for_room()?;
        // Nothing is written twice, and nothing of a file that is over.
        let is_wanted = |file: &Arc<ReceiveFile>| {
            let inner = lock(&file.inner);
            !inner.is_gone && inner.hashes.get(head.chunk).is_none()
        };
        let mut target = file.filter(is_wanted).map(|file| Target { file, part: None });
        let mut at = target.as_ref().map_or(0, |target| target.file.plan.begin(head.chunk));
        let mut hasher = target.as_ref().map(|target| target.file.plan.hasher(head.chunk));
        let mut left = head.length;
        let mut is_same = false;
        let (mut came, mut reused) = (0, 0);
        while left > 0 {
            let mut piece = [0; PIECE_HEAD_BYTES];
            reader.read_exact(&mut piece)?;
            let piece = Piece::decode(piece, left).map_err(protocol)?;
            let length = match piece {
                Piece::Data(length) => {
                    let data = &mut buffer[..length as usize];
                    reader.read_exact(data)?;
                    sent_bytes.fetch_add(u64::from(length), Relaxed);
                    if let Some(hasher) = &mut hasher {
                        hasher.update(data);
                    }
                    came += u64::from(length);
                    self.write(&mut target, |part| part.write_at(at, data))?;
                    length
                }
                Piece::Zeros(length) => {
                    if let Some(hasher) = &mut hasher {
                        hasher.zeros(u64::from(length));
                    }
                    reused += u64::from(length);
                    self.write(&mut target, |part| part.hole(at, at + u64::from(length)))?;
                    length
                }
                Piece::Same(length) => {
                    if length != head.length {
                        return Err(protocol(copy::WireError("a chunk that is the same in part")));
                    }
                    is_same = true;
                    reused += u64::from(length);
                    length
                }
                Piece::Abort => return Ok(()),
            };
            at += u64::from(length);
            left -= length;
            self.session.heard();
        }
        let mut tail: ChunkHash = [0; TAIL_BYTES];
        reader.read_exact(&mut tail)?;
        if head.length == 0 {
            // An empty file has a part too.
            self.write(&mut target, |_| Ok(()))?;
        }
        let (Some(Target { file, part }), Some(hasher)) = (target, hasher) else { return Ok(()) };
        drop(part);
        if is_same {
            return self.same(&file, head.chunk, tail, reused);
        }
        if hasher.finish() == tail {
            super::state::count_came(self.session, came, reused);
            self.written(&file, head.chunk, tail, Some(came));
        } else {
            self.damaged(&file, head.chunk);
        }
        Ok(())
    }

    /// The sender says that a chunk is as the base has it.
    fn same(&self, file: &Arc<ReceiveFile>, chunk: u64, hash: ChunkHash, bytes: u64) -> io::Result<()> {
        let is_pending = {
            let mut inner = lock(&file.inner);
            let known = inner.base_hashes.binary_search_by_key(&chunk, |&(chunk, _)| chunk);
            if known.is_err() || inner.base_hashes[known.unwrap_or(0)].1 != hash {
                return Err(protocol(copy::WireError("a chunk that is said to be the same, and is not")));
            }
            // Nothing differs so far: perhaps the file stays as it is.
            let is_pending = inner.part.is_none() && !inner.is_gone;
            if inner.base_changed {
                drop(inner);
                self.want_again(file, vec![(chunk, chunk + 1)]);
                return Ok(());
            }
            if is_pending && inner.hashes.set(chunk, hash) {
                inner.same.push((chunk, hash));
            }
            is_pending
        };
        super::state::count_came(self.session, 0, bytes);
        if is_pending {
            self.came(file, chunk);
            self.check_whole(file);
            return Ok(());
        }
        // The part of an earlier attempt has it in place.
        if file.base != Base::Resume {
            let begin = file.plan.begin(chunk);
            let mut target = Some(Target { file: file.clone(), part: None });
            self.write(&mut target, |part| part.take(begin, begin + bytes))?;
            if target.is_none() {
                return Ok(());
            }
        }
        self.written(file, chunk, hash, None);
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        let mut commit = lock(&self.commit);
        // Parts that wait for nothing but data are no reason to wait.
        let is_pending =
            |commit: &super::state::Commit| commit.is_busy || !commit.chunks.is_empty() || !commit.whole.is_empty();
        while (commit.bytes > DIRTY_BYTES || commit.open_parts > self.parts_max) && is_pending(&commit) {
            if self.session.is_over() {
                return Err(io::Error::other("the copy is over"));
            }
            self.commit_ready.notify_all();
            commit = wait(&self.commit_done, commit, GLANCE);
        }
        Ok(())
    }

    /// Writes to the part, if the chunk still has a file. One that cannot be written is left out, and the stream goes
    /// on.
    fn write(&self, target: &mut Option<Target>, write: impl Fn(&Part) -> io::Result<()>) -> io::Result<()> {
        let Some(Target { file, part }) = target else { return Ok(()) };
        if part.is_none() {
            // A full disk shows here too: a part needs an inode.
            *part = match self.try_entry(|| self.part(file)) {
                Some(Ok(part)) => part,
                Some(Err(fault)) => {
                    self.unwritable(file, fault.kind, fault.reason);
                    None
                }
                None => None,
            };
        }
        // Begun anew meanwhile: nothing of this try is written over the next one.
        let is_gone = lock(&file.inner).is_gone;
        let Some(to) = part.as_ref().filter(|_| !is_gone) else {
            *target = None;
            return Ok(());
        };
        let Err(error) = self.with_room(|| write(to)) else { return Ok(()) };
        if self.is_fatal(&error) {
            return Err(error);
        }
        if let Some(Target { file, part }) = target.take() {
            drop(part);
            self.unwritable(&file, FaultKind::Unwritable, error.to_string());
        }
        Ok(())
    }

    /// A wanted chunk has come.
    fn came(&self, file: &ReceiveFile, chunk: u64) {
        let mut state = lock(&self.state);
        state.wanted_chunks = state.wanted_chunks.saturating_sub(1);
        state.wanted_bytes = state.wanted_bytes.saturating_sub(file.plan.length(chunk));
        if state.wanted_chunks == 0 {
            self.commit_ready.notify_one();
        }
    }

    /// A chunk is written and its hash is right. `came`: received bytes of the chunk; `None`: it was taken over from
    /// the base.
    fn written(&self, file: &Arc<ReceiveFile>, chunk: u64, hash: ChunkHash, came: Option<u64>) {
        {
            let mut inner = lock(&file.inner);
            if came.is_none() && inner.base_changed {
                drop(inner);
                return self.want_again(file, vec![(chunk, chunk + 1)]);
            }
            if inner.is_gone || !inner.hashes.set(chunk, hash) {
                return;
            }
            inner.came += came.unwrap_or(0);
        }
        self.to_commit(file, chunk, hash);
        self.came(file, chunk);
        self.check_whole(file);
    }

    /// A chunk is not what its hash says: it is asked for again.
    fn damaged(&self, file: &Arc<ReceiveFile>, chunk: u64) {
        let times = {
            let mut inner = lock(&file.inner);
            inner.damaged += 1;
            inner.damaged
        };
        if times > DAMAGED_MAX {
            return self.unwritable(
                file,
                FaultKind::Unwritable,
                format!("chunks came damaged {}", plural(times.into(), "time")),
            );
        }
        self.session.retry(format!("{}: chunk {chunk} came damaged", copy::show_path(&file.entry.path)));
        self.want_again(file, vec![(chunk, chunk + 1)]);
    }

    /// Asks for chunks again.
    pub(super) fn want_again(&self, file: &ReceiveFile, runs: Vec<(u64, u64)>) {
        // More may always follow: the sender knows already what is here.
        let want =
            Want { number: file.number, generation: file.generation, more: true, chunks: WantChunks::Runs(runs) };
        self.session.say(&Message::Wants(vec![want]));
    }
}
