//! Messages, frames and journals: what is written is read again, and what a stranger wrote does no harm.

use copy::{
    check_path, hex, manifest_row, parse_shown_path, show_path, unhex, whole_records, CopyOptions, Entry, EntryKind,
    FaultKind, FileKey, FrameHead, Identity, JournalIndex, Manifest, Message, Outcome, Piece, Record, SourcesShape,
    Stamp, Want, WantChunks, WireEntry,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn stamp() -> impl Strategy<Value = Stamp> {
    (any::<i64>(), 0_u32..1_000_000_000).prop_map(|(seconds, nanoseconds)| Stamp { seconds, nanoseconds })
}

fn path() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>().prop_filter("a name", |&byte| byte != b'/' && byte != 0), 3..20), 0..6)
}

fn entry() -> impl Strategy<Value = WireEntry> {
    let kind = prop_oneof![
        (0..=copy::FILE_MAX).prop_map(|size| EntryKind::File { size, extents: None }),
        Just(EntryKind::Folder),
        vec(1_u8.., 1..50).prop_map(|target| EntryKind::Symlink { target }),
        any::<u64>().prop_map(|to| EntryKind::HardLink { to }),
        Just(EntryKind::Fifo),
        any::<(bool, u32, u32)>().prop_map(|(block, major, minor)| EntryKind::Device { block, major, minor }),
    ];
    let identity = (any::<(u64, u64, u64)>(), stamp(), stamp())
        .prop_map(|((device, inode, size), modified, changed)| Identity { device, inode, size, modified, changed });
    let xattrs = vec((vec(1_u8.., 1..20), vec(any::<u8>(), 0..30)), 0..3);
    (path(), path(), kind, 0_u32..0o10000, any::<(u32, u32)>(), stamp(), xattrs, identity).prop_map(
        |(path, first, kind, mode, (uid, gid), modified, xattrs, identity)| {
            let first = matches!(kind, EntryKind::HardLink { .. }).then_some(first);
            let content_left_out = kind == EntryKind::Folder && mode % 2 == 1;
            let is_source_link = matches!(kind, EntryKind::Symlink { .. }) && mode % 2 == 1;
            WireEntry {
                entry: Entry { path, kind, mode, uid, gid, modified, xattrs, identity },
                first,
                content_left_out,
                is_source_link,
            }
        },
    )
}

fn kind() -> impl Strategy<Value = FaultKind> {
    prop_oneof![
        Just(FaultKind::Unreadable),
        Just(FaultKind::Changed),
        Just(FaultKind::Unwritable),
        Just(FaultKind::Metadata)
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let run = vec((0_u64..1000, 1_u64..1000), 0..9).prop_map(|steps| {
        let mut at = 0;
        let runs = steps.into_iter().map(|(gap, length)| {
            let begin = at + gap;
            at = begin + length;
            (begin, at)
        });
        WantChunks::Runs(runs.collect())
    });
    let chunks = prop_oneof![
        Just(WantChunks::All),
        run,
        (any::<u64>(), vec(any::<[u8; 32]>(), 1..5)).prop_map(|(begin, hashes)| WantChunks::Compare { begin, hashes })
    ];
    let want = (any::<u64>(), any::<u32>(), any::<bool>(), chunks)
        .prop_map(|(number, generation, more, chunks)| Want { number, generation, more, chunks });
    let outcome = prop_oneof![
        (any::<bool>(), any::<Option<[u8; 32]>>(), proptest::option::of("[a-z ]{0,20}"))
            .prop_map(|(was_there, hash, metadata)| Outcome::Done { was_there, hash, metadata }),
        (kind(), "[a-z ]{0,20}").prop_map(|(kind, reason)| Outcome::Fault { kind, reason })
    ];
    prop_oneof![
        ("[0-9a-f]{32}", any::<bool>(), ".{0,50}", any::<u64>()).prop_map(
            |(copy, is_sender, options, resumed_bytes)| {
                let shape = is_sender.then_some(SourcesShape::OneDevice);
                Message::Hello { protocol: 1, copy, is_sender, options, shape, resumed_bytes }
            }
        ),
        (any::<u8>(), ".{0,50}").prop_map(|(kind, text)| Message::Abort { kind, text }),
        (0_u32..257).prop_map(Message::Streams),
        any::<(u32, u64)>().prop_map(|(id, frames)| Message::StreamEnded { id, frames }),
        (any::<u64>(), vec(entry(), 0..20)).prop_map(|(first, entries)| Message::Entries { first, entries }),
        any::<(u64, bool)>().prop_map(|(entries, complete)| Message::End { entries, complete }),
        any::<(u64, u32, [u8; 32])>().prop_map(|(number, generation, hash)| Message::FileHash {
            number,
            generation,
            hash
        }),
        (any::<(u64, u32)>(), entry()).prop_map(|((number, generation), entry)| Message::Again {
            number,
            generation,
            entry: Box::new(entry)
        }),
        (any::<u64>(), kind(), ".{0,50}").prop_map(|(number, kind, reason)| Message::Dropped { number, kind, reason }),
        vec(want, 0..20).prop_map(Message::Wants),
        vec((any::<u64>(), outcome), 0..20).prop_map(Message::Concluded),
        (any::<u64>(), vec(any::<(u32, u64)>(), 0..9)).prop_map(|(bytes, frames)| Message::Durable { bytes, frames }),
        (any::<([u8; 32], u64)>(), vec(("[a-z]{0,9}", kind(), "[a-z]{0,9}"), 0..5))
            .prop_map(|((root, removed), faults)| Message::Finished { root, removed, faults }),
        Just(Message::Bye),
        Just(Message::Ping),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_message_is_read_as_it_was_written(message in message()) {
        let mut bytes = vec![];
        message.encode(&mut bytes);
        prop_assert_eq!(u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len() - 4);
        prop_assert_eq!(Message::decode(&bytes[4..]).unwrap(), message);
    }

    #[test]
    fn a_message_that_is_cut_or_damaged_is_refused_or_another(
        message in message(),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let mut bytes = vec![];
        message.encode(&mut bytes);
        let body = &mut bytes[4..];
        let at = at.index(body.len());
        prop_assert!(Message::decode(&body[..at]).is_err());
        body[at] ^= 1 << bit;
        if let Ok(other) = Message::decode(body) {
            let mut again = vec![];
            other.encode(&mut again);
            prop_assert_eq!(Message::decode(&again[4..]).unwrap(), other);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in vec(any::<u8>(), 0..300)) {
        let _ = Message::decode(&bytes);
        let _ = JournalIndex::replay(&bytes);
        if let Some(head) = bytes.first_chunk() {
            let _ = FrameHead::decode(head);
        }
        if let Some(head) = bytes.first_chunk() {
            if let Ok(Piece::Data(length) | Piece::Zeros(length) | Piece::Same(length)) = Piece::decode(*head, 70_000) {
                prop_assert!((1..=70_000).contains(&length));
            }
        }
    }

    #[test]
    fn a_journal_gives_its_whole_records(
        files in vec((any::<u8>(), vec((any::<u16>(), any::<[u8; 32]>()), 1..20)), 1..10),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = vec![];
        let mut ends = vec![0];
        for (name, chunks) in &files {
            let key = FileKey { path: [*name; 16], content: [7; 16] };
            let chunks = chunks.iter().map(|&(chunk, hash)| (u64::from(chunk), hash)).collect();
            Record::Chunks { key, bytes: 1, chunks }.encode(&mut bytes);
            ends.push(bytes.len());
        }
        let cut = cut.index(bytes.len() + 1);
        let whole = whole_records(&bytes[..cut]);
        prop_assert_eq!(whole, *ends.iter().rfind(|&&end| end <= cut).unwrap());
        let count = ends.iter().position(|&end| end == whole).unwrap();
        let mut index = JournalIndex::replay(&bytes[..cut]);
        for (name, _) in &files[..count] {
            let expected: Vec<_> = files[..count].iter().filter(|(other, _)| other == name)
                .flat_map(|(_, chunks)| chunks).map(|&(chunk, hash)| (u64::from(chunk), hash)).collect();
            let key = FileKey { path: [*name; 16], content: [7; 16] };
            let known = index.remove(&key);
            prop_assert!(known.is_empty() || known == expected);
        }
    }
}

fn file(path: &[&[u8]], size: u64) -> Entry {
    Entry {
        path: path.iter().map(|name| name.to_vec()).collect(),
        kind: EntryKind::File { size, extents: None },
        mode: 0o644,
        uid: 1,
        gid: 2,
        modified: Stamp { seconds: 3, nanoseconds: 4 },
        xattrs: vec![],
        identity: Identity { inode: 5, size, ..Identity::default() },
    }
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in ["", ".", "..", "a/b", "a\0b", &"x".repeat(256)] {
        assert!(check_path(&[b"a".to_vec(), name.as_bytes().to_vec()]).is_err(), "{name:?}");
    }
    assert!(check_path(&vec![vec![b'x'; 255]; 17]).is_err());
    assert!(check_path(&[b"...".to_vec(), b"a b".to_vec()]).is_ok());
    for name in [&b".."[..], b"a/b"] {
        let mut bytes = vec![];
        Message::Entries {
            first: 0,
            entries: vec![WireEntry {
                entry: file(&[name], 1),
                first: None,
                content_left_out: false,
                is_source_link: false,
            }],
        }
        .encode(&mut bytes);
        assert!(Message::decode(&bytes[4..]).is_err());
    }
}

#[test]
fn records_of_another_content_count_no_more() {
    let old = FileKey::new(&file(&[b"a"], 10), 4096);
    let new = FileKey::new(&file(&[b"a"], 11), 4096);
    assert_eq!((old.path, old.content == new.content), (new.path, false));
    let mut bytes = vec![];
    Record::Chunks { key: old, bytes: 9, chunks: vec![(0, [1; 32]), (1, [2; 32])] }.encode(&mut bytes);
    assert_eq!(JournalIndex::replay(&bytes).remove(&new), []);
    Record::Lost { key: old, chunks: vec![1] }.encode(&mut bytes);
    assert_eq!(JournalIndex::replay(&bytes).remove(&old), [(0, [1; 32])]);
    Record::Chunks { key: new, bytes: 2, chunks: vec![(2, [3; 32])] }.encode(&mut bytes);
    assert_eq!(JournalIndex::replay(&bytes).remove(&old), []);
    assert_eq!(JournalIndex::replay(&bytes).bytes(), 2);
    assert_eq!(JournalIndex::replay(&bytes).remove(&new), [(2, [3; 32])]);
    Record::Begin { key: new }.encode(&mut bytes);
    assert_eq!(JournalIndex::replay(&bytes).remove(&new), []);
    // A byte that a disk lost ends the journal.
    bytes[20] ^= 1;
    assert_eq!(whole_records(&bytes), 0);
}

#[test]
fn the_root_is_the_hash_of_the_rows_in_order() {
    let options = CopyOptions::default();
    let rows: Vec<String> = [&b"a"[..], b"b\t\xff\\", b"c"]
        .iter()
        .map(|name| manifest_row(&file(&[name], 1), None, Some([0xab; 32]), &options))
        .collect();
    let hash = "ab".repeat(32);
    assert_eq!(rows[1], format!("b\\x09\\xff\\x5c\t1\t{hash}\tfile\t0644\t1\t2\t3.000000004\t-\n"));
    let mut manifest = Manifest::default();
    assert_eq!(manifest.conclude(2, Some(rows[2].clone())), "");
    assert_eq!(manifest.conclude(0, Some(rows[0].clone())), rows[0]);
    assert_eq!(manifest.conclude(1, None), rows[2]);
    assert_eq!(manifest.concluded(), 3);
    assert_eq!(manifest.root(), *blake3::hash((rows[0].clone() + &rows[2]).as_bytes()).as_bytes());
    assert_eq!(show_path(&[]), ".");
    assert_eq!(unhex(&hex(&[0, 255])), Some(vec![0, 255]));
    assert_eq!((unhex("0"), unhex("0g"), unhex("äb")), (None, None, None));
}

proptest! {
    #[test]
    fn a_shown_path_is_parsed_to_the_same_bytes(path in vec(vec(any::<u8>(), 1..9), 0..5)) {
        if check_path(&path).is_ok() {
            prop_assert_eq!(parse_shown_path(&show_path(&path)), Some(path));
        }
    }

    /// A text that no path shows is refused: two texts never mean one path.
    #[test]
    fn a_parsed_path_is_shown_as_the_same_text(text in "([a-z./]|\\\\|\\\\x[0-9a-fA-F]{1,2}|\u{e4}|\u{1})*") {
        if let Some(path) = parse_shown_path(&text) {
            let shown = show_path(&path);
            prop_assert_eq!(shown, text);
        }
    }
}
