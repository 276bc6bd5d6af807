//! The sender's journal: hashes of chunks that were read, so that a resumed copy does not read them again.

use crate::destination::user_state_folder;
use crate::error::{CopyError, ErrorKind};
use crate::journal_file::JournalFile;
use copy::{whole_records, ChunkHash, FileKey, JournalIndex, Record};
use std::path::PathBuf;

/// See the module. A hash holds for the identity of the source that is in its key; a record that is lost costs a read.
pub(crate) struct HashJournal {
    file: JournalFile,
    index: JournalIndex,
    /// Not appended yet: by file, in the order they came.
    pending: Vec<(FileKey, Vec<(u64, ChunkHash)>)>,
    path: PathBuf,
}

impl HashJournal {
    pub fn open(copy: &str) -> Result<HashJournal, CopyError> {
        let path = user_state_folder()?.join(copy).join("sender.journal");
        let io =
            |error: std::io::Error| CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", path.display()) };
        let (file, records) = JournalFile::open(&path, whole_records).map_err(io)?;
        Ok(HashJournal { file, index: JournalIndex::replay(&records), pending: vec![], path })
    }

    /// Hashes of an earlier attempt.
    pub fn known(&mut self, key: &FileKey) -> Vec<(u64, ChunkHash)> {
        self.index.remove(key)
    }

    pub fn note(&mut self, key: &FileKey, chunk: u64, hash: ChunkHash) {
        // Streams work on few files at once.
        match self.pending.iter_mut().rev().take(16).find(|(known, _)| known == key) {
            Some((_, chunks)) => chunks.push((chunk, hash)),
            None => self.pending.push((*key, vec![(chunk, hash)])),
        }
    }

    /// Appends and syncs what was noted. An error costs reading again, and is no reason to end a copy.
    pub fn sync(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut records = Vec::new();
        for (key, chunks) in self.pending.drain(..) {
            // Bytes are told by the receiver's journal.
            Record::Chunks { key, bytes: 0, chunks }.encode(&mut records);
        }
        let _ = self.file.append(&records).and_then(|()| self.file.sync());
    }

    /// The copy is done.
    pub fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
