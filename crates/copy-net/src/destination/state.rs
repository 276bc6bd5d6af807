//! State folder of a copy: parts and journal on the destination's file system, locked against other processes.

use super::disk_bytes::{disk_bytes, remove_file};
use super::metadata;
use crate::beneath::is_name;
use crate::error::{CopyError, ErrorKind};
use crate::listing::list;
use crate::names::{is_full, words, STATE_NAME};
use crate::session::{lock, wait};
use crate::xattr::Of;
use rustix::fs::{flock, fstat, mkdirat, openat, statx, AtFlags, FlockOperation, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};

const LOCK_NAME: &str = "lock";

/// An open and locked state folder.
pub(super) struct State {
    folder: OwnedFd,
    path: PathBuf,
    /// File system and mount, which a rename does not leave.
    mount: Mount,
    /// The lock goes with the descriptor, also when the process is killed.
    _lock: OwnedFd,
    /// The folder that holds `.elephan-copy`; for a block device the user's own state folder.
    above: OwnedFd,
    /// Name of this copy.
    name: String,
}

/// Two entries with the same can be renamed into each other's folder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mount {
    device: (u32, u32),
    /// Absent before Linux 5.8.
    id: Option<u64>,
}

/// The mount that a descriptor is on.
pub(super) fn mount_of(fd: BorrowedFd<'_>) -> io::Result<Mount> {
    let wanted = StatxFlags::TYPE | StatxFlags::MNT_ID;
    Ok(mount(&statx(fd, "", AtFlags::EMPTY_PATH, wanted)?))
}

/// The mount that a name in a folder is on; of a link, that of the link.
pub(super) fn mount_at(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<Mount> {
    let wanted = StatxFlags::TYPE | StatxFlags::MNT_ID;
    Ok(mount(&statx(folder, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, wanted)?))
}

fn mount(found: &Statx) -> Mount {
    let known = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    Mount { device: (found.stx_dev_major, found.stx_dev_minor), id: known.then_some(found.stx_mnt_id) }
}

impl State {
    /// Opens `.elephan-copy/COPY` in `above`, of which `path` is the path.
    pub(super) fn open(above: OwnedFd, path: &Path, copy: &str) -> Result<State, CopyError> {
        if !is_name(copy.as_bytes()) || copy == LOCK_NAME {
            let text = format!("copy: {copy:?} is no name; it has 32 hex digits");
            return Err(CopyError { kind: ErrorKind::Input, text });
        }
        let path = path.join(STATE_NAME).join(copy);
        let failed = |error: io::Error| CopyError {
            kind: if is_full(&error) { ErrorKind::Full } else { ErrorKind::Io },
            text: format!("state folder {}: {}", path.display(), words(&error)),
        };
        // Another process may remove the folder that it has just done with; so again, until it is ours.
        for _ in 0..100 {
            let all = sub_folder(above.as_fd(), STATE_NAME).map_err(failed)?;
            let folder = match sub_folder(all.as_fd(), copy) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(failed)?,
            };
            if let Some(owner) = foreign_owner(folder.as_fd()).map_err(failed)? {
                let text = format!(
                    "state folder {}: it belongs to user {owner}, who could change parts before they get their name: \
                     remove it, or copy as that user",
                    path.display()
                );
                return Err(CopyError { kind: ErrorKind::Io, text });
            }
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let lock = match openat(&folder, LOCK_NAME, flags, Mode::RUSR | Mode::WUSR) {
                Err(Errno::NOENT) => continue,
                other => other.map_err(|error| failed(error.into()))?,
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let text = format!("another process runs this copy: it has locked {}", path.display());
                    return Err(CopyError { kind: ErrorKind::Busy, text });
                }
                Err(error) => return Err(failed(error.into())),
            }
            if fstat(&lock).map_err(|error| failed(error.into()))?.st_nlink == 0 {
                continue;
            }
            for changed in [&folder, &all, &above] {
                rustix::fs::fsync(changed).map_err(|error| failed(error.into()))?;
            }
            let mount = mount_of(folder.as_fd()).map_err(failed)?;
            return Ok(State { folder, path, mount, _lock: lock, above, name: copy.to_owned() });
        }
        Err(failed(io::Error::other("it is removed again and again")))
    }

    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn mount(&self) -> Mount {
        self.mount
    }

    /// Name of the copy.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Removes the folder and all in it; the lock goes last. Returns the bytes of disk that are free after it.
    pub(super) fn remove(self) -> u64 {
        let State { folder, _lock: flock, above, name, .. } = self;
        let before = fstat(&above);
        let mut bytes = empty(&folder) + fstat(&folder).map_or(0, |stat| disk_bytes(&stat));
        let _ = rustix::fs::unlinkat(&folder, LOCK_NAME, AtFlags::empty());
        // NFS and FUSE rename a file that is open, and remove it once it is closed.
        drop(flock);
        for _ in 0..20 {
            let Ok(all) = sub_folder(above.as_fd(), STATE_NAME) else { break };
            match rustix::fs::unlinkat(&all, name.as_str(), AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    let pause = std::time::Duration::from_millis(50);
                    drop(wait(&Condvar::new(), lock(&Mutex::new(())), pause));
                    // Another process of this copy may have begun: its lock stays, and so does the folder.
                    if rustix::fs::statat(&folder, LOCK_NAME, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                        break;
                    }
                }
                _ => break,
            }
        }
        let all = rustix::fs::statat(&above, STATE_NAME, AtFlags::SYMLINK_NOFOLLOW);
        // Fails while there are states of other copies.
        if rustix::fs::unlinkat(&above, STATE_NAME, AtFlags::REMOVEDIR).is_ok() {
            bytes += all.map_or(0, |stat| disk_bytes(&stat));
        }
        // The destination has got its time from the sources; that of a folder of others cannot be set.
        if let Ok(before) = before {
            let _ = metadata::set_time(Of::Fd(above.as_fd()), metadata::stamp(&before));
        }
        bytes
    }
}

/// Removes all names of a state folder but the lock's; returns the bytes of disk that are free after it.
fn empty(folder: &OwnedFd) -> u64 {
    let mut names = vec![];
    // An error leaves the names after it in place.
    let _ = list(folder, |one| {
        names.push(one.name.to_owned());
        Ok(())
    });
    let names = names.iter().filter(|name| name.to_bytes() != LOCK_NAME.as_bytes());
    names.map(|name| remove_file(folder.as_fd(), name.as_c_str())).sum()
}

/// Owner of a folder, if files that this process makes there belong to another user. Made by somebody else, as in /tmp,
/// it would let him write to parts. A new file tells: NFS and others map users, so that numbers of processes do not.
fn foreign_owner(folder: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    const PROBE: &str = "owner";
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // One may be left of a process that was killed, or be that of another process of this copy, for a moment.
    for _ in 0..100 {
        let _ = rustix::fs::unlinkat(folder, PROBE, AtFlags::empty());
        let probe = match openat(folder, PROBE, flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::EXIST) => continue,
            // The folder has gone: the caller makes it anew.
            Err(Errno::NOENT) => return Ok(None),
            // A full disk: stale parts in a folder of this user's can make room.
            Err(Errno::NOSPC | Errno::DQUOT) if fstat(folder)?.st_uid == rustix::process::geteuid().as_raw() => {
                return Ok(None);
            }
            other => other?,
        };
        let _ = rustix::fs::unlinkat(folder, PROBE, AtFlags::empty());
        let (owner, own) = (fstat(folder)?.st_uid, fstat(&probe)?.st_uid);
        return Ok((owner != own).then_some(owner));
    }
    Err(io::Error::other("its file \"owner\" cannot be removed: the folder is another user's"))
}

/// Opens the folder `name`, makes it if need be. Unfinished files are for the user alone: 0700.
fn sub_folder(above: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(above, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(above, name, flags, Mode::empty())?)
}

/// Folder of this user for states that outlive a copy (manifests, the sender's journal), and for copies to block
/// devices: `$XDG_STATE_HOME/elephan/copies`, or below `~/.local/state`. It is made, for the user alone: manifests have
/// the names of files that others may not see.
///
/// # Errors
/// `Io`: no home folder, or not to be written.
pub fn user_state_folder() -> Result<PathBuf, CopyError> {
    // The specification of XDG base directories: relative paths are to be ignored.
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let Some(state) = state.or_else(|| home.map(|home| home.join(".local/state"))) else {
        let text = "neither XDG_STATE_HOME nor HOME is set to an absolute path".to_owned();
        return Err(CopyError { kind: ErrorKind::Io, text });
    };
    let path = state.join("elephan/copies");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
    made.and_then(|()| for_user_alone(&path))
        .map_err(|error| CopyError { kind: ErrorKind::Io, text: format!("{}: {}", path.display(), words(&error)) })?;
    Ok(path)
}

/// Takes rights of group and others from a folder that was made with them.
fn for_user_alone(path: &Path) -> io::Result<()> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o700))?;
    }
    Ok(())
}

/// Folder of this user for the state of one copy that outlives it: the sender's journal, the manifests. It is made.
///
/// # Errors
/// As [`user_state_folder`].
pub fn copy_state(copy: &str) -> Result<PathBuf, CopyError> {
    let path = user_state_folder()?.join(copy);
    std::fs::create_dir_all(&path)
        .map_err(|error| CopyError { kind: ErrorKind::Io, text: format!("{}: {}", path.display(), words(&error)) })?;
    Ok(path)
}
