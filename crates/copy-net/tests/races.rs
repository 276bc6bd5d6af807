//! A folder of the destination that is swapped for a symbolic link, again and again, leads no write out of it.

use crate::folders::Folder;
use crate::local_copy::COPY;
use copy::{CopyOptions, Entry, EntryKind, SourcesShape, Stamp};
use copy_net::{Base, Destination};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

fn entry(path: &[&[u8]], kind: EntryKind) -> Entry {
    Entry {
        path: path.iter().map(|name| name.to_vec()).collect(),
        kind,
        mode: 0o777,
        uid: 0,
        gid: 0,
        modified: Stamp { seconds: 1, nanoseconds: 0 },
        xattrs: vec![],
        identity: copy::Identity::default(),
    }
}

#[test]
fn a_folder_that_becomes_a_link_leads_nothing_out() {
    let folder = Folder::new("race");
    fs::create_dir_all(folder.join("outside/in")).unwrap();
    fs::write(folder.join("outside/in/victim"), "safe").unwrap();
    fs::create_dir_all(folder.join("to/folder/in")).unwrap();
    let outside = || {
        let names: Vec<_> =
            fs::read_dir(folder.join("outside/in")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        (
            names,
            fs::read(folder.join("outside/in/victim")).unwrap(),
            fs::metadata(folder.join("outside/in")).unwrap().permissions(),
        )
    };
    let before = outside();
    let options = CopyOptions { mirror: true, ..CopyOptions::default() };
    let target = Destination::open(&folder.text("to"), SourcesShape::Tree, &options, COPY).unwrap();
    let done = AtomicBool::new(false);
    let (mut written, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            symlink(folder.join("outside"), folder.join("to/link")).unwrap();
            while !done.load(Ordering::Relaxed) {
                // The folder and the link change places in one step (renameat2(2)).
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                let (a, b) = (folder.join("to/folder"), folder.join("to/link"));
                if rustix::fs::renameat_with(rustix::fs::CWD, &a, rustix::fs::CWD, &b, exchange).is_err() {
                    // The copy has removed one of them.
                    let _ = fs::create_dir_all(folder.join("to/folder/in"));
                    let _ = symlink(folder.join("outside"), folder.join("to/link"));
                }
            }
        });
        for round in 0..3000 {
            let file = entry(&[b"folder", b"in", b"victim"], EntryKind::File { size: 4, extents: None });
            let made = match round % 4 {
                0 => target.begin(0, &file, Base::Nothing).and_then(|part| {
                    part.write_at(0, b"evil").unwrap();
                    target.seal(&part, &file)?;
                    target.finish(vec![(part, &file)]).pop().unwrap()
                }),
                1 => target
                    .make(&entry(&[b"folder", b"in", b"link"], EntryKind::Symlink { target: b"x".to_vec() }), None)
                    .map(drop),
                2 => target.make(&entry(&[b"folder", b"in", b"new"], EntryKind::Folder), None).map(drop),
                _ => target.adjust(&entry(&[b"folder", b"in", b"victim"], EntryKind::File { size: 4, extents: None })),
            };
            match made {
                Ok(()) => written += 1,
                Err(_) => refused += 1,
            }
            if round % 500 == 499 {
                let _ = target.make(&entry(&[b"folder", b"in"], EntryKind::Folder), None);
                let _ = target.close(true);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(outside(), before);
    assert!(written > 0 && refused > 0, "{written} written, {refused} refused: there was no race");
    target.clear();
}
