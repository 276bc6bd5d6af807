//! Arbitrary bytes of the other end and of the disk: each function takes any, and panics when an invariant is broken.
//! `cargo test` runs them on some thousand inputs; `fuzz/` runs them under libFuzzer.

#[cfg(test)]
mod drawn;

use copy::{
    check_path, whole_records, FileKey, FrameHead, JournalIndex, Message, Piece, Plan, WantChunks, CHUNK_MAX, FILE_MAX,
    HEAD_BYTES, PIECE_BYTES, PIECE_HEAD_BYTES, TAIL_BYTES,
};

/// Takes any bytes.
pub type Hostile = fn(&[u8]);

/// Name and function of each.
pub const ALL: [(&str, Hostile); 4] =
    [("copy-message", message), ("copy-frames", frames), ("copy-journal", journal), ("copy-records", records)];

/// One message: what is taken keeps its bounds, and is the same when it is written and read again.
fn message(bytes: &[u8]) {
    let Ok(message) = Message::decode(bytes) else { return };
    match &message {
        Message::Entries { entries, .. } => entries.iter().for_each(|entry| {
            assert!(check_path(&entry.entry.path).is_ok() && entry.exceeds().is_none());
            if let copy::EntryKind::File { size, .. } = entry.entry.kind {
                let plan = Plan::new(size, None);
                assert!(size <= FILE_MAX && plan.count() <= 1 << 24 && plan.length(plan.count() - 1) <= CHUNK_MAX);
            }
        }),
        Message::Wants(wants) => wants.iter().for_each(|want| match &want.chunks {
            WantChunks::All => {}
            WantChunks::Runs(runs) => {
                assert!(runs.iter().all(|(begin, end)| begin < end));
                assert!(runs.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            }
            WantChunks::Compare { hashes, .. } => assert!(!hashes.is_empty()),
        }),
        _ => {}
    }
    let mut again = vec![];
    message.encode(&mut again);
    assert_eq!(Message::decode(&again[4..]).as_ref(), Ok(&message));
}

/// Frames of a stream, one after the other: no piece is beyond its chunk or what a side keeps.
fn frames(mut bytes: &[u8]) {
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        let Ok(head) = FrameHead::decode(head) else { return };
        assert!(u64::from(head.length) <= CHUNK_MAX && FrameHead::decode(&head.encode()) == Ok(head));
        bytes = rest;
        let mut left = head.length;
        while left > 0 {
            let Some((piece, rest)) = bytes.split_first_chunk::<PIECE_HEAD_BYTES>() else { return };
            let Ok(piece) = Piece::decode(*piece, left) else { return };
            bytes = rest;
            let length = match piece {
                Piece::Data(length) => {
                    assert!(length as usize <= PIECE_BYTES);
                    bytes = bytes.get(length as usize..).unwrap_or_default();
                    length
                }
                Piece::Zeros(length) | Piece::Same(length) => length,
                Piece::Abort => break,
            };
            assert!(length > 0 && length <= left);
            left -= length;
        }
        bytes = bytes.get(TAIL_BYTES..).unwrap_or_default();
    }
}

/// A journal as it is found: what counts as whole is read, and reading it again gives the same.
fn journal(bytes: &[u8]) {
    let whole = whole_records(bytes);
    assert!(whole <= bytes.len() && whole_records(&bytes[..whole]) == whole);
    let _ = JournalIndex::replay(bytes).bytes();
}

/// A journal whose records have the right sums and any bodies: each begins with its length.
fn records(mut bytes: &[u8]) {
    let mut all = vec![];
    while let Some((&length, rest)) = bytes.split_first() {
        let (body, rest) = rest.split_at(usize::from(length).min(rest.len()));
        bytes = rest;
        all.extend((body.len() as u32).to_be_bytes());
        all.extend(crc32c::crc32c(body).to_be_bytes());
        all.extend(body);
    }
    journal(&all);
    let mut index = JournalIndex::replay(&all);
    // Bodies of zeros have this key.
    let known = index.remove(&FileKey { path: [0; 16], content: [0; 16] });
    assert!(known.len() * 33 <= all.len());
}
