//! Block devices as sources and destinations: loop devices on files.

use crate::folders::Folder;
use crate::power_cut::ends::attempt;
use copy::CopyOptions;
use copy_net::ErrorKind;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const BYTES: u64 = 4 << 20;

/// A loop device, detached at the end.
struct Loop(String);

impl Loop {
    fn new(file: &Path) -> Option<Loop> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        made.status.success().then(|| Loop(String::from_utf8(made.stdout).unwrap().trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_device_goes_to_a_file_and_to_a_device_and_only_what_differs_is_sent() {
    let folder = Folder::new("devices");
    let disk = |name: &str, bytes: u64, seed: u8| {
        let content: Vec<u8> = (0..bytes).map(|at| (at >> 10) as u8 ^ seed).collect();
        fs::write(folder.join(name), content).unwrap();
        Loop::new(&folder.join(name))
    };
    let (Some(from), Some(to), Some(small)) = (disk("a", BYTES, 1), disk("b", BYTES + 4096, 2), disk("c", 1 << 20, 3))
    else {
        return crate::skip::skipped("losetup and loop devices need root");
    };
    let options = CopyOptions { chunk_bytes: Some(65_536), ..CopyOptions::default() };
    let run = |source: &str, destination: &str, copy: &str| {
        attempt(&[source.to_owned()], destination, &copy.repeat(16), &options, &|_| (), &|_| false)
    };
    let content = || fs::read(&from.0).unwrap();
    let read = |path: &str| {
        let mut content = fs::read(path).unwrap();
        content.truncate(BYTES as usize);
        content
    };
    // Into a file, twice: the time of a device tells nothing, so that it is compared; nothing differs.
    let image = folder.text("image");
    for sent in [BYTES, 0] {
        let ends = run(&from.0, &image, "d1");
        assert!(ends.receiver.is_ok(), "{:?}", ends.receiver);
        assert_eq!((ends.sender.unwrap().sent_bytes, read(&image) == content()), (sent, true));
    }
    // Onto a larger device; then a little changes.
    run(&from.0, &to.0, "d2").receiver.unwrap();
    assert!(read(&to.0) == content());
    File::options().write(true).open(&from.0).unwrap().write_all_at(&[99; 100], 1 << 20).unwrap();
    let ends = run(&from.0, &to.0, "d2");
    assert!(ends.receiver.is_ok(), "{:?}", ends.receiver);
    assert_eq!((ends.sender.unwrap().sent_bytes, read(&to.0) == content()), (65_536, true));
    // Back from the image.
    assert!(run(&image, &to.0, "d3").receiver.is_ok());
    assert!(read(&to.0) == read(&image));
    let faults = run(&from.0, &small.0, "d4").receiver.map(|report| report.faults);
    let faults = faults.unwrap();
    assert!(faults.len() == 1 && faults[0].reason.contains("bytes, 4194304 are needed"), "{faults:?}");
    // A device that is in use is not written.
    let busy = File::options().read(true).custom_flags_excl().open(&to.0).unwrap();
    assert_eq!(run(&from.0, &to.0, "d5").receiver.unwrap_err().kind, ErrorKind::Input);
    drop(busy);
}

trait Exclusive {
    fn custom_flags_excl(&mut self) -> &mut Self;
}

impl Exclusive for fs::OpenOptions {
    fn custom_flags_excl(&mut self) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::custom_flags(self, libc::O_EXCL)
    }
}
