//! Journals: records of chunks that are durable (receiver), or whose hashes are known (sender).
//!
//! A record is its length (4 bytes), the CRC32C of what follows (4 bytes), and a body. A file goes by a key of its
//! path; its chunks hold for one content of the source, which goes by a key too.

use crate::entry::Entry;
use crate::tree::ChunkHash;
use crate::wire::WireError;
use crate::wire::{put_number, Decoder};
use std::collections::BTreeMap;

/// Bytes before a body.
const HEAD: usize = 8;
/// Most bytes of a body.
const BODY_MAX: usize = 1 << 20;
/// Chunks of one record; more go to several.
const CHUNKS_MAX: usize = 8192;

/// A file of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileKey {
    /// Of its path.
    pub path: [u8; 16],
    /// Of the source's identity and the length of its chunks.
    pub content: [u8; 16],
}

impl FileKey {
    /// Key of an entry. The device is not in it: the number of one disk may differ after a reboot.
    pub fn new(entry: &Entry, chunk_bytes: u64) -> FileKey {
        let mut path = blake3::Hasher::new();
        for name in &entry.path {
            path.update(&(name.len() as u64).to_le_bytes());
            path.update(name);
        }
        let identity = &entry.identity;
        let mut content = blake3::Hasher::new();
        for number in [
            identity.inode,
            identity.size,
            identity.modified.seconds as u64,
            u64::from(identity.modified.nanoseconds),
            identity.changed.seconds as u64,
            u64::from(identity.changed.nanoseconds),
            chunk_bytes,
        ] {
            content.update(&number.to_le_bytes());
        }
        let short = |hasher: &blake3::Hasher| {
            let mut key = [0; 16];
            key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
            key
        };
        FileKey { path: short(&path), content: short(&content) }
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The file is begun anew: earlier chunks of it count no more.
    Begin {
        /// The file.
        key: FileKey,
    },
    /// Chunks of the file with their hashes.
    Chunks {
        /// The file.
        key: FileKey,
        /// Their bytes, all together.
        bytes: u64,
        /// Chunks.
        chunks: Vec<(u64, ChunkHash)>,
    },
    /// Chunks that are not what they were.
    Lost {
        /// The file.
        key: FileKey,
        /// Chunks.
        chunks: Vec<u64>,
    },
}

impl Record {
    /// Appends it, as several records if it is long.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Begin { key } => put_record(out, 0, key, |_| {}),
            Record::Chunks { key, bytes, chunks } => {
                for (at, part) in chunks.chunks(CHUNKS_MAX).enumerate() {
                    put_record(out, 1, key, |out| {
                        put_number(out, if at == 0 { *bytes } else { 0 });
                        put_number(out, part.len() as u64);
                        for (chunk, hash) in part {
                            put_number(out, *chunk);
                            out.extend_from_slice(hash);
                        }
                    });
                }
            }
            Record::Lost { key, chunks } => {
                for part in chunks.chunks(CHUNKS_MAX) {
                    put_record(out, 2, key, |out| {
                        put_number(out, part.len() as u64);
                        part.iter().for_each(|chunk| put_number(out, *chunk));
                    });
                }
            }
        }
    }

    fn decode(body: &[u8]) -> Result<Record, WireError> {
        let mut from = Decoder::new(body);
        let kind = from.byte()?;
        let key = FileKey { path: from.array()?, content: from.array()? };
        let record = match kind {
            0 => Record::Begin { key },
            1 => Record::Chunks {
                key,
                bytes: from.number()?,
                chunks: (0..from.count(33)?)
                    .map(|_| Ok((from.number()?, from.array()?)))
                    .collect::<Result<Vec<_>, WireError>>()?,
            },
            2 => Record::Lost {
                key,
                chunks: (0..from.count(1)?).map(|_| from.number()).collect::<Result<Vec<_>, WireError>>()?,
            },
            _ => return Err(WireError("a record of no kind")),
        };
        from.end()?;
        Ok(record)
    }
}

fn put_record(out: &mut Vec<u8>, kind: u8, key: &FileKey, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; HEAD]);
    out.push(kind);
    out.extend_from_slice(&key.path);
    out.extend_from_slice(&key.content);
    body(out);
    let length = (out.len() - begin - HEAD) as u32;
    let sum = crc32c::crc32c(&out[begin + HEAD..]);
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
    out[begin + 4..begin + HEAD].copy_from_slice(&sum.to_be_bytes());
}

/// The first record of `bytes` and its length; None: it is torn, or none.
fn next_record(bytes: &[u8]) -> Option<(Record, usize)> {
    let head = bytes.get(..HEAD)?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let sum = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    if length > BODY_MAX {
        return None;
    }
    let body = bytes.get(HEAD..HEAD + length)?;
    if crc32c::crc32c(body) != sum {
        return None;
    }
    Some((Record::decode(body).ok()?, HEAD + length))
}

/// Bytes of whole records at the beginning: what comes behind was torn by a crash.
pub fn whole_records(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some((_, length)) = next_record(&bytes[at..]) {
        at += length;
    }
    at
}

/// Content of a journal, by file.
#[derive(Clone, Debug, Default)]
pub struct JournalIndex {
    files: BTreeMap<[u8; 16], Known>,
}

#[derive(Clone, Debug)]
struct Known {
    content: [u8; 16],
    bytes: u64,
    chunks: Vec<(u64, ChunkHash)>,
}

impl JournalIndex {
    /// Replays whole records.
    pub fn replay(bytes: &[u8]) -> JournalIndex {
        let mut index = JournalIndex::default();
        let mut at = 0;
        while let Some((record, length)) = next_record(&bytes[at..]) {
            index.take(record);
            at += length;
        }
        index
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Begin { key } => {
                self.files.insert(key.path, Known { content: key.content, bytes: 0, chunks: vec![] });
            }
            Record::Chunks { key, bytes, chunks } => {
                let known =
                    self.files.entry(key.path).or_insert(Known { content: key.content, bytes: 0, chunks: vec![] });
                if known.content != key.content {
                    *known = Known { content: key.content, bytes: 0, chunks: vec![] };
                }
                known.bytes = known.bytes.saturating_add(bytes);
                known.chunks.reserve_exact(chunks.len());
                known.chunks.extend(chunks);
            }
            Record::Lost { key, chunks } => {
                if let Some(known) = self.files.get_mut(&key.path) {
                    known.chunks.retain(|(chunk, _)| !chunks.contains(chunk));
                }
            }
        }
    }

    /// Chunks of a file, in the order of their records; empty: nothing is known of this content. They leave the index.
    pub fn remove(&mut self, key: &FileKey) -> Vec<(u64, ChunkHash)> {
        match self.files.get(&key.path) {
            Some(known) if known.content == key.content => {
                self.files.remove(&key.path).map(|known| known.chunks).unwrap_or_default()
            }
            _ => vec![],
        }
    }

    /// Bytes of all chunks that it speaks of.
    pub fn bytes(&self) -> u64 {
        self.files.values().fold(0, |sum, known| sum.saturating_add(known.bytes))
    }
}
