//! Delta: the file that is there is read and hashed, and the sender is told the hashes of its chunks.

use super::{ReceiveFile, Receiver};
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
            match self.destination.base(&file.entry, file.base) {
                Ok(base) => self.compare(&file, &base),
                Err(fault) => self.unwritable(&file, FaultKind::Unwritable, fault.reason),
            }
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
                match hash_chunk(file, base, chunk, &mut buffer) {
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

fn hash_chunk(file: &ReceiveFile, base: &File, chunk: u64, buffer: &mut [u8]) -> io::Result<copy::ChunkHash> {
    let mut hasher = file.plan.hasher(chunk);
    let (mut at, end) = (file.plan.begin(chunk), file.plan.begin(chunk) + file.plan.length(chunk));
    while at < end {
        let step = (end - at).min(buffer.len() as u64) as usize;
        base.read_exact_at(&mut buffer[..step], at)?;
        hasher.update(&buffer[..step]);
        at += step as u64;
    }
    Ok(hasher.finish())
}
