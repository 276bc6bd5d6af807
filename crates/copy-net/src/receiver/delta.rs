//! Delta: the file that is there is read and hashed, and the sender is told the hashes of its chunks.

use super::state::{ReceiveFile, Receiver};
use crate::destination::Base;
use crate::session::{lock, wait, GLANCE};
use copy::{FaultKind, Message, Want, WantChunks, PIECE_BYTES};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Hashes of one message, and bytes that are read for it, at most: the sender begins while this end still reads.
const HASHES: usize = 1024;
const READ_BYTES: u64 = 32 << 20;

impl Receiver<'_> {
    /// Hashes files that are there until the copy is over.
    pub fn run_delta(&self) {
        loop {
            let file = {
                let mut queue = lock(&self.delta);
                loop {
                    if self.session.is_over() {
                        return;
                    }
                    match queue.pop_front() {
                        Some(file) => break file,
                        None => queue = wait(&self.delta_ready, queue, GLANCE),
                    }
                }
            };
            if lock(&file.inner).is_gone {
                continue;
            }
            if file.base == Base::Resume {
                self.compare_part(&file);
                continue;
            }
            match self.destination.base(&file.entry, file.base) {
                Ok((base, identity)) => {
                    lock(&file.inner).base = Some(identity);
                    self.compare(&file, &base);
                }
                // A file that cannot be read differs.
                Err(fault) if fault.os_error == Some(libc::EACCES) => {
                    let (number, generation) = (file.number, file.generation);
                    let want = Want { number, generation, more: false, chunks: WantChunks::All };
                    self.session.say(&Message::Wants(vec![want]));
                }
                Err(fault) => self.unwritable(&file, FaultKind::Unwritable, fault.reason),
            }
        }
    }

    /// Tells the hashes of the doubted chunks of a part.
    fn compare_part(&self, file: &Arc<ReceiveFile>) {
        let (doubted, part) = {
            let mut inner = lock(&file.inner);
            (std::mem::take(&mut inner.doubted), inner.part.clone())
        };
        let mut buffer = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < doubted.len() {
            // A run of chunks, one after the other.
            let begin = doubted[at];
            let mut hashes = vec![];
            let mut wants = vec![];
            let mut read = 0;
            while at < doubted.len() && doubted[at] == begin + hashes.len() as u64 && read < READ_BYTES {
                let chunk = doubted[at];
                let hash = match &part {
                    Some(part) => hash_chunk(file, chunk, &mut buffer, &|buffer, at| part.read_at(at, buffer)),
                    None => return,
                };
                // One that cannot be read is wanted: no chunk has this hash.
                let hash = hash.unwrap_or([0; 32]);
                lock(&file.inner).base_hashes.push((chunk, hash));
                hashes.push(hash);
                read += file.plan.length(chunk);
                at += 1;
            }
            let more = at < doubted.len();
            wants.push(Want {
                number: file.number,
                generation: file.generation,
                more,
                chunks: WantChunks::Compare { begin, hashes },
            });
            if !self.session.wait_said() || lock(&file.inner).is_gone {
                return;
            }
            self.session.say(&Message::Wants(wants));
        }
    }

    /// Tells the hashes of all chunks that the base has in full length; others are wanted.
    fn compare(&self, file: &Arc<ReceiveFile>, base: &File) {
        let mut buffer = vec![0; PIECE_BYTES];
        let count = file.plan.count();
        let mut chunk = 0;
        while chunk < count {
            let begin = chunk;
            let mut hashes = vec![];
            let mut read = 0;
            let mut is_end = false;
            while chunk < count && hashes.len() < HASHES && read < READ_BYTES {
                match hash_chunk(file, chunk, &mut buffer, &|buffer, at| base.read_exact_at(buffer, at)) {
                    Ok(hash) => {
                        lock(&file.inner).base_hashes.push((chunk, hash));
                        hashes.push(hash);
                        read += file.plan.length(chunk);
                        chunk += 1;
                    }
                    // It ends before, or cannot be read here: the rest is wanted.
                    Err(_) => {
                        is_end = true;
                        break;
                    }
                }
            }
            let mut wants = vec![];
            let mut want = |more, chunks| {
                wants.push(Want { number: file.number, generation: file.generation, more, chunks });
            };
            if !hashes.is_empty() {
                want(is_end || chunk < count, WantChunks::Compare { begin, hashes });
            }
            if is_end {
                want(false, WantChunks::Runs(vec![(chunk, count)]));
                chunk = count;
            }
            if !self.session.wait_said() || lock(&file.inner).is_gone {
                return;
            }
            self.session.say(&Message::Wants(wants));
        }
    }
}

fn hash_chunk(
    file: &ReceiveFile,
    chunk: u64,
    buffer: &mut [u8],
    read: &dyn Fn(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<copy::ChunkHash> {
    let mut hasher = file.plan.hasher(chunk);
    let (mut at, end) = (file.plan.begin(chunk), file.plan.begin(chunk) + file.plan.length(chunk));
    while at < end {
        let step = (end - at).min(buffer.len() as u64) as usize;
        read(&mut buffer[..step], at)?;
        hasher.update(&buffer[..step]);
        at += step as u64;
    }
    Ok(hasher.finish())
}
