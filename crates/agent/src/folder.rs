//! Private folders of a run: their names, and their end.

use rustix::thread::Timespec;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// First part of the names of such folders.
const MARK: &str = "elephan-run-";

/// Folders in which they are made.
const PARENTS: [&str; 2] = ["/tmp", "/var/tmp"];

/// Digits of a boot's id in a name.
const BOOT_DIGITS: usize = 8;

/// Time for the processes of a killed agent to end, which may still write: 250 times 20 ms.
const TRIES: u32 = 250;
const TRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// This boot's id.
pub fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A name that no other folder has, in `parent`.
pub fn name(parent: &str) -> PathBuf {
    let boot: String = boot().chars().take(BOOT_DIGITS).collect();
    Path::new(parent).join(format!("{MARK}{boot}-{}-{}", std::process::id(), kernel::monotonic_ns()))
}

/// Makes one, which is not there yet, with these rights.
///
/// # Errors
/// The kernel's.
pub fn make(path: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new().mode(mode).create(path)?;
    // The umask has taken some away.
    Ok(rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(mode))?)
}

/// Removes one with all that is in it; false where there is none.
///
/// # Errors
/// The kernel's, or it is none of this user's.
pub fn remove(path: &Path) -> io::Result<bool> {
    let Ok(about) = fs::symlink_metadata(path) else { return Ok(false) };
    let named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(MARK));
    if !named || !about.is_dir() || about.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it is no folder of elephan's"));
    }
    let mut tries = 0;
    loop {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(_) if tries < TRIES => {
                tries += 1;
                let _ = rustix::thread::nanosleep(&TRY);
            }
            done => return done.map(|()| true),
        }
    }
}

/// Removes this user's folders that were made before the machine was started again.
pub fn remove_those_of_other_boots() -> Vec<PathBuf> {
    let boot: String = boot().chars().take(BOOT_DIGITS).collect();
    let (living, user) = (format!("{MARK}{boot}-"), rustix::process::geteuid().as_raw());
    let listed = PARENTS.iter().filter_map(|parent| fs::read_dir(parent).ok()).flat_map(Iterator::flatten);
    let dead = listed.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with(MARK) && !name.starts_with(&living)
    });
    let own = dead.filter(|entry| entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == user));
    own.map(|entry| entry.path()).filter(|path| fs::remove_dir_all(path).is_ok()).collect()
}
