//! The disk of a power cut, mounted by FUSE in a mount namespace of the calling thread.
#![allow(clippy::disallowed_types, reason = "fuser's attributes are in SystemTime")]

use super::disk::{Disk, Errno, Meta, Node};
use fuser::{
    FileAttr, FileType, Filesystem, MountOption, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub type SharedDisk = Arc<Mutex<Disk>>;

/// Names and attributes change by way of the kernel alone: it may keep them.
const KEPT: Duration = Duration::from_secs(60);

/// Gives this thread its own mounts, which go with it. False: it may not.
pub fn private_mounts() -> bool {
    use rustix::mount::{mount_change, MountPropagationFlags};
    use rustix::thread::UnshareFlags;
    // SAFETY: only this thread's view of mounts and of its current folder is made its own.
    let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) };
    unshared.is_ok() && mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).is_ok()
}

/// Reason that FUSE cannot be used here; None: it can.
pub fn missing() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("mounting needs root");
    }
    match std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Ok(_) => None,
        Err(_) => Some("/dev/fuse cannot be opened"),
    }
}

/// A mounted disk.
pub struct Mounted {
    path: PathBuf,
    server: Option<JoinHandle<()>>,
}

impl Mounted {
    pub fn new(disk: &SharedDisk, path: &Path) -> Mounted {
        let (shim, at) = (Shim(disk.clone()), path.to_owned());
        let (mounted, is_mounted) = channel();
        let server = std::thread::spawn(move || {
            // The server has its own table of descriptors: when the process is killed, /dev/fuse is closed with this
            // thread, and threads that wait for an answer get an error instead of waiting for ever.
            // SAFETY: this thread uses no descriptor that another one has opened.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }.unwrap();
            let options = [MountOption::FSName("power-cut".into()), MountOption::Dev, MountOption::Suid];
            let mut session = fuser::Session::new(shim, &at, &options).unwrap();
            mounted.send(()).unwrap();
            // It ends with an error of the kind ENODEV when the disk is unmounted.
            let _ = session.run();
        });
        is_mounted.recv().unwrap();
        Mounted { path: path.to_owned(), server: Some(server) }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Also with files open: a thread of a failed end may be late.
        let _ = rustix::mount::unmount(&self.path, rustix::mount::UnmountFlags::DETACH);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

struct Shim(SharedDisk);

impl Shim {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn kind(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFBLK => FileType::BlockDevice,
        libc::S_IFCHR => FileType::CharDevice,
        _ => FileType::RegularFile,
    }
}

fn time(ns: i128) -> SystemTime {
    let span = Duration::from_nanos(u64::try_from(ns.unsigned_abs()).unwrap());
    if ns < 0 {
        UNIX_EPOCH - span
    } else {
        UNIX_EPOCH + span
    }
}

fn nanoseconds(time: SystemTime) -> i128 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(span) => i128::try_from(span.as_nanos()).unwrap(),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap(),
    }
}

fn attributes(disk: &Disk, ino: u64, node: &Node) -> FileAttr {
    let size = node.data.len() as u64;
    let modified = time(node.meta.modified_ns);
    FileAttr {
        ino,
        size,
        blocks: size.div_ceil(512),
        atime: modified,
        mtime: modified,
        ctime: modified,
        crtime: modified,
        kind: kind(node.meta.mode),
        perm: u16::try_from(node.meta.mode & 0o7777).unwrap(),
        nlink: disk.links(ino),
        uid: node.meta.uid,
        gid: node.meta.gid,
        rdev: node.meta.rdev,
        blksize: 4096,
        flags: 0,
    }
}

fn found(disk: &Disk, ino: u64) -> Result<FileAttr, Errno> {
    Ok(attributes(disk, ino, disk.node(ino)?))
}

fn made(disk: &mut Disk, folder: u64, name: &OsStr, meta: Meta, data: Vec<u8>) -> Result<FileAttr, Errno> {
    let ino = disk.make(folder, name.as_bytes(), meta, data)?;
    found(disk, ino)
}

fn meta(request: &Request<'_>, mode: u32, rdev: u32) -> Meta {
    Meta { mode, uid: request.uid(), gid: request.gid(), rdev, ..Meta::default() }
}

fn entry(reply: ReplyEntry, result: Result<FileAttr, Errno>) {
    match result {
        Ok(attributes) => reply.entry(&KEPT, &attributes, 0),
        Err(error) => reply.error(error),
    }
}

fn empty(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn sized(reply: ReplyXattr, size: u32, value: Result<Vec<u8>, Errno>) {
    match value {
        Err(error) => reply.error(error),
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap()),
        Ok(value) if value.len() > size as usize => reply.error(libc::ERANGE),
        Ok(value) => reply.data(&value),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "offsets of files in memory fit a usize")]
fn offset(value: i64) -> usize {
    usize::try_from(value).unwrap_or_default()
}

impl Filesystem for Shim {
    fn lookup(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let disk = self.disk();
        entry(reply, disk.find(parent, name.as_bytes()).and_then(|ino| found(&disk, ino)));
    }

    fn getattr(&mut self, _: &Request<'_>, ino: u64, _: Option<u64>, reply: ReplyAttr) {
        match found(&self.disk(), ino) {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<u64>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<u32>,
        reply: ReplyAttr,
    ) {
        let mut disk = self.disk();
        let result = size.map_or(Ok(()), |size| disk.set_len(ino, usize::try_from(size).unwrap())).and_then(|()| {
            disk.set_meta(ino, |meta| {
                if let Some(mode) = mode {
                    meta.mode = (meta.mode & libc::S_IFMT) | (mode & 0o7777);
                }
                meta.uid = uid.unwrap_or(meta.uid);
                meta.gid = gid.unwrap_or(meta.gid);
                if let Some(TimeOrNow::SpecificTime(time)) = mtime {
                    meta.modified_ns = nanoseconds(time);
                }
                Ok(())
            })
        });
        match result.and_then(|()| found(&disk, ino)) {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&mut self, _: &Request<'_>, ino: u64, reply: ReplyData) {
        match self.disk().node(ino) {
            Ok(node) => reply.data(&node.data),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &mut self,
        request: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let mut disk = self.disk();
        entry(reply, made(&mut disk, parent, name, meta(request, mode & !umask, rdev), vec![]));
    }

    fn mkdir(&mut self, request: &Request<'_>, parent: u64, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let mut disk = self.disk();
        entry(reply, made(&mut disk, parent, name, meta(request, libc::S_IFDIR | (mode & !umask), 0), vec![]));
    }

    fn unlink(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.disk().remove(parent, name.as_bytes(), false));
    }

    fn rmdir(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.disk().remove(parent, name.as_bytes(), true));
    }

    fn symlink(&mut self, request: &Request<'_>, parent: u64, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let mut disk = self.disk();
        let meta = meta(request, libc::S_IFLNK | 0o777, 0);
        entry(reply, made(&mut disk, parent, name, meta, target.as_os_str().as_bytes().to_vec()));
    }

    fn rename(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((parent, name.as_bytes().to_vec()), (new_parent, new_name.as_bytes().to_vec()));
        empty(reply, self.disk().rename(from, to));
    }

    fn link(&mut self, _: &Request<'_>, ino: u64, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let mut disk = self.disk();
        entry(reply, disk.link(ino, parent, name.as_bytes()).and_then(|()| found(&disk, ino)));
    }

    fn open(&mut self, _: &Request<'_>, ino: u64, _: i32, reply: ReplyOpen) {
        match self.disk().node(ino) {
            Ok(_) => reply.opened(0, 0),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _: u64,
        at: i64,
        size: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyData,
    ) {
        match self.disk().node(ino) {
            Ok(node) => {
                let begin = offset(at).min(node.data.len());
                reply.data(&node.data[begin..(begin + size as usize).min(node.data.len())]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _: u64,
        at: i64,
        data: &[u8],
        _: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyWrite,
    ) {
        match self.disk().write(ino, offset(at), data) {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap()),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&mut self, _: &Request<'_>, _: u64, _: u64, _: u64, reply: ReplyEmpty) {
        empty(reply, self.disk().read());
    }

    fn fsync(&mut self, _: &Request<'_>, ino: u64, _: u64, data_only: bool, reply: ReplyEmpty) {
        empty(reply, self.disk().sync_file(ino, data_only));
    }

    fn fsyncdir(&mut self, _: &Request<'_>, ino: u64, _: u64, _: bool, reply: ReplyEmpty) {
        empty(reply, self.disk().sync_folder(ino));
    }

    fn readdir(&mut self, _: &Request<'_>, ino: u64, _: u64, at: i64, mut reply: ReplyDirectory) {
        let disk = self.disk();
        if let Err(error) = disk.read() {
            return reply.error(error);
        }
        let dots = [(b".".to_vec(), ino), (b"..".to_vec(), ino)];
        let names = disk.names.range((ino, vec![])..(ino + 1, vec![])).map(|((_, name), ino)| (name.clone(), *ino));
        for (index, (name, ino)) in dots.into_iter().chain(names).enumerate().skip(offset(at)) {
            let mode = disk.node(ino).map_or(libc::S_IFREG, |node| node.meta.mode);
            if reply.add(ino, i64::try_from(index + 1).unwrap(), kind(mode), OsStr::from_bytes(&name)) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&mut self, _: &Request<'_>, _: u64, reply: ReplyStatfs) {
        reply.statfs(1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096);
    }

    fn setxattr(&mut self, _: &Request<'_>, ino: u64, name: &OsStr, value: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        let set = |meta: &mut Meta| {
            meta.xattrs.insert(name.as_bytes().to_vec(), value.to_vec());
            Ok(())
        };
        empty(reply, self.disk().set_meta(ino, set));
    }

    fn getxattr(&mut self, _: &Request<'_>, ino: u64, name: &OsStr, size: u32, reply: ReplyXattr) {
        let disk = self.disk();
        let value = disk.node(ino).and_then(|node| node.meta.xattrs.get(name.as_bytes()).cloned().ok_or(libc::ENODATA));
        sized(reply, size, value);
    }

    fn listxattr(&mut self, _: &Request<'_>, ino: u64, size: u32, reply: ReplyXattr) {
        let disk = self.disk();
        let list = |node: &Node| node.meta.xattrs.keys().flat_map(|name| [name.as_slice(), b"\0"].concat()).collect();
        sized(reply, size, disk.node(ino).map(list));
    }

    fn removexattr(&mut self, _: &Request<'_>, ino: u64, name: &OsStr, reply: ReplyEmpty) {
        let remove = |meta: &mut Meta| meta.xattrs.remove(name.as_bytes()).map(drop).ok_or(libc::ENODATA);
        empty(reply, self.disk().set_meta(ino, remove));
    }

    fn create(
        &mut self,
        request: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let mut disk = self.disk();
        match made(&mut disk, parent, name, meta(request, libc::S_IFREG | (mode & 0o7777 & !umask), 0), vec![]) {
            Ok(attributes) => reply.created(&KEPT, &attributes, 0, 0, 0),
            Err(error) => reply.error(error),
        }
    }
}
