//! Metadata of the destination's entries: compared, and set in the order in which one does not undo the other.

use crate::names::words;
use crate::xattr::{self, Of};
use copy::{CopyOptions, Entry, EntryKind, Stamp};
use rustix::fs::{accessat, Access, AtFlags, Gid, Mode, Stat, Timespec, Timestamps, Uid};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Choice of the metadata that are copied.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    owners: bool,
    xattrs: bool,
    /// Owners can be set.
    root: bool,
}

const SET_ID: u32 = 0o6000;

impl Rules {
    pub(super) fn new(options: &CopyOptions) -> Rules {
        Rules { owners: options.owners, xattrs: options.xattrs, root: rustix::process::geteuid().is_root() }
    }

    /// True if `stat` (and attributes) show what [`Rules::set`] would make.
    pub(super) fn same(self, entry: &Entry, stat: &Stat, of: Of<'_>) -> bool {
        let owners = !(self.owners && self.root) || (stat.st_uid == entry.uid && stat.st_gid == entry.gid);
        let symlink = matches!(entry.kind, EntryKind::Symlink { .. });
        let mode = symlink || stat.st_mode & 0o7777 == mode(entry, stat.st_uid, stat.st_gid);
        owners
            && mode
            && stamp(stat) == entry.modified
            && (!self.xattrs || xattr::read(of).is_ok_and(|there| there == self.attributes(entry)))
    }

    /// Attributes that this end sets: a file's capabilities go with its owner, as set-user-ID does.
    fn attributes(self, entry: &Entry) -> xattr::Xattrs {
        let keep = |name: &[u8]| match name {
            b"security.capability" => self.root && self.owners,
            _ => self.root || !name.starts_with(b"trusted."),
        };
        entry.xattrs.iter().filter(|(name, _)| keep(name)).cloned().collect()
    }

    /// Takes metadata from a part that an earlier attempt, with other options, may have given it, and that
    /// [`Rules::set`] leaves unchanged.
    pub(super) fn reset(self, of: Of<'_>) {
        if !self.owners && self.root {
            let own = (rustix::process::geteuid(), rustix::process::getegid());
            let _ = chown(of, own.0.as_raw(), own.1.as_raw());
        }
        if !self.xattrs {
            let _ = xattr::write(of, &[]);
        }
    }

    /// Sets all of it. What fails is said, and the rest is set.
    pub(super) fn set(self, entry: &Entry, of: Of<'_>) -> Result<(), String> {
        let mut failed = vec![];
        // Owner first: chown(2) clears set-user-ID.
        if self.owners {
            let set = chown(of, entry.uid, entry.gid);
            if let (Err(error), true) = (set, self.root) {
                failed.push(format!("owner: {}", words(&error)));
            }
        }
        // Attributes before the mode: user.* needs the right to write, an ACL changes the group's bits.
        if self.xattrs {
            if let Err((name, error)) = xattr::write(of, &self.attributes(entry)) {
                failed.push(format!("{}: {}", String::from_utf8_lossy(&name), words(&error)));
            }
        }
        if !matches!(entry.kind, EntryKind::Symlink { .. }) {
            let (uid, gid) = owner(of).unwrap_or((u32::MAX, u32::MAX));
            if let Err(error) = chmod(of, mode(entry, uid, gid)) {
                failed.push(format!("mode: {}", words(&error)));
            }
        }
        if let Err(error) = set_time(of, entry.modified) {
            failed.push(format!("time: {}", words(&error)));
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join(", "))
        }
    }
}

/// Permission bits for a file that has these owners: without set-user-ID and set-group-ID, unless they are the
/// source's.
fn mode(entry: &Entry, uid: u32, gid: u32) -> u32 {
    let folder = matches!(entry.kind, EntryKind::Folder);
    match (uid, gid) == (entry.uid, entry.gid) || folder {
        true => entry.mode & 0o7777,
        false => entry.mode & 0o7777 & !SET_ID,
    }
}

/// Time of the last change of what `stat` shows.
pub(super) fn stamp(stat: &Stat) -> Stamp {
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_fallible_conversions,
        reason = "the type differs per target"
    )]
    let nanoseconds = u32::try_from(stat.st_mtime_nsec).unwrap_or_default();
    Stamp { seconds: stat.st_mtime, nanoseconds }
}

fn owner(of: Of<'_>) -> io::Result<(u32, u32)> {
    let stat = match of {
        Of::Fd(fd) => rustix::fs::fstat(fd)?,
        Of::Name(folder, name) => rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?,
    };
    Ok((stat.st_uid, stat.st_gid))
}

fn chown(of: Of<'_>, uid: u32, gid: u32) -> io::Result<()> {
    // All ones means "as it is" to the kernel, and is no owner.
    if uid == u32::MAX || gid == u32::MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let (was_uid, was_gid) = owner(of)?;
    let uid = (was_uid != uid).then(|| Uid::from_raw(uid));
    let gid = (was_gid != gid).then(|| Gid::from_raw(gid));
    if uid.is_none() && gid.is_none() {
        return Ok(());
    }
    let set = |uid, gid| match of {
        Of::Fd(fd) => rustix::fs::fchown(fd, uid, gid),
        Of::Name(folder, name) => rustix::fs::chownat(folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW),
    };
    // A user may give a file to another of his groups, to another user not.
    set(uid, gid).or_else(|error| if uid.is_some() && gid.is_some() { set(None, gid) } else { Err(error) })?;
    Ok(())
}

pub(super) fn chmod(of: Of<'_>, mode: u32) -> io::Result<()> {
    let mode = Mode::from_raw_mode(mode);
    match of {
        Of::Fd(fd) => rustix::fs::fchmod(fd, mode)?,
        // fchmodat(2) follows links before Linux 6.6; a descriptor that is none by /proc does not.
        Of::Name(folder, name) => {
            use rustix::fs::{openat, FileType, OFlags};
            let fd = openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) == FileType::Symlink {
                return Err(rustix::io::Errno::LOOP.into());
            }
            rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)?;
        }
    }
    Ok(())
}

pub(super) fn set_time(of: Of<'_>, stamp: Stamp) -> io::Result<()> {
    let time = Timespec { tv_sec: stamp.seconds, tv_nsec: stamp.nanoseconds.into() };
    let keep = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let times = Timestamps { last_access: keep, last_modification: time };
    match of {
        Of::Fd(fd) => rustix::fs::futimens(fd, &times)?,
        Of::Name(folder, name) => rustix::fs::utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)?,
    }
    Ok(())
}

/// Gives the user the right to write in a folder of his own, for as long as the copy runs. Root may lack
/// CAP_DAC_OVERRIDE (capabilities(7)), as in a hardened service.
pub(super) fn open_up(folder: BorrowedFd<'_>, name: &[u8], stat: &Stat) {
    let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    if stat.st_mode & 0o700 != 0o700 && accessat(folder, name, rights, AtFlags::EACCESS).is_err() {
        let _ = chmod(Of::Name(folder, name), (stat.st_mode & 0o7777) | 0o700);
    }
}
