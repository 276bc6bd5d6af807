//! Copies of trees over TCP: whole, again, interrupted, changed.

use crate::ends::{Ended, Pair};
use crate::folders::{listing, Folder};
use copy::{CopyOptions, EndReport};
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;

/// Bytes that look random, the same each time.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    let mut reader = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    reader.fill(&mut out);
    out
}

/// A tree with files of all sizes, links, holes, modes.
pub fn tree(root: &Path) {
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    fs::create_dir_all(root.join("empty folder")).unwrap();
    fs::write(root.join("none"), b"").unwrap();
    fs::write(root.join("one"), b"1").unwrap();
    for number in 0..200_u64 {
        fs::write(root.join(format!("a/small-{number}")), noise(number, 100 * number as usize)).unwrap();
    }
    fs::write(root.join("a/b/large"), noise(1000, 5_000_001)).unwrap();
    fs::write(root.join("a/b/exact"), noise(1001, 1 << 20)).unwrap();
    fs::hard_link(root.join("a/b/large"), root.join("a/linked")).unwrap();
    symlink("b/large", root.join("a/link")).unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(20 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, &noise(5, 10_000), 9 << 20).unwrap();
    fs::set_permissions(root.join("one"), fs::Permissions::from_mode(0o4711)).unwrap();
    fs::set_permissions(root.join("a/b"), fs::Permissions::from_mode(0o2750)).unwrap();
}

/// Both folders hold the same; tells which entries do not.
pub fn same(from: &Path, to: &Path) {
    let (from, to) = (listing(from), listing(to));
    let paths: std::collections::BTreeSet<_> = from.keys().chain(to.keys()).collect();
    let differ: Vec<_> = paths
        .into_iter()
        .filter(|path| from.get(*path) != to.get(*path))
        .map(|path| (String::from_utf8_lossy(path), from.get(path), to.get(path)))
        .take(5)
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

/// Both ends agree, and the manifest's hash is the root.
pub fn agree(ended: &Ended) -> &EndReport {
    let (send, receive) = (ended.send.as_ref().unwrap(), ended.receive.as_ref().unwrap());
    assert_eq!(send.root, receive.root);
    assert_eq!(send.entries, receive.entries);
    assert_eq!(send.bytes, receive.bytes);
    for report in [send, receive] {
        assert_eq!(blake3::hash(&fs::read(&report.manifest).unwrap()).to_string(), report.root);
    }
    receive
}

#[test]
fn a_tree_is_copied_and_copied_again() {
    for turned in [false, true] {
        let folder = Folder::new("copies");
        tree(&folder.join("from"));
        let (from, to) = (folder.text("from/"), folder.join("to"));
        let pair = || {
            let pair = Pair::new(&[&from], &to, CopyOptions::default());
            if turned {
                pair.turned()
            } else {
                pair
            }
        };
        let ended = pair().run();
        let report = agree(&ended);
        assert_eq!(report.faults, []);
        same(&folder.join("from"), &to);
        let large = blake3::hash(&fs::read(folder.join("from/a/b/large")).unwrap()).to_string();
        assert!(fs::read_to_string(&report.manifest)
            .unwrap()
            .contains(&format!("a/b/large\t5000001\t{large}\tfile\t")));
        let root = report.root.clone();
        let ended = pair().run();
        let report = agree(&ended);
        assert_eq!((report.sent_bytes, report.faults.len()), (0, 0));
        // Hashes come from the last manifest: an unchanged tree keeps its root.
        assert_eq!(report.root, root);
        same(&folder.join("from"), &to);
    }
}
