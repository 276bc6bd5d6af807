//! Copies from folder to folder: all metadata arrive, the same again does nothing, versions, mirrors, devices.

use crate::folders::{listing, Folder};
use crate::local_copy::{copy, COPY};
use crate::skip::skipped;
use copy::{CopyOptions, Entry, EntryKind, FaultKind, SourcesShape, Stamp};
use copy_net::{Base, Destination, ErrorKind, Existing};
use rustix::fs::{FileType, Mode, CWD};
use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink, FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes this thread, if it is root's, one of a user without rights: user 65534, no capabilities.
pub fn become_user() {
    if is_root() {
        // SAFETY: the raw call changes this thread alone, unlike that of libc.
        let result = unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) };
        assert_eq!(result, 0);
    }
}

fn set_time(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = rustix::fs::Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// A tree with one of everything.
fn everything(folder: &Path) {
    fs::create_dir_all(folder.join("a/b")).unwrap();
    fs::create_dir(folder.join("closed")).unwrap();
    fs::write(folder.join("a/empty"), "").unwrap();
    fs::write(folder.join("a/small"), "small").unwrap();
    fs::write(folder.join("a/b/big"), vec![7; 300_000]).unwrap();
    fs::write(folder.join("closed/in"), "in").unwrap();
    fs::write(folder.join(std::ffi::OsString::from("n\u{e4}me with\nnewline")), "x").unwrap();
    let bytes: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff\xfe*?[");
    fs::write(folder.join(bytes), "x").unwrap();
    symlink("../outside", folder.join("a/link")).unwrap();
    symlink("/absolute", folder.join("absolute")).unwrap();
    fs::hard_link(folder.join("a/small"), folder.join("hard")).unwrap();
    let sparse = File::create(folder.join("sparse")).unwrap();
    sparse.write_all_at(&[1; 5000], 1 << 20).unwrap();
    sparse.set_len((4 << 20) + 123).unwrap();
    rustix::fs::mknodat(CWD, folder.join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let set = rustix::fs::XattrFlags::empty();
    let _ = rustix::fs::setxattr(folder.join("a/small"), "user.note", b"\x00\x01", set);
    let _ = rustix::fs::setxattr(folder.join("a"), "user.note", b"folder", set);
    // An ACL as the kernel stores it (linux/posix_acl_xattr.h): owner, user 1, group, mask, others.
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in
        [(1_u16, 6_u16, u32::MAX), (2, 4, 1), (4, 4, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)]
    {
        acl.extend(tag.to_le_bytes());
        acl.extend(rights.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    let _ = rustix::fs::setxattr(folder.join("a/b/big"), "system.posix_acl_access", &acl, set);
    let _ = rustix::fs::setxattr(folder.join("a/b"), "system.posix_acl_default", &acl, set);
    if is_root() {
        chown(folder.join("a/empty"), Some(1234), Some(4321)).unwrap();
        std::os::unix::fs::lchown(folder.join("absolute"), Some(1234), Some(4321)).unwrap();
        // 1:3 is /dev/null.
        let null = rustix::fs::makedev(1, 3);
        // Containers may refuse to make devices.
        let _ = rustix::fs::mknodat(CWD, folder.join("null"), FileType::CharacterDevice, Mode::RUSR, null);
        let _ = rustix::fs::setxattr(folder.join("a/small"), "trusted.note", b"t", set);
    }
    fs::set_permissions(folder.join("a/empty"), PermissionsExt::from_mode(0o4751)).unwrap();
    fs::set_permissions(folder.join("a/small"), PermissionsExt::from_mode(0o444)).unwrap();
    fs::set_permissions(folder.join("closed"), PermissionsExt::from_mode(0o555)).unwrap();
    set_time(&folder.join("a/small"), -1, 999_999_999);
    set_time(&folder.join("a/link"), 1_000_000_000, 1);
    set_time(&folder.join("a/b"), 1_111_111_111, 123_456_789);
    set_time(&folder.join("a"), 1_111_111_112, 1);
    set_time(&folder.join("closed"), 1_111_111_113, 1);
    set_time(folder, 1_111_111_114, 7);
}

#[test]
fn everything_arrives_and_the_same_again_does_nothing() {
    let folder = Folder::new("everything");
    let (from, to) = (folder.join("from"), folder.join("to"));
    fs::create_dir(&from).unwrap();
    everything(&from);
    let options = CopyOptions::default();
    let sources = [folder.text("from") + "/"];
    let outcome = copy(&sources, &folder.text("to"), &options).unwrap();
    assert_eq!((outcome.faults, outcome.closed.faults), (vec![], vec![]));
    assert_eq!(listing(&from), listing(&to));
    assert!(fs::metadata(to.join("sparse")).unwrap().blocks() * 512 < 1 << 20);
    assert!(!to.join(".elephan-copy").exists());
    let again = copy(&sources, &folder.text("to"), &options).unwrap();
    assert_eq!((again.read_bytes, again.faults.len()), (0, 0));
    assert_eq!(listing(&from), listing(&to));
    fs::set_permissions(from.join("closed"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(to.join("closed"), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn what_differs_is_replaced_and_what_stands_in_the_way_goes() {
    let folder = Folder::new("replace");
    let (from, to) = (folder.join("from"), folder.join("to"));
    fs::create_dir_all(from.join("folder")).unwrap();
    fs::create_dir(&to).unwrap();
    let mut content = vec![1; 500_000];
    fs::write(to.join("changed"), &content).unwrap();
    content[250_000] = 2;
    content.extend([3; 100]);
    fs::write(from.join("changed"), &content).unwrap();
    fs::write(to.join("longer"), [1; 100_000]).unwrap();
    fs::write(from.join("longer"), [1; 10]).unwrap();
    fs::write(from.join("metadata"), "x").unwrap();
    fs::copy(from.join("metadata"), to.join("metadata")).unwrap();
    for folder in [&from, &to] {
        set_time(&folder.join("metadata"), 5, 5);
    }
    fs::set_permissions(to.join("metadata"), PermissionsExt::from_mode(0o777)).unwrap();
    fs::write(from.join("was-link"), "own").unwrap();
    symlink("metadata", to.join("was-link")).unwrap();
    fs::write(from.join("was-folder"), "x").unwrap();
    fs::create_dir(to.join("was-folder")).unwrap();
    symlink("x", from.join("was-file")).unwrap();
    fs::write(to.join("was-file"), "x").unwrap();
    symlink("/etc", to.join("folder")).unwrap();
    fs::write(from.join("folder/in"), "x").unwrap();
    fs::write(from.join("full"), "x").unwrap();
    fs::create_dir(to.join("full")).unwrap();
    fs::write(to.join("full/kept"), "x").unwrap();
    let outcome = copy(&[folder.text("from/")], &folder.text("to"), &CopyOptions::default()).unwrap();
    assert_eq!(outcome.faults.len(), 1, "{:?}", outcome.faults);
    assert_eq!((outcome.faults[0].path.as_str(), outcome.faults[0].kind), ("full", FaultKind::Unwritable));
    fs::remove_file(from.join("full")).unwrap();
    fs::remove_dir_all(to.join("full")).unwrap();
    let (mut want, mut have) = (listing(&from), listing(&to));
    [&mut want, &mut have].into_iter().for_each(|rows| drop(rows.remove(b".".as_slice())));
    assert_eq!(want, have);
}

#[test]
fn mirror_removes_what_the_sources_do_not_have_but_not_what_is_excluded() {
    let folder = Folder::new("mirror");
    let (from, to) = (folder.join("from"), folder.join("to"));
    fs::create_dir_all(from.join("tree/sub")).unwrap();
    fs::write(from.join("tree/sub/file"), "x").unwrap();
    fs::write(from.join("tree/name"), "x").unwrap();
    fs::create_dir_all(to.join("tree/gone/deep")).unwrap();
    fs::create_dir_all(to.join("tree/name/deep")).unwrap();
    fs::write(to.join("tree/gone/deep/file"), "x").unwrap();
    fs::create_dir_all(to.join("tree/sub/old")).unwrap();
    fs::write(to.join("tree/sub/old/keep.log"), "x").unwrap();
    fs::write(to.join("tree/sub/old/file"), "x").unwrap();
    fs::write(to.join("other"), "not of the sources' folders").unwrap();
    symlink("/etc", to.join("tree/link")).unwrap();
    let mut options = CopyOptions { mirror: true, exclude: vec!["*.log".into()], ..CopyOptions::default() };
    let before = listing(&to);
    let refused = copy(&[folder.text("from/tree")], &folder.text("to"), &options).unwrap();
    assert_eq!((refused.closed.removed, refused.closed.faults.len()), (0, 2), "7 entries are more than 4");
    assert!(before.keys().all(|path| listing(&to).contains_key(path)));
    options.max_removals = Some(7);
    let outcome = copy(&[folder.text("from/tree")], &folder.text("to"), &options).unwrap();
    assert_eq!((outcome.faults.len(), &outcome.closed.faults), (0, &vec![]));
    assert_eq!(outcome.closed.removed, 7, "name, deep; gone, deep, file; old/file; link");
    let rows: Vec<_> = listing(&to).into_keys().map(|path| String::from_utf8(path).unwrap()).collect();
    assert_eq!(
        rows,
        [".", "other", "tree", "tree/name", "tree/sub", "tree/sub/file", "tree/sub/old", "tree/sub/old/keep.log"]
    );
}

#[test]
fn an_older_version_gives_links_where_it_is_the_same_and_a_base_where_not() {
    let folder = Folder::new("versions");
    let from = folder.join("from");
    fs::create_dir(&from).unwrap();
    fs::write(from.join("same"), [1; 100_000]).unwrap();
    fs::write(from.join("changes"), vec![1; 1_000_000]).unwrap();
    let first = copy(&[folder.text("from/")], &folder.text("1"), &CopyOptions::default()).unwrap();
    assert!(first.faults.is_empty());
    File::options().write(true).open(from.join("changes")).unwrap().write_all_at(&[2], 500_000).unwrap();
    let before = listing(&folder.join("1"));
    let options = CopyOptions { link_to: Some(folder.text("1")), ..CopyOptions::default() };
    let second = copy(&[folder.text("from/")], &folder.text("2"), &options).unwrap();
    assert_eq!((second.linked, second.faults.len()), (1, 0));
    let inode = |path: &str| fs::metadata(folder.join(path)).unwrap().ino();
    assert_eq!(inode("1/same"), inode("2/same"));
    assert_ne!(inode("1/changes"), inode("2/changes"));
    assert_eq!(fs::read(from.join("changes")).unwrap(), fs::read(folder.join("2/changes")).unwrap());
    // Metadata that changes leaves the older version as it is.
    fs::set_permissions(from.join("same"), PermissionsExt::from_mode(0o600)).unwrap();
    copy(&[folder.text("from/")], &folder.text("2"), &options).unwrap();
    assert_ne!(inode("1/same"), inode("2/same"));
    assert_eq!(fs::metadata(folder.join("2/same")).unwrap().mode() & 0o7777, 0o600);
    let after = listing(&folder.join("1"));
    let plain = |row: &str| row.split(" = ").next().unwrap().to_owned();
    assert!(before.iter().zip(&after).all(|(a, b)| plain(a.1) == plain(b.1)));
}

fn file_entry(path: &[&str], size: u64) -> Entry {
    Entry {
        path: path.iter().map(|name| name.as_bytes().to_vec()).collect(),
        kind: EntryKind::File { size, extents: None },
        mode: 0o6755,
        uid: 0,
        gid: 0,
        modified: Stamp { seconds: 1, nanoseconds: 2 },
        xattrs: vec![],
        identity: copy::Identity::default(),
    }
}

fn open(destination: &str, shape: SourcesShape) -> Result<Destination, copy_net::CopyError> {
    Destination::open(destination, shape, &CopyOptions::default(), COPY)
}

#[test]
fn names_that_lead_out_of_the_destination_are_refused() {
    let folder = Folder::new("refused");
    fs::create_dir(folder.join("to")).unwrap();
    symlink("/", folder.join("to/up")).unwrap();
    let target = open(&folder.text("to"), SourcesShape::Tree).unwrap();
    for path in [
        &["..", "x"][..],
        &["a", "..", "..", "x"],
        &["/etc/x"],
        &["up", "tmp", "x"],
        &["a/../../x"],
        &["", "x"],
        &["."],
        &["x\0y"],
        &[".elephan-copy", "x"],
    ] {
        let entry = file_entry(path, 1);
        assert!(target.begin(0, &entry, Base::Nothing).is_err(), "{path:?}");
        let link = Entry { kind: EntryKind::Symlink { target: b"x".to_vec() }, ..entry.clone() };
        assert!(target.make(&link, None).is_err(), "{path:?}");
        let folder = Entry { kind: EntryKind::Folder, ..entry.clone() };
        // The link that is in the way is replaced by the folder, as long as it is not the parent.
        assert!(target.make(&folder, None).is_err(), "{path:?}");
    }
    let hard = Entry { kind: EntryKind::HardLink { to: 0 }, ..file_entry(&["hard"], 0) };
    for first in [&["..", "refused"][..], &["up", "etc", "passwd"], &["up"]] {
        let first: Vec<_> = first.iter().map(|name| name.as_bytes().to_vec()).collect();
        assert!(target.make(&hard, Some(&first)).is_err());
    }
    target.close(true).unwrap();
}

#[test]
fn a_state_folder_that_somebody_else_has_made_is_refused() {
    let folder = Folder::new("foreign");
    let state = folder.join("to/.elephan-copy").join(COPY);
    fs::create_dir_all(&state).unwrap();
    assert!(open(&folder.text("to"), SourcesShape::Tree).is_ok());
    if !is_root() {
        skipped("only root gives a folder to another user");
        return;
    }
    fs::create_dir_all(&state).unwrap();
    chown(&state, Some(4242), Some(4242)).unwrap();
    let refused = open(&folder.text("to"), SourcesShape::Tree).err().unwrap();
    assert!(refused.text.contains("belongs to user 4242"), "{}", refused.text);
}

#[test]
fn a_part_is_found_again_and_the_lock_keeps_others_out() {
    let folder = Folder::new("resume");
    let target = open(&folder.text("to"), SourcesShape::Tree).unwrap();
    assert_eq!(open(&folder.text("to"), SourcesShape::Tree).err().unwrap().kind, ErrorKind::Busy);
    let entry = file_entry(&["file"], 10);
    assert_eq!(target.look(&entry, None).unwrap(), Existing::Absent);
    assert!(target.begin(7, &entry, Base::Resume).is_err(), "there is none");
    let part = target.begin(7, &entry, Base::Nothing).unwrap();
    assert!(!part.resumed());
    part.write_at(0, b"01234").unwrap();
    target.sync(&[&part]).unwrap();
    drop((part, target));
    assert!(!folder.join("to/file").exists());
    let target = open(&folder.text("to"), SourcesShape::Tree).unwrap();
    assert_eq!(target.part_size(&entry), Some(5));
    let part = target.begin(8, &entry, Base::Resume).unwrap();
    assert!(part.resumed());
    part.write_at(5, b"56789").unwrap();
    assert_eq!(target.seal(&part, &entry).unwrap(), None);
    target.sync(&[&part]).unwrap();
    assert!(!folder.join("to/file").exists());
    assert_eq!(target.finish(vec![(part, &entry)]), [Ok(())]);
    assert_eq!(fs::read(folder.join("to/file")).unwrap(), b"0123456789");
    assert_eq!(target.look(&entry, None).unwrap(), Existing::Same);
    target.close(true).unwrap();
    target.clear();
    assert_eq!(fs::read_dir(folder.join("to")).unwrap().count(), 1);
}

#[test]
fn set_user_id_goes_unless_the_owner_is_set() {
    let folder = Folder::new("set-id");
    for (owners, uid, mode) in [(true, 0, 0o6755), (false, 12, 0o755), (true, 12, 0o6755)] {
        // A user who may not give files away keeps neither the owner nor the bits.
        let mode = if is_root() || uid == rustix::process::geteuid().as_raw() { mode } else { 0o755 };
        let options = CopyOptions { owners, ..CopyOptions::default() };
        let target = Destination::open(&folder.text("to"), SourcesShape::Tree, &options, COPY).unwrap();
        let entry = Entry { uid, ..file_entry(&[&format!("file-{owners}-{uid}")], 0) };
        let part = target.begin(0, &entry, Base::Nothing).unwrap();
        target.seal(&part, &entry).unwrap();
        assert!(target.finish(vec![(part, &entry)])[0].is_ok());
        let made = fs::metadata(folder.join("to").join(format!("file-{owners}-{uid}"))).unwrap();
        assert_eq!(made.mode() & 0o7777, mode, "{owners} {uid}");
        target.clear();
    }
}

#[test]
fn one_file_goes_to_a_name_or_into_a_folder() {
    let folder = Folder::new("one");
    fs::write(folder.join("file"), "x").unwrap();
    fs::create_dir(folder.join("into")).unwrap();
    symlink("elsewhere", folder.join("by-link")).unwrap();
    fs::write(folder.join("elsewhere"), "old").unwrap();
    for _ in 0..2 {
        for (destination, made) in
            [("name", "name"), ("into", "into/file"), ("new/", "new/file"), ("by-link", "elsewhere")]
        {
            let outcome = copy(&[folder.text("file")], &folder.text(destination), &CopyOptions::default()).unwrap();
            assert!(outcome.faults.is_empty());
            assert_eq!(fs::read(folder.join(made)).unwrap(), b"x", "{destination}");
        }
    }
    assert!(fs::symlink_metadata(folder.join("by-link")).unwrap().is_symlink());
    let tree = |to: &str| copy(&[folder.text("into")], &folder.text(to), &CopyOptions::default());
    tree("made").unwrap();
    assert!(folder.join("made/into/file").exists());
    for (to, words) in [("name", "no folder"), ("absent/deeper", "No such file"), ("file/x", "Not a directory")] {
        let error = tree(to).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(error.text.contains(words), "{}", error.text);
    }
}

#[test]
fn a_user_without_rights_copies_what_he_may() {
    let folder = Folder::new("as-user");
    let (from, to) = (folder.join("from"), folder.join("to"));
    fs::create_dir_all(from.join("closed")).unwrap();
    fs::create_dir(&to).unwrap();
    everything(&from.join("closed"));
    fs::set_permissions(from.join("closed"), PermissionsExt::from_mode(0o555)).unwrap();
    if is_root() {
        chown(&to, Some(65_534), Some(65_534)).unwrap();
    }
    let (sources, target) = ([folder.text("from/")], folder.text("to"));
    let outcomes = std::thread::spawn(move || {
        become_user();
        [(); 2].map(|()| copy(&sources, &target, &CopyOptions::default()).unwrap())
    })
    .join()
    .unwrap();
    for outcome in &outcomes {
        // Only the device node and files of others, if it was made, cannot be copied.
        let left: Vec<_> = outcome.faults.iter().filter(|fault| !fault.path.ends_with("/null")).collect();
        assert!(left.iter().all(|fault| fault.kind == FaultKind::Unreadable), "{left:?}");
    }
    assert_eq!(outcomes[1].read_bytes, 0);
    let set_id = fs::metadata(to.join("closed/a/empty")).map(|file| file.mode() & 0o7000);
    assert!(set_id.is_err() || set_id.unwrap() == 0 || !is_root());
    assert_eq!(fs::metadata(to.join("closed")).unwrap().mode() & 0o7777, 0o555);
    for folder in [&from, &to] {
        fs::set_permissions(folder.join("closed"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::set_permissions(folder.join("closed/closed"), PermissionsExt::from_mode(0o755)).unwrap();
    }
}
