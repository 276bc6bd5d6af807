//! A walk over the sources: parents before children, a hard link after its first name, nothing behind a link.

use super::file::SourceFiles;
use super::metadata::{self, Wanted};
use super::mounts::{is_mount_root, Mounts};
use super::origin::Origin;
use crate::beneath::Beneath;
use crate::error::{CopyError, ErrorKind};
use crate::exclude::Exclude;
use crate::listing::list;
use crate::names::{fault, words, STATE_NAME};
use copy::{plural, CopyOptions, Entry, EntryKind, FaultKind, FileFault, SourceMount, SourcesShape};
use rustix::fs::{statat, AtFlags, FileType, Stat};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Folders that are kept open along the way down; those above are opened again on the way up.
const OPEN_MAX: usize = 64;
/// Notes of one folder's names between two calls of [`SourceTree::take_notes`], at most.
const NOTES_MAX: usize = 100;
/// Names in a note of entries that are not copied.
const NAMES_MAX: usize = 10;

/// The sources, entry by entry.
pub struct SourceTree {
    files: Arc<SourceFiles>,
    exclude: Exclude,
    wanted: Wanted,
    one_file_system: bool,
    /// The source that is walked, and the next one's index.
    origin: usize,
    begun: bool,
    /// Folders from the source down to where the walk is.
    frames: Vec<Frame>,
    /// Path of the last frame's folder.
    path: Vec<Vec<u8>>,
    /// Number of the next entry.
    number: u64,
    /// Files with more than one name, by device and inode.
    linked: BTreeMap<(u64, u64), FirstName>,
    /// First name of the last hard link.
    last_link: Option<FirstName>,
    /// Names directly below the destination, where sources could clash.
    tops: BTreeSet<Vec<u8>>,
    /// A folder's entry came, then this.
    pending: Option<FileFault>,
    /// Path of this copy's state in its destination.
    state: Option<String>,
    /// The last entry is a folder on another file system, whose content is left out.
    content_left_out: bool,
    /// The last entry is a source itself, and a symbolic link.
    is_source_link: bool,
    /// See [`SourceTree::take_notes`].
    notes: Vec<String>,
    /// See [`SourceTree::take_left_out`].
    left_out: Vec<Vec<Vec<u8>>>,
    /// Entries of kinds that are not copied, by kind: their number and the first ones.
    uncopied: BTreeMap<&'static str, (u64, Vec<String>)>,
    mounts: Mounts,
}

/// First name of a file that has several.
#[derive(Clone)]
struct FirstName {
    number: u64,
    path: Vec<Vec<u8>>,
    /// Names that may still come.
    left: u64,
}

struct Frame {
    folder: Option<OwnedFd>,
    names: std::vec::IntoIter<Vec<u8>>,
    device: u64,
}

impl SourceTree {
    /// Opens the sources. "SRC" goes to its last component below the destination, "SRC/" stands for its content.
    ///
    /// # Errors
    /// `Input`: a source that is not there, or an exclude pattern that is none.
    pub fn open(sources: &[String], options: &CopyOptions) -> Result<SourceTree, CopyError> {
        if sources.is_empty() {
            let text = "sources: none; write at least one path".to_owned();
            return Err(CopyError { kind: ErrorKind::Input, text });
        }
        let origins = sources.iter().map(|source| Origin::open(source)).collect::<Result<Vec<_>, _>>()?;
        let wanted = Wanted { xattrs: options.xattrs, sparse: options.sparse };
        Ok(SourceTree {
            files: Arc::new(SourceFiles::new(origins, wanted)),
            exclude: Exclude::new(&options.exclude)?,
            wanted,
            one_file_system: options.one_file_system,
            origin: 0,
            begun: false,
            frames: vec![],
            path: vec![],
            number: 0,
            linked: BTreeMap::new(),
            last_link: None,
            tops: BTreeSet::new(),
            pending: None,
            state: None,
            content_left_out: false,
            is_source_link: false,
            notes: vec![],
            left_out: vec![],
            uncopied: BTreeMap::new(),
            mounts: Mounts::default(),
        })
    }

    /// Leaves out the destination of this copy, where it is below a source: the copy would never end.
    pub(crate) fn of_copy(self, copy: &str) -> SourceTree {
        SourceTree { state: Some(format!("{STATE_NAME}/{copy}")), ..self }
    }

    /// Shape of the sources together; the receiver needs it for [`crate::Destination::open`].
    pub fn shape(&self) -> SourcesShape {
        match self.files.origins() {
            [one] if one.is_device() => SourcesShape::OneDevice,
            [one] if one.kind != FileType::Directory => SourcesShape::OneFile,
            _ => SourcesShape::Tree,
        }
    }

    /// Path of the entry that the last hard link leads to; `number` is that of its kind.
    pub fn first_path(&self, number: u64) -> Option<Vec<Vec<u8>>> {
        self.last_link.as_ref().filter(|first| first.number == number).map(|first| first.path.clone())
    }

    /// True if the last entry is a folder whose content is left out, since it is on another file system.
    pub fn content_left_out(&self) -> bool {
        self.content_left_out
    }

    /// Names that are left out and no fault, each in one line, since the last call: states of unfinished copies.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// True if the last entry is a source itself, named without a slash, and a symbolic link.
    pub fn is_source_link(&self) -> bool {
        self.is_source_link
    }

    /// Paths of entries of kinds that are not copied, since the last call.
    pub fn take_left_out(&mut self) -> Vec<Vec<Vec<u8>>> {
        std::mem::take(&mut self.left_out)
    }

    /// All entries of kinds that are not copied, a line for each kind; after the last entry.
    pub fn left_out_notes(&self) -> Vec<String> {
        let note = |(kind, (count, names)): (&&str, &(u64, Vec<String>))| {
            let more = count - names.len() as u64;
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("left out {}: {}{more}", plural(*count, kind), names.join(", "))
        };
        self.uncopied.iter().map(note).collect()
    }

    /// Counts an entry of a kind that is not copied.
    fn leave_out(&mut self, stat: &Stat) {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Socket => "socket",
            _ => "unknown entry",
        };
        let (count, names) = self.uncopied.entry(kind).or_default();
        *count += 1;
        if names.len() < NAMES_MAX {
            names.push(copy::show_path(&self.path));
        }
        self.left_out.push(self.path.clone());
    }

    /// The mount points below the sources whose content was walked, so far.
    pub fn mounts(&self) -> &[SourceMount] {
        self.mounts.list()
    }

    /// The files of this walk, to be shared by the threads of the streams.
    pub fn files(&self) -> Arc<SourceFiles> {
        Arc::clone(&self.files)
    }

    /// The first entry of the next source; None: it is left out.
    fn begin(&mut self) -> Option<Result<Entry, FileFault>> {
        let files = Arc::clone(&self.files);
        let origin = &files.origins()[self.origin];
        files.begins(self.number);
        self.path.clone_from(&origin.path);
        self.begun = true;
        if origin.is_device() {
            return Some(files.device(origin).map_err(|error| self.unreadable(&error)));
        }
        let below = origin.below(&self.path);
        let name = below.last().cloned().unwrap_or_else(|| b".".to_vec());
        self.is_source_link = origin.kind == FileType::Symlink;
        self.visit(&origin.root, origin.root.root(), &below, &name)
    }

    /// An entry, of which the path is `self.path`; a folder is entered, of everything else the name is dropped again.
    fn visit(
        &mut self,
        root: &Beneath,
        folder: BorrowedFd<'_>,
        below: &[Vec<u8>],
        name: &[u8],
    ) -> Option<Result<Entry, FileFault>> {
        let found = self.look(root, folder, below, name);
        let entered = match &found {
            Some(Ok((entry, stat))) if entry.kind == EntryKind::Folder => {
                self.enter(root, below, stat);
                true
            }
            _ => false,
        };
        if !entered {
            self.path.pop();
        }
        Some(found?.map(|(entry, _)| entry))
    }

    fn look(
        &mut self,
        root: &Beneath,
        folder: BorrowedFd<'_>,
        below: &[Vec<u8>],
        name: &[u8],
    ) -> Option<Result<(Entry, Stat), FileFault>> {
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // It went while its folder was listed.
            Err(Errno::NOENT) if !self.frames.is_empty() => return None,
            Err(error) => return Some(Err(self.unreadable(&error.into()))),
        };
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if !self.path.is_empty() && self.exclude.leaves_out(&self.path, is_folder) {
            return None;
        }
        if self.path.len() == 1 && self.files.origins().len() > 1 && !self.tops.insert(self.path[0].clone()) {
            let reason = "another source has the same name at the destination";
            return Some(Err(fault(&self.path, FaultKind::Unreadable, reason)));
        }
        if let Some(to) = self.first_name(&stat) {
            let entry = metadata::entry(root, folder, below, name, &self.path, &stat, self.wanted);
            return match entry {
                Ok(Some(entry)) => Some(Ok((Entry { kind: EntryKind::HardLink { to }, ..entry }, stat))),
                Ok(None) => None,
                Err(error) => Some(Err(self.unreadable(&error))),
            };
        }
        match metadata::entry(root, folder, below, name, &self.path, &stat, self.wanted) {
            Ok(None) => {
                self.leave_out(&stat);
                None
            }
            Ok(Some(entry)) => {
                self.remember(&entry, &stat);
                Some(Ok((entry, stat)))
            }
            Err(error) => Some(Err(self.unreadable(&error))),
        }
    }

    /// The entry that was the first name of this file, if there was one.
    fn first_name(&mut self, stat: &Stat) -> Option<u64> {
        let key = (stat.st_dev, stat.st_ino);
        let first = self.linked.get_mut(&key)?;
        first.left -= 1;
        let last = first.clone();
        if last.left == 0 {
            self.linked.remove(&key);
        }
        let number = last.number;
        self.last_link = Some(last);
        Some(number)
    }

    fn remember(&mut self, entry: &Entry, stat: &Stat) {
        #[allow(clippy::useless_conversion, reason = "st_nlink has 32 bits on aarch64")]
        let names = u64::from(stat.st_nlink);
        if matches!(entry.kind, EntryKind::File { .. }) && names > 1 {
            let first = FirstName { number: self.number, path: entry.path.clone(), left: names - 1 };
            self.linked.insert((stat.st_dev, stat.st_ino), first);
        }
    }

    /// Lists the folder that `self.path` leads to.
    fn enter(&mut self, root: &Beneath, below: &[Vec<u8>], stat: &Stat) {
        let mut names = vec![];
        let mut folder = None;
        let device = self.files.device_of(self.origin);
        let mut is_mount = self.frames.last().is_some_and(|above| above.device != stat.st_dev);
        if self.one_file_system && stat.st_dev != device {
            is_mount = false;
            self.content_left_out = true;
        } else {
            match root.listed(below) {
                Ok(fd) if self.is_destination(&fd) => {
                    let reason = "it is the destination of this copy: its content is left out";
                    self.pending = Some(fault(&self.path, FaultKind::Unreadable, reason));
                    is_mount = false;
                }
                Ok(fd) => {
                    // A bind mount may have the device of the folder above.
                    is_mount = is_mount || (!self.frames.is_empty() && is_mount_root(&fd));
                    match sorted_names(&fd, &mut names) {
                        Ok(has_state) if has_state && self.notes.len() < NOTES_MAX => {
                            let path = copy::show_path(&[self.path.as_slice(), &[STATE_NAME.into()]].concat());
                            self.notes.push(format!("left out: {path}: parts and journals of copies to this folder"));
                        }
                        Ok(_) => {}
                        Err(error) => self.pending = Some(self.unreadable(&error)),
                    }
                    folder = Some(fd);
                }
                Err(error) => {
                    let reason = format!("the folder cannot be listed: {}", words(&error));
                    self.pending = Some(fault(&self.path, FaultKind::Unreadable, reason));
                }
            }
        }
        if is_mount {
            self.notes.extend(self.mounts.add(self.origin, below));
        }
        if self.frames.len() >= OPEN_MAX {
            let above = self.frames.len() - OPEN_MAX;
            self.frames[above].folder = None;
        }
        self.frames.push(Frame { folder, names: names.into_iter(), device: stat.st_dev });
    }

    fn is_destination(&self, folder: &OwnedFd) -> bool {
        let there = |state: &String| statat(folder, state.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok();
        self.state.as_ref().is_some_and(there)
    }

    /// The next name of the folder where the walk is; None: the folder is left, or the name is left out.
    fn step(&mut self) -> Option<Result<Entry, FileFault>> {
        let frame = self.frames.last_mut()?;
        let Some(name) = frame.names.next() else {
            self.frames.pop();
            self.path.pop();
            return None;
        };
        let files = Arc::clone(&self.files);
        let origin = &files.origins()[self.origin];
        let folder = match frame.folder.take() {
            Some(folder) => folder,
            None => match origin.root.listed(&origin.below(&self.path)) {
                Ok(folder) => folder,
                Err(error) => {
                    frame.names = vec![].into_iter();
                    return Some(Err(self.unreadable(&error)));
                }
            },
        };
        let depth = self.frames.len();
        self.path.push(name.clone());
        let below = origin.below(&self.path);
        let found = self.visit(&origin.root, folder.as_fd(), &below, &name);
        self.frames[depth - 1].folder = Some(folder);
        found
    }

    fn unreadable(&self, error: &io::Error) -> FileFault {
        fault(&self.path, FaultKind::Unreadable, words(error))
    }
}

impl Iterator for SourceTree {
    type Item = Result<(u64, Entry), FileFault>;

    /// The next entry with its number, which counts entries, not faults. A fault leaves one entry, or what is below it,
    /// out.
    fn next(&mut self) -> Option<Self::Item> {
        self.content_left_out = false;
        self.is_source_link = false;
        loop {
            if let Some(fault) = self.pending.take() {
                return Some(Err(fault));
            }
            let found = if !self.frames.is_empty() {
                self.step()
            } else if self.begun {
                self.origin += 1;
                self.begun = false;
                None
            } else if self.origin < self.files.origins().len() {
                self.begin()
            } else {
                return None;
            };
            match found {
                None => {}
                Some(Err(fault)) => return Some(Err(fault)),
                Some(Ok(entry)) => {
                    self.number += 1;
                    return Some(Ok((self.number - 1, entry)));
                }
            }
        }
    }
}

/// Names of a folder, sorted: a walk has the same order each time. True: the states of copies to it are there too.
fn sorted_names(folder: &OwnedFd, names: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let mut has_state = false;
    let result = list(folder, |one| {
        match one.name.to_bytes() {
            name if name == STATE_NAME.as_bytes() => has_state = true,
            name => names.push(name.to_vec()),
        }
        Ok(())
    });
    names.sort_unstable();
    result.map(|()| has_state)
}
