//! The walk over sources: order, kinds, metadata, faults, exclusion.

use crate::folders::Folder;
use copy::{CopyOptions, Entry, EntryKind, SourcesShape};
use copy_net::SourceTree;
use std::fs::{self, File};
use std::os::unix::fs::{symlink, FileExt, PermissionsExt};

fn walk(sources: &[String], options: &CopyOptions) -> (Vec<Entry>, Vec<copy::FileFault>) {
    let (mut entries, mut faults) = (vec![], vec![]);
    for found in SourceTree::open(sources, options).unwrap() {
        match found {
            Ok((number, entry)) => {
                assert_eq!(number, entries.len() as u64);
                entries.push(entry);
            }
            Err(fault) => faults.push(fault),
        }
    }
    (entries, faults)
}

fn names(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| copy::show_path(&entry.path)).collect()
}

#[test]
fn parents_come_first_names_are_sorted_and_links_are_not_followed() {
    let folder = Folder::new("walk");
    fs::create_dir_all(folder.join("tree/b/c")).unwrap();
    fs::write(folder.join("tree/b/c/file"), "x").unwrap();
    fs::write(folder.join("tree/a"), "x").unwrap();
    symlink("/", folder.join("tree/root")).unwrap();
    fs::hard_link(folder.join("tree/a"), folder.join("tree/z")).unwrap();
    fs::create_dir(folder.join("tree/.elephan-copy")).unwrap();
    let (entries, faults) = walk(&[folder.text("tree")], &CopyOptions::default());
    assert_eq!(names(&entries), ["tree", "tree/a", "tree/b", "tree/b/c", "tree/b/c/file", "tree/root", "tree/z"]);
    assert!(faults.is_empty());
    assert_eq!(entries[5].kind, EntryKind::Symlink { target: b"/".to_vec() });
    assert_eq!(entries[6].kind, EntryKind::HardLink { to: 1 });
    let mut tree = SourceTree::open(&[folder.text("tree/")], &CopyOptions::default()).unwrap();
    let entries: Vec<_> = tree.by_ref().map(|found| found.unwrap().1).collect();
    assert_eq!(names(&entries)[..3], [".", "a", "b"]);
    assert_eq!(tree.first_path(1), Some(vec![b"a".to_vec()]));
    let (entries, _) = walk(&[folder.text("tree/a"), folder.text("tree/b")], &CopyOptions::default());
    assert_eq!(names(&entries), ["a", "b", "b/c", "b/c/file"]);
    let (entries, faults) = walk(&[folder.text("tree/a"), folder.text("tree/b/../a")], &CopyOptions::default());
    assert_eq!((names(&entries), faults.len()), (vec!["a".to_owned()], 1));
}

#[test]
fn the_shape_says_whether_there_is_one_file() {
    let folder = Folder::new("shape");
    fs::write(folder.join("file"), "x").unwrap();
    symlink("file", folder.join("link")).unwrap();
    for (name, shape) in [("file", SourcesShape::OneFile), ("link", SourcesShape::OneFile), ("", SourcesShape::Tree)] {
        assert_eq!(SourceTree::open(&[folder.text(name)], &CopyOptions::default()).unwrap().shape(), shape);
    }
    let error = SourceTree::open(&[folder.text("absent")], &CopyOptions::default()).err().unwrap();
    assert_eq!(error.kind, copy_net::ErrorKind::Input);
    assert!(error.text.contains("absent") && error.text.contains("No such file"), "{}", error.text);
}

#[test]
fn names_that_are_left_out_are_not_entered() {
    let folder = Folder::new("exclude");
    fs::create_dir_all(folder.join("t/cache/deep")).unwrap();
    fs::create_dir_all(folder.join("t/keep")).unwrap();
    fs::write(folder.join("t/keep/a.o"), "").unwrap();
    fs::write(folder.join("t/keep/cache"), "").unwrap();
    let options = CopyOptions { exclude: vec!["cache/".into(), "*.o".into()], ..CopyOptions::default() };
    assert_eq!(names(&walk(&[folder.text("t/")], &options).0), [".", "keep", "keep/cache"]);
}

#[test]
fn a_sparse_file_tells_its_extents_and_a_file_with_any_bytes_in_its_name_is_read() {
    let folder = Folder::new("sparse");
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"a\xff\nb");
    let file = File::create(folder.path().join(name)).unwrap();
    file.set_len(8 << 20).unwrap();
    file.write_all_at(&[1; 4096], 4 << 20).unwrap();
    let mut tree = SourceTree::open(&[folder.text("")], &CopyOptions::default()).unwrap();
    let files = tree.files();
    let (_, root) = tree.next().unwrap().unwrap();
    assert_eq!((root.path.len(), root.kind), (0, EntryKind::Folder));
    let (number, entry) = tree.next().unwrap().unwrap();
    assert_eq!(copy::show_path(&entry.path), "a\\xff\\x0ab");
    let EntryKind::File { size, extents: Some(extents) } = &entry.kind else { panic!("{:?}", entry.kind) };
    assert_eq!(*size, 8 << 20);
    assert!(extents.iter().any(|(begin, end)| *begin <= 4 << 20 && *end >= (4 << 20) + 4096), "{extents:?}");
    assert!(extents.iter().map(|(begin, end)| end - begin).sum::<u64>() < 1 << 20, "{extents:?}");
    let open = files.open(number, &entry).unwrap();
    let mut byte = [0];
    open.read_at(4 << 20, &mut byte).unwrap();
    assert_eq!(byte, [1]);
    assert_eq!(open.read_at(8 << 20, &mut byte).unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    // A change shows, and the entry can be looked at again.
    assert_eq!(open.identity().unwrap(), entry.identity);
    file.write_all_at(&[2; 1], 9 << 20).unwrap();
    assert_ne!(open.identity().unwrap(), entry.identity);
    let again = files.again(number, &entry).unwrap();
    assert_eq!(again.identity, open.identity().unwrap());
}

#[test]
fn a_deep_tree_is_walked_with_few_descriptors() {
    let folder = Folder::new("deep");
    // Longer than PATH_MAX in all, deeper than descriptors are kept open.
    let name = "d".repeat(40);
    let mut at = rustix::fs::open(folder.path(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..150 {
        rustix::fs::mkdirat(&at, name.as_str(), rustix::fs::Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, name.as_str(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    }
    let file = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    rustix::fs::openat(&at, "file", file, rustix::fs::Mode::RWXU).unwrap();
    let mut tree = SourceTree::open(&[folder.text("")], &CopyOptions::default()).unwrap();
    let files = tree.files();
    let entries: Vec<_> = tree.by_ref().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 152);
    files.open(151, &entries[151].1).unwrap();
}

#[test]
fn what_may_not_be_read_is_a_fault_and_the_rest_goes_on() {
    let folder = Folder::new("unreadable");
    fs::create_dir_all(folder.join("t/closed")).unwrap();
    fs::write(folder.join("t/closed/in"), "x").unwrap();
    fs::write(folder.join("t/secret"), "x").unwrap();
    fs::write(folder.join("t/zz"), "x").unwrap();
    fs::set_permissions(folder.join("t/secret"), PermissionsExt::from_mode(0o000)).unwrap();
    fs::set_permissions(folder.join("t/closed"), PermissionsExt::from_mode(0o000)).unwrap();
    let sources = [folder.text("t/")];
    // Root reads everything: a thread that has given that right up reads as a user does.
    let (entries, faults, open) = std::thread::spawn(move || {
        crate::destination::become_user();
        let mut tree = SourceTree::open(&sources, &CopyOptions::default()).unwrap();
        let files = tree.files();
        let (entries, faults): (Vec<_>, Vec<_>) = tree.by_ref().partition(Result::is_ok);
        let entries: Vec<_> = entries.into_iter().map(Result::unwrap).collect();
        let open: Vec<_> = entries
            .iter()
            .filter(|(_, entry)| matches!(entry.kind, EntryKind::File { .. }))
            .map(|(number, entry)| files.open(*number, entry).map(|_| ()))
            .collect();
        (entries, faults.into_iter().filter_map(Result::err).collect::<Vec<_>>(), open)
    })
    .join()
    .unwrap();
    fs::set_permissions(folder.join("t/closed"), PermissionsExt::from_mode(0o700)).unwrap();
    let entries: Vec<_> = entries.into_iter().map(|(_, entry)| entry).collect();
    assert_eq!(names(&entries), [".", "closed", "secret", "zz"]);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].path == "closed" && faults[0].reason.contains("Permission denied"), "{faults:?}");
    assert!(open[0].as_ref().unwrap_err().reason.contains("Permission denied") && open[1].is_ok());
}
