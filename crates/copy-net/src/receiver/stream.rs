//! A data stream of the receiver: its thread takes frames, hashes and writes them.

use super::{ReceiveFile, Receiver, Written};
use crate::destination::Part;
use crate::links::StreamUser;
use crate::session::{lock, wait, GLANCE};
use crate::transport::Connection;
use copy::{ChunkHash, FaultKind, FrameHead, Message, Piece, Want, WantChunks};
use copy::{HEAD_BYTES, PIECE_BYTES, PIECE_HEAD_BYTES, TAIL_BYTES};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Bytes that are written and not synced, at most: beyond, streams wait for the commit.
const DIRTY_BYTES: u64 = 1 << 30;
/// Times that chunks of one file may come damaged.
const DAMAGED_MAX: u32 = 100;

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
        // What is durable, or of a file that is over, is not written again.
        let mut target = match &file {
            Some(file) if lock(&file.inner).hashes.get(head.chunk).is_none() => match self.part(file) {
                Ok(Some(part)) => Some((file.clone(), part)),
                Ok(None) => None,
                Err(fault) => {
                    self.begin_failed(file, fault);
                    None
                }
            },
            _ => None,
        };
        let (mut at, mut left) = (file.as_ref().map_or(0, |file| file.plan.begin(head.chunk)), head.length);
        let mut hasher = target.as_ref().map(|(file, _)| file.plan.hasher(head.chunk));
        let mut same = None;
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
                    if let Some((file, _)) = &target {
                        let inner = lock(&file.inner);
                        let known = inner.base_hashes.binary_search_by_key(&head.chunk, |&(chunk, _)| chunk);
                        same = Some(known.ok().map(|at| inner.base_hashes[at].1));
                    }
                    reused += u64::from(length);
                    // The part of an earlier attempt has it in place.
                    if file.as_ref().is_some_and(|file| file.base != crate::destination::Base::Resume) {
                        self.write(&mut target, |part| part.take(at, at + u64::from(length)))?;
                    }
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
        let (Some((file, part)), Some(hasher)) = (target, hasher) else { return Ok(()) };
        drop(part);
        let is_right = match same {
            None => hasher.finish() == tail,
            Some(known) => known == Some(tail),
        };
        if is_right {
            super::count_came(self.session, came, reused);
            self.written(&file, head.chunk, tail, came);
        } else {
            self.damaged(&file, head.chunk);
        }
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        let mut commit = lock(&self.commit);
        // Parts that wait for nothing but data are no reason to wait.
        let is_pending =
            |commit: &super::Commit| commit.is_busy || !commit.chunks.is_empty() || !commit.whole.is_empty();
        while (commit.bytes > DIRTY_BYTES || commit.open_parts > self.parts_max) && is_pending(&commit) {
            if self.session.is_over() {
                return Err(io::Error::other("the copy is over"));
            }
            self.commit_ready.notify_all();
            commit = wait(&self.commit_done, commit, GLANCE);
        }
        Ok(())
    }

    fn begin_failed(&self, file: &ReceiveFile, fault: copy::FileFault) {
        // A full disk shows here too: the part's folder needs an inode.
        let full = [libc::ENOSPC, libc::EDQUOT].map(|code| io::Error::from_raw_os_error(code));
        match full.into_iter().find(|error| fault.reason.contains(&error.to_string())) {
            Some(error) => {
                self.is_fatal(&error);
            }
            None => self.unwritable(file, fault.kind, fault.reason),
        }
    }

    /// Writes to the part, if the chunk has one. A file that cannot be written is left out, and the stream goes on.
    fn write(
        &self,
        target: &mut Option<(Arc<ReceiveFile>, Arc<Part>)>,
        write: impl FnOnce(&Part) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some((_, part)) = target else { return Ok(()) };
        let Err(error) = write(part) else { return Ok(()) };
        if self.is_fatal(&error) {
            return Err(error);
        }
        if let Some((file, part)) = target.take() {
            drop(part);
            self.unwritable(&file, FaultKind::Unwritable, error.to_string());
        }
        Ok(())
    }

    /// A chunk is written and its hash is right: it goes to the next commit.
    fn written(&self, file: &Arc<ReceiveFile>, chunk: u64, hash: ChunkHash, came: u64) {
        let length = file.plan.length(chunk);
        {
            let mut inner = lock(&file.inner);
            if inner.is_gone || !inner.hashes.set(chunk, hash) {
                return;
            }
            inner.came += came;
        }
        {
            let mut state = lock(&self.state);
            state.wanted_chunks = state.wanted_chunks.saturating_sub(1);
            state.wanted_bytes = state.wanted_bytes.saturating_sub(length);
        }
        {
            let mut commit = lock(&self.commit);
            if commit.chunks.is_empty() {
                commit.since_ns = path_net::monotonic_ns();
            }
            commit.bytes += length;
            commit.chunks.push(Written { file: file.clone(), chunk, hash });
        }
        self.check_whole(file);
        self.commit_ready.notify_one();
    }

    /// A chunk is not what its hash says: it is asked for again.
    fn damaged(&self, file: &Arc<ReceiveFile>, chunk: u64) {
        let times = {
            let mut inner = lock(&file.inner);
            inner.damaged += 1;
            inner.damaged
        };
        if times > DAMAGED_MAX {
            return self.unwritable(file, FaultKind::Unwritable, format!("chunks came damaged {times} times"));
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
