//! Messages between the ends, on a connection of their own.

use crate::entry_wire::WireEntry;
use crate::report::FaultKind;
use crate::shape::SourcesShape;
use crate::tree::ChunkHash;
use crate::wire::{put_bytes, put_number};
use crate::wire::{Decoder, WireError};

/// Version of messages and frames: both ends have the same, or the copy ends at once.
pub const PROTOCOL: u64 = 3;
/// Most bytes of one message.
pub const MESSAGE_MAX: usize = 1 << 20;
/// Entries in one message, at most.
pub const ENTRIES_MAX: usize = 4096;
/// Hashes in one message, at most: 256 KiB.
pub const HASHES_MAX: usize = 8192;
const TEXT_MAX: usize = 4096;

/// A message of one end to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Each end first: version, name of the copy, its options as JSON; the sender adds what the sources are.
    Hello {
        /// [`PROTOCOL`].
        protocol: u64,
        /// Name of the copy.
        copy: String,
        /// True at the end that sends data.
        is_sender: bool,
        /// Options as JSON: both ends have the same.
        options: String,
        /// Shape of the sources.
        shape: Option<SourcesShape>,
        /// Receiver: bytes that it has from earlier attempts.
        resumed_bytes: u64,
    },
    /// Asks for a `Pong`; each end sends one when it has said nothing for a while.
    Ping,
    /// Answers a `Ping`.
    Pong,
    /// This end gives up.
    Abort {
        /// Kind of the error, as `copy-net` numbers `ErrorKind`.
        kind: u8,
        /// One line.
        text: String,
    },
    /// Sender: so many data streams should be open; the end that connects makes them.
    Streams(u32),
    /// Sender: this stream is of no use any more.
    StreamLost {
        /// Number of the stream.
        id: u32,
    },
    /// Receiver: a stream has ended after so many frames that were taken; all later ones are to be sent again.
    StreamEnded {
        /// Number of the stream.
        id: u32,
        /// Frames.
        frames: u64,
    },
    /// Sender: entries in order, numbered from `first`.
    Entries {
        /// Number of the first.
        first: u64,
        /// The entries.
        entries: Vec<WireEntry>,
    },
    /// Sender: there are no more entries.
    End {
        /// Entries in all.
        entries: u64,
        /// No source was left out: what the sources do not have may go (`mirror`).
        complete: bool,
    },
    /// Sender: a file was read to its end and did not change meanwhile.
    FileHash {
        /// The entry.
        number: u64,
        /// Of which try.
        generation: u32,
        /// BLAKE3 of its content.
        hash: [u8; 32],
    },
    /// Sender: the file has changed; what was sent of it is worth nothing.
    Again {
        /// The entry.
        number: u64,
        /// The try that begins.
        generation: u32,
        /// As it is now.
        entry: Box<WireEntry>,
    },
    /// Sender: the file is left out.
    Dropped {
        /// The entry.
        number: u64,
        /// Kind of the reason.
        kind: FaultKind,
        /// In one line.
        reason: String,
    },
    /// Sender: entries that are not announced, since their kind is not copied: hashes of their paths. `mirror` leaves
    /// what has these names.
    LeftOut(Vec<u64>),
    /// Receiver: what is to be sent.
    Wants(Vec<Want>),
    /// Receiver: the hash of `FileHash` is not that of what came.
    Mismatch {
        /// The entry.
        number: u64,
        /// Of which try.
        generation: u32,
    },
    /// Receiver: entries that are done with.
    Concluded(Vec<(u64, Outcome)>),
    /// Receiver: state of its disk and its streams.
    Durable {
        /// Bytes of files that are synced, in this attempt.
        bytes: u64,
        /// Frames that were taken, by stream.
        frames: Vec<(u32, u64)>,
    },
    /// Receiver: all is done and durable.
    Finished {
        /// BLAKE3 of the manifest.
        root: [u8; 32],
        /// Entries that `mirror` removed.
        removed: u64,
        /// Faults that belong to no number: path, kind, reason.
        faults: Vec<(String, FaultKind, String)>,
    },
    /// Sender: it has the same root.
    Bye,
}

/// Chunks of a file that the receiver wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The entry.
    pub number: u64,
    /// Of which try.
    pub generation: u32,
    /// True if more follows for this file; at the last the sender knows what the receiver has.
    pub more: bool,
    /// The chunks.
    pub chunks: WantChunks,
}

/// See [`Want`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantChunks {
    /// All.
    All,
    /// Runs [begin, end).
    Runs(Vec<(u64, u64)>),
    /// From `begin` on: each that has another hash.
    Compare {
        /// First chunk.
        begin: u64,
        /// Hashes that the receiver has.
        hashes: Vec<ChunkHash>,
    },
}

/// End of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is at the destination.
    Done {
        /// True if nothing of it had to be sent.
        was_there: bool,
        /// BLAKE3 of the content, if the receiver has read or hashed it.
        hash: Option<[u8; 32]>,
        /// Metadata that could not be set.
        metadata: Option<String>,
    },
    /// It is not.
    Fault {
        /// Kind.
        kind: FaultKind,
        /// One line.
        reason: String,
    },
}

fn put_kind(out: &mut Vec<u8>, kind: FaultKind) {
    out.push(match kind {
        FaultKind::Unreadable => 0,
        FaultKind::Changed => 1,
        FaultKind::Unwritable => 2,
        FaultKind::Metadata => 3,
    });
}

fn kind(from: &mut Decoder<'_>) -> Result<FaultKind, WireError> {
    Ok(match from.byte()? {
        0 => FaultKind::Unreadable,
        1 => FaultKind::Changed,
        2 => FaultKind::Unwritable,
        3 => FaultKind::Metadata,
        _ => return Err(WireError("a fault of no kind")),
    })
}

fn flag(from: &mut Decoder<'_>) -> Result<bool, WireError> {
    Ok(from.bounded(1)? == 1)
}

fn small(from: &mut Decoder<'_>) -> Result<u32, WireError> {
    Ok(from.bounded(u64::from(u32::MAX))? as u32)
}

/// A text shortened to what a message takes.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    put_bytes(out, &text.as_bytes()[..end]);
}

impl Message {
    /// Appends length and message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[0; 4]);
        self.encode_body(out);
        let length = (out.len() - begin - 4) as u32;
        out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Message::Hello { protocol, copy, is_sender, options, shape, resumed_bytes } => {
                out.push(0);
                put_number(out, *protocol);
                put_text(out, copy);
                out.push(u8::from(*is_sender));
                put_bytes(out, options.as_bytes());
                put_number(out, shape.map_or(0, |shape| 1 + shape as u64));
                put_number(out, *resumed_bytes);
            }
            Message::Ping => out.push(1),
            Message::Pong => out.push(2),
            Message::Abort { kind, text } => {
                out.extend_from_slice(&[3, *kind]);
                put_text(out, text);
            }
            Message::Streams(count) => {
                out.push(4);
                put_number(out, u64::from(*count));
            }
            Message::StreamLost { id } => {
                out.push(5);
                put_number(out, u64::from(*id));
            }
            Message::StreamEnded { id, frames } => {
                out.push(6);
                put_number(out, u64::from(*id));
                put_number(out, *frames);
            }
            Message::Entries { first, entries } => {
                out.push(7);
                put_number(out, *first);
                put_number(out, entries.len() as u64);
                entries.iter().for_each(|entry| entry.encode(out));
            }
            Message::End { entries, complete } => {
                out.push(8);
                put_number(out, *entries);
                out.push(u8::from(*complete));
            }
            Message::FileHash { number, generation, hash } => {
                out.push(9);
                put_number(out, *number);
                put_number(out, u64::from(*generation));
                out.extend_from_slice(hash);
            }
            Message::Again { number, generation, entry } => {
                out.push(10);
                put_number(out, *number);
                put_number(out, u64::from(*generation));
                entry.encode(out);
            }
            Message::Dropped { number, kind, reason } => {
                out.push(11);
                put_number(out, *number);
                put_kind(out, *kind);
                put_text(out, reason);
            }
            Message::Wants(wants) => {
                out.push(12);
                put_number(out, wants.len() as u64);
                wants.iter().for_each(|want| want.encode(out));
            }
            Message::Mismatch { number, generation } => {
                out.push(13);
                put_number(out, *number);
                put_number(out, u64::from(*generation));
            }
            Message::Concluded(all) => {
                out.push(14);
                put_number(out, all.len() as u64);
                for (number, outcome) in all {
                    put_number(out, *number);
                    outcome.encode(out);
                }
            }
            Message::Durable { bytes, frames } => {
                out.push(15);
                put_number(out, *bytes);
                put_number(out, frames.len() as u64);
                for (id, count) in frames {
                    put_number(out, u64::from(*id));
                    put_number(out, *count);
                }
            }
            Message::Finished { root, removed, faults } => {
                out.push(16);
                out.extend_from_slice(root);
                put_number(out, *removed);
                put_number(out, faults.len() as u64);
                for (path, kind, reason) in faults {
                    put_text(out, path);
                    put_kind(out, *kind);
                    put_text(out, reason);
                }
            }
            Message::Bye => out.push(17),
            Message::LeftOut(paths) => {
                out.push(18);
                put_number(out, paths.len() as u64);
                paths.iter().for_each(|path| put_number(out, *path));
            }
        }
    }

    /// Reads the bytes behind a length.
    ///
    /// # Errors
    /// Anything that is no message.
    pub fn decode(bytes: &[u8]) -> Result<Message, WireError> {
        let mut from = Decoder::new(bytes);
        let message = Message::decode_body(&mut from)?;
        from.end()?;
        Ok(message)
    }

    fn decode_body(from: &mut Decoder<'_>) -> Result<Message, WireError> {
        Ok(match from.byte()? {
            0 => Message::Hello {
                protocol: from.number()?,
                copy: from.text(64)?,
                is_sender: flag(from)?,
                options: from.text(MESSAGE_MAX)?,
                shape: match from.number()? {
                    0 => None,
                    1 => Some(SourcesShape::OneFile),
                    2 => Some(SourcesShape::OneDevice),
                    3 => Some(SourcesShape::Tree),
                    _ => return Err(WireError("sources of no shape")),
                },
                resumed_bytes: from.number()?,
            },
            1 => Message::Ping,
            2 => Message::Pong,
            3 => Message::Abort { kind: from.byte()?, text: from.text(TEXT_MAX)? },
            4 => Message::Streams(from.bounded(256)? as u32),
            5 => Message::StreamLost { id: small(from)? },
            6 => Message::StreamEnded { id: small(from)?, frames: from.number()? },
            7 => {
                let first = from.number()?;
                let count = from.count(15)?.min(ENTRIES_MAX + 1);
                if count > ENTRIES_MAX {
                    return Err(WireError("more than 4096 entries in a message"));
                }
                let entries = (0..count).map(|_| WireEntry::decode(from)).collect::<Result<Vec<_>, _>>()?;
                Message::Entries { first, entries }
            }
            8 => Message::End { entries: from.number()?, complete: flag(from)? },
            9 => Message::FileHash { number: from.number()?, generation: small(from)?, hash: from.array()? },
            10 => Message::Again {
                number: from.number()?,
                generation: small(from)?,
                entry: Box::new(WireEntry::decode(from)?),
            },
            11 => Message::Dropped { number: from.number()?, kind: kind(from)?, reason: from.text(TEXT_MAX)? },
            12 => Message::Wants((0..from.count(3)?).map(|_| Want::decode(from)).collect::<Result<Vec<_>, _>>()?),
            13 => Message::Mismatch { number: from.number()?, generation: small(from)? },
            14 => Message::Concluded(
                (0..from.count(2)?)
                    .map(|_| Ok((from.number()?, Outcome::decode(from)?)))
                    .collect::<Result<Vec<_>, WireError>>()?,
            ),
            15 => Message::Durable {
                bytes: from.number()?,
                frames: (0..from.count(2)?)
                    .map(|_| Ok((small(from)?, from.number()?)))
                    .collect::<Result<Vec<_>, WireError>>()?,
            },
            16 => Message::Finished {
                root: from.array()?,
                removed: from.number()?,
                faults: (0..from.count(3)?)
                    .map(|_| Ok((from.text(TEXT_MAX)?, kind(from)?, from.text(TEXT_MAX)?)))
                    .collect::<Result<Vec<_>, WireError>>()?,
            },
            17 => Message::Bye,
            18 => Message::LeftOut((0..from.count(1)?).map(|_| from.number()).collect::<Result<Vec<_>, _>>()?),
            _ => return Err(WireError("a message of no kind")),
        })
    }
}

impl Want {
    fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.number);
        put_number(out, u64::from(self.generation));
        let more = u8::from(self.more) << 7;
        match &self.chunks {
            WantChunks::All => out.push(more),
            WantChunks::Runs(runs) => {
                out.push(more | 1);
                put_number(out, runs.len() as u64);
                let mut at = 0;
                for (begin, end) in runs {
                    put_number(out, begin - at);
                    put_number(out, end - begin);
                    at = *end;
                }
            }
            WantChunks::Compare { begin, hashes } => {
                out.push(more | 2);
                put_number(out, *begin);
                put_number(out, hashes.len() as u64);
                hashes.iter().for_each(|hash| out.extend_from_slice(hash));
            }
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Want, WireError> {
        let (number, generation, what) = (from.number()?, small(from)?, from.byte()?);
        let chunks = match what & 0x7f {
            0 => WantChunks::All,
            1 => {
                let mut at = 0_u64;
                let mut runs = Vec::new();
                for _ in 0..from.count(2)? {
                    let begin = at.checked_add(from.number()?);
                    let length = from.number()?;
                    let end = begin.and_then(|begin| begin.checked_add(length));
                    let (Some(begin), Some(end)) = (begin, end) else {
                        return Err(WireError("a run beyond 64 bits"));
                    };
                    if length == 0 {
                        return Err(WireError("a run of no chunks"));
                    }
                    runs.push((begin, end));
                    at = end;
                }
                WantChunks::Runs(runs)
            }
            2 => {
                let begin = from.number()?;
                let count = from.count(32)?;
                if count == 0 {
                    return Err(WireError("a comparison with no hashes"));
                }
                if count > HASHES_MAX {
                    return Err(WireError("more than 8192 hashes in a message"));
                }
                let hashes = (0..count).map(|_| from.array()).collect::<Result<Vec<_>, _>>()?;
                WantChunks::Compare { begin, hashes }
            }
            _ => return Err(WireError("a want of no kind")),
        };
        Ok(Want { number, generation, more: what & 0x80 != 0, chunks })
    }
}

impl Outcome {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Outcome::Done { was_there, hash, metadata } => {
                out.push(
                    1 | u8::from(*was_there) << 1 | u8::from(hash.is_some()) << 2 | u8::from(metadata.is_some()) << 3,
                );
                if let Some(hash) = hash {
                    out.extend_from_slice(hash);
                }
                if let Some(reason) = metadata {
                    put_text(out, reason);
                }
            }
            Outcome::Fault { kind, reason } => {
                out.push(0);
                put_kind(out, *kind);
                put_text(out, reason);
            }
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Outcome, WireError> {
        let flags = from.byte()?;
        if flags == 0 {
            return Ok(Outcome::Fault { kind: kind(from)?, reason: from.text(TEXT_MAX)? });
        }
        if flags & 1 == 0 || flags > 15 {
            return Err(WireError("an outcome of no kind"));
        }
        Ok(Outcome::Done {
            was_there: flags & 2 != 0,
            hash: if flags & 4 != 0 { Some(from.array()?) } else { None },
            metadata: if flags & 8 != 0 { Some(from.text(TEXT_MAX)?) } else { None },
        })
    }
}
