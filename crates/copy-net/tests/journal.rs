//! Journal files: appended records come back, a torn tail goes.

use crate::folders::Folder;
use copy_net::JournalFile;
use std::fs;

/// Records of eight bytes that end in "\n".
fn whole(bytes: &[u8]) -> usize {
    bytes.chunks_exact(8).take_while(|record| record[7] == b'\n').count() * 8
}

#[test]
fn a_torn_tail_is_cut_and_appending_goes_on_after_the_last_whole_record() {
    let folder = Folder::new("journal");
    let path = folder.join("journal");
    let (mut journal, records) = JournalFile::open(&path, whole).unwrap();
    assert!(records.is_empty());
    journal.append(b"record1\nrecord2\n").unwrap();
    journal.sync().unwrap();
    journal.append(b"recor").unwrap();
    drop(journal);
    let (mut journal, records) = JournalFile::open(&path, whole).unwrap();
    assert_eq!(records, b"record1\nrecord2\n");
    journal.append(b"record3\n").unwrap();
    journal.sync().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"record1\nrecord2\nrecord3\n");
}

#[test]
fn a_link_in_place_of_a_journal_is_refused() {
    let folder = Folder::new("journal-link");
    fs::write(folder.join("victim"), "x").unwrap();
    std::os::unix::fs::symlink(folder.join("victim"), folder.join("journal")).unwrap();
    assert!(JournalFile::open(&folder.join("journal"), whole).is_err());
    assert_eq!(fs::read(folder.join("victim")).unwrap(), b"x");
}
