//! A file system in memory that keeps what is synced apart from what is only written, and forgets the rest at a power
//! cut.
//!
//! It promises as little as POSIX does: fsync(2) of a file makes its content durable but not its name, fsync of a
//! folder makes names durable but no content, fdatasync leaves metadata out. A rename is one step, as on every
//! journaling file system. At a cut each sector, each size, each file's metadata and each name that was not synced is
//! kept or not by chance.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a disk writes as one (the traditional sector; no disk promises more).
const SECTOR: usize = 512;
pub const ROOT: u64 = 1;

pub type Key = (u64, Vec<u8>);
pub type Errno = i32;

/// A file, folder, link or node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub meta: Meta,
    /// Content, or the target of a symbolic link.
    pub data: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub struct Meta {
    /// With the type (S_IFMT).
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    /// Since 1970, ns.
    pub modified_ns: i128,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A step that is whole or not at all: names that come (to an inode) or go.
struct NameStep(Vec<(Key, Option<u64>)>);

/// See the module.
pub struct Disk {
    pub nodes: BTreeMap<u64, Node>,
    pub names: BTreeMap<Key, u64>,
    links: BTreeMap<u64, u32>,
    durable_nodes: BTreeMap<u64, Node>,
    durable_names: BTreeMap<Key, u64>,
    /// Steps that are not durable, in order.
    steps: Vec<NameStep>,
    /// Sectors of files that were written and not synced.
    dirty: BTreeMap<u64, BTreeSet<usize>>,
    next: u64,
    clock_ns: i128,
    /// Changes and syncs so far, and at which of them the power goes.
    pub changes: u64,
    pub cut_at: u64,
    dead: bool,
    random: u64,
}

impl Disk {
    pub fn new(seed: u64) -> Disk {
        let root = Node { meta: Meta { mode: libc::S_IFDIR | 0o755, ..Meta::default() }, data: vec![] };
        Disk {
            nodes: BTreeMap::from([(ROOT, root.clone())]),
            names: BTreeMap::new(),
            links: BTreeMap::from([(ROOT, 2)]),
            durable_nodes: BTreeMap::from([(ROOT, root)]),
            durable_names: BTreeMap::new(),
            steps: vec![],
            dirty: BTreeMap::new(),
            next: ROOT + 1,
            clock_ns: 1_700_000_000_000_000_000,
            changes: 0,
            cut_at: u64::MAX,
            dead: false,
            random: seed,
        }
    }

    /// Splitmix64: the same cuts for the same seed.
    fn chance(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Fails when there is no power.
    pub fn read(&self) -> Result<(), Errno> {
        if self.dead {
            Err(libc::EIO)
        } else {
            Ok(())
        }
    }

    /// Counts a change; the power may go at it.
    fn change(&mut self) -> Result<(), Errno> {
        self.read()?;
        self.changes += 1;
        self.clock_ns += 1_000_003;
        self.dead = self.changes >= self.cut_at;
        self.read()
    }

    pub fn is_dead(&self) -> bool {
        self.dead
    }

    pub fn node(&self, inode: u64) -> Result<&Node, Errno> {
        self.read()?;
        self.nodes.get(&inode).ok_or(libc::ENOENT)
    }

    pub fn find(&self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        self.read()?;
        self.names.get(&(folder, name.to_vec())).copied().ok_or(libc::ENOENT)
    }

    pub fn links(&self, inode: u64) -> u32 {
        self.links.get(&inode).copied().unwrap_or(0)
    }

    fn is_folder(&self, inode: u64) -> bool {
        self.nodes.get(&inode).is_some_and(|node| node.meta.mode & libc::S_IFMT == libc::S_IFDIR)
    }

    fn is_empty(&self, folder: u64) -> bool {
        self.names.range((folder, vec![])..(folder + 1, vec![])).next().is_none()
    }

    /// Takes the step in what is alive, and notes it.
    fn step(&mut self, changes: Vec<(Key, Option<u64>)>) {
        for (key, inode) in &changes {
            let old = match inode {
                Some(inode) => self.names.insert(key.clone(), *inode),
                None => self.names.remove(key),
            };
            if let Some(links) = old.and_then(|old| self.links.get_mut(&old)) {
                *links -= 1;
            }
            if let Some(inode) = inode {
                *self.links.entry(*inode).or_default() += 1;
            }
            let now = self.clock_ns;
            if let Some(folder) = self.nodes.get_mut(&key.0) {
                folder.meta.modified_ns = now;
            }
        }
        self.steps.push(NameStep(changes));
    }

    /// Makes an entry.
    pub fn make(&mut self, folder: u64, name: &[u8], meta: Meta, data: Vec<u8>) -> Result<u64, Errno> {
        self.change()?;
        if self.names.contains_key(&(folder, name.to_vec())) {
            return Err(libc::EEXIST);
        }
        let inode = self.next;
        self.next += 1;
        let meta = Meta { modified_ns: self.clock_ns, ..meta };
        self.nodes.insert(inode, Node { meta, data });
        self.step(vec![((folder, name.to_vec()), Some(inode))]);
        Ok(inode)
    }

    pub fn link(&mut self, inode: u64, folder: u64, name: &[u8]) -> Result<(), Errno> {
        self.change()?;
        if self.names.contains_key(&(folder, name.to_vec())) {
            return Err(libc::EEXIST);
        }
        self.step(vec![((folder, name.to_vec()), Some(inode))]);
        Ok(())
    }

    pub fn remove(&mut self, folder: u64, name: &[u8], want_folder: bool) -> Result<(), Errno> {
        self.change()?;
        let inode = self.find(folder, name)?;
        match (want_folder, self.is_folder(inode)) {
            (true, false) => return Err(libc::ENOTDIR),
            (false, true) => return Err(libc::EISDIR),
            (true, true) if !self.is_empty(inode) => return Err(libc::ENOTEMPTY),
            _ => {}
        }
        self.step(vec![((folder, name.to_vec()), None)]);
        Ok(())
    }

    pub fn rename(&mut self, from: Key, to: Key) -> Result<(), Errno> {
        self.change()?;
        let inode = self.find(from.0, &from.1)?;
        if let Some(&old) = self.names.get(&to) {
            if old == inode {
                return Ok(());
            }
            match (self.is_folder(inode), self.is_folder(old)) {
                (false, true) => return Err(libc::EISDIR),
                (true, false) => return Err(libc::ENOTDIR),
                (true, true) if !self.is_empty(old) => return Err(libc::ENOTEMPTY),
                _ => {}
            }
        }
        self.step(vec![(from, None), (to, Some(inode))]);
        Ok(())
    }

    pub fn write(&mut self, inode: u64, offset: usize, data: &[u8]) -> Result<(), Errno> {
        self.change()?;
        let now = self.clock_ns;
        let node = self.nodes.get_mut(&inode).ok_or(libc::ENOENT)?;
        let end = offset + data.len();
        if node.data.len() < end {
            node.data.resize(end, 0);
        }
        node.data[offset..end].copy_from_slice(data);
        node.meta.modified_ns = now;
        self.dirty.entry(inode).or_default().extend(offset / SECTOR..end.div_ceil(SECTOR));
        Ok(())
    }

    pub fn set_len(&mut self, inode: u64, size: usize) -> Result<(), Errno> {
        self.change()?;
        let now = self.clock_ns;
        let node = self.nodes.get_mut(&inode).ok_or(libc::ENOENT)?;
        // A file that was cut and grew again has zeros there, which have to come to the disk too.
        let last = node.data.len() / SECTOR;
        node.data.resize(size, 0);
        node.meta.modified_ns = now;
        self.dirty.entry(inode).or_default().extend([last, size / SECTOR]);
        Ok(())
    }

    pub fn set_meta(&mut self, inode: u64, set: impl FnOnce(&mut Meta) -> Result<(), Errno>) -> Result<(), Errno> {
        self.change()?;
        set(&mut self.nodes.get_mut(&inode).ok_or(libc::ENOENT)?.meta)
    }

    /// fsync(2) of a file, or fdatasync(2).
    pub fn sync_file(&mut self, inode: u64, data_only: bool) -> Result<(), Errno> {
        self.change()?;
        let live = self.nodes.get(&inode).ok_or(libc::ENOENT)?.clone();
        let born = born(&live);
        let durable = self.durable_nodes.entry(inode).or_insert(born);
        durable.data = live.data;
        if !data_only {
            durable.meta = live.meta;
        }
        self.dirty.remove(&inode);
        Ok(())
    }

    /// fsync(2) of a folder.
    pub fn sync_folder(&mut self, folder: u64) -> Result<(), Errno> {
        self.change()?;
        let mut wanted = vec![false; self.steps.len()];
        let mut keys = BTreeSet::new();
        // A step takes along earlier ones with the same names.
        for (index, step) in self.steps.iter().enumerate().rev() {
            if step.0.iter().any(|(key, _)| key.0 == folder || keys.contains(key)) {
                wanted[index] = true;
                keys.extend(step.0.iter().map(|(key, _)| key.clone()));
            }
        }
        for (step, wanted) in std::mem::take(&mut self.steps).into_iter().zip(wanted) {
            match wanted {
                true => self.keep(step),
                false => self.steps.push(step),
            }
        }
        if let Some(live) = self.nodes.get(&folder) {
            self.durable_nodes.insert(folder, live.clone());
        }
        Ok(())
    }

    /// A step comes to the disk. An inode comes with its name, a file's content does not.
    fn keep(&mut self, step: NameStep) {
        for (key, inode) in step.0 {
            match inode {
                Some(inode) => {
                    if let Some(live) = self.nodes.get(&inode) {
                        let born = born(live);
                        self.durable_nodes.entry(inode).or_insert(born);
                    }
                    self.durable_names.insert(key, inode);
                }
                None => drop(self.durable_names.remove(&key)),
            }
        }
    }

    /// The power has gone and is back: what was not synced is kept by chance, in some cuts never, in some always.
    pub fn reboot(&mut self) {
        let odds = [0, 50, 50, 90, 100][(self.chance() % 5) as usize];
        let mut lost = BTreeSet::new();
        for step in std::mem::take(&mut self.steps) {
            let possible = step.0.iter().all(|(key, _)| !lost.contains(key));
            if possible && self.chance() % 100 < odds {
                self.keep(step);
            } else {
                lost.extend(step.0.into_iter().map(|(key, _)| key));
            }
        }
        for (inode, sectors) in std::mem::take(&mut self.dirty) {
            let Some(live) = self.nodes.get(&inode).cloned() else { continue };
            let Some(mut durable) = self.durable_nodes.remove(&inode) else { continue };
            if self.chance() % 100 < odds {
                durable.data.resize(live.data.len(), 0);
            }
            for sector in sectors {
                let begin = sector * SECTOR;
                let end = (begin + SECTOR).min(live.data.len()).min(durable.data.len());
                if begin < end && self.chance() % 100 < odds {
                    durable.data[begin..end].copy_from_slice(&live.data[begin..end]);
                }
            }
            if self.chance() % 100 < odds {
                durable.meta = live.meta;
            }
            self.durable_nodes.insert(inode, durable);
        }
        // Files in folders that have no name are lost with them.
        let mut reached = BTreeSet::from([ROOT]);
        let mut queue = vec![ROOT];
        while let Some(folder) = queue.pop() {
            for (_, &inode) in self.durable_names.range((folder, vec![])..(folder + 1, vec![])) {
                if reached.insert(inode) {
                    queue.push(inode);
                }
            }
        }
        self.durable_names.retain(|key, _| reached.contains(&key.0));
        self.durable_nodes.retain(|inode, _| reached.contains(inode));
        self.nodes = self.durable_nodes.clone();
        self.names = self.durable_names.clone();
        self.links = BTreeMap::from([(ROOT, 2)]);
        for inode in self.names.values() {
            *self.links.entry(*inode).or_default() += 1;
        }
        (self.dead, self.changes, self.cut_at) = (false, 0, u64::MAX);
    }

    /// Content of the files below a folder of the root, by path.
    pub fn files(&self, folder: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut found = BTreeMap::new();
        if let Some(&folder) = self.names.get(&(ROOT, folder.as_bytes().to_vec())) {
            self.files_below(folder, b"", &mut found);
        }
        found
    }

    fn files_below(&self, folder: u64, above: &[u8], found: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
        for ((_, name), inode) in self.names.range((folder, vec![])..(folder + 1, vec![])) {
            let path = [above, if above.is_empty() { b"" } else { b"/" }, name].concat();
            if self.is_folder(*inode) {
                self.files_below(*inode, &path, found);
            } else if let Some(node) = self.nodes.get(inode) {
                found.insert(path, node.data.clone());
            }
        }
    }
}

/// A new inode that comes to the disk with its name alone: of a file, no content.
fn born(live: &Node) -> Node {
    let is_file = live.meta.mode & libc::S_IFMT == libc::S_IFREG;
    let meta = Meta { xattrs: BTreeMap::new(), modified_ns: 0, ..live.meta.clone() };
    match is_file {
        true => Node { meta: Meta { mode: libc::S_IFREG | 0o600, ..meta }, data: vec![] },
        false => Node { meta, data: live.data.clone() },
    }
}

#[test]
fn only_what_was_synced_is_sure_to_outlive_a_cut() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..200 {
        let mut disk = Disk::new(seed);
        let file = Meta { mode: libc::S_IFREG | 0o644, ..Meta::default() };
        let a = disk.make(ROOT, b"a", file.clone(), vec![]).unwrap();
        disk.write(a, 0, &[1; 2000]).unwrap();
        disk.sync_file(a, false).unwrap();
        disk.sync_folder(ROOT).unwrap();
        let b = disk.make(ROOT, b"b", file, vec![]).unwrap();
        disk.write(b, 0, &[2; 2000]).unwrap();
        disk.sync_file(b, false).unwrap();
        disk.write(a, 0, &[3; 1000]).unwrap();
        disk.rename((ROOT, b"a".to_vec()), (ROOT, b"c".to_vec())).unwrap();
        disk.reboot();
        let name = match (disk.find(ROOT, b"a"), disk.find(ROOT, b"c")) {
            (Ok(inode), Err(_)) | (Err(_), Ok(inode)) => inode,
            both => panic!("a rename is one step: {both:?}"),
        };
        let data = &disk.node(name).unwrap().data;
        assert!(data.len() == 2000 && data[1024..] == [1; 976], "{seed}");
        match disk.find(ROOT, b"b") {
            Ok(inode) => {
                assert_eq!(disk.node(inode).unwrap().data, [2; 2000]);
                kept += 1;
            }
            Err(_) => lost += 1,
        }
    }
    assert!(kept > 0 && lost > 0);
}
