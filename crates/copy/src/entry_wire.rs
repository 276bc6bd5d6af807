//! Entries as bytes, with a bound on each member.

use crate::entry::{Entry, EntryKind, Identity, Stamp};
use crate::names::{check_path, NAME_BYTES, PATH_BYTES};
use crate::plan::FILE_MAX;
use crate::wire::{put_bytes, put_number, put_signed, signed};
use crate::wire::{Decoder, WireError};

/// Components of a path: PATH_MAX with names of one byte.
const DEPTH_MAX: usize = PATH_BYTES / 2;
/// Extended attributes of one entry, all together: XATTR_LIST_MAX and XATTR_SIZE_MAX of Linux are 64 KiB each.
const XATTR_BYTES: usize = 512 << 10;
const XATTR_VALUE: usize = 64 << 10;

/// An entry on the path. Extents stay with the sender: frames say what is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireEntry {
    /// The entry.
    pub entry: Entry,
    /// Path of the entry that a hard link leads to.
    pub first: Option<Vec<Vec<u8>>>,
    /// A folder whose content is left out (`one_file_system`): `mirror` removes nothing below it.
    pub content_left_out: bool,
    /// A symbolic link that the command names, `SRC` without a slash: `mirror` removes no folder of its name.
    pub is_source_link: bool,
}

impl WireEntry {
    /// The bound that the entry exceeds, in one line; `None`: it can be sent.
    pub fn exceeds(&self) -> Option<String> {
        let bytes: usize = self.entry.path.iter().map(|name| name.len() + 1).sum();
        if bytes > PATH_BYTES {
            return Some(format!(
                "its path has {bytes} bytes: a copy takes paths of up to {PATH_BYTES} bytes (PATH_MAX)"
            ));
        }
        if let Err(error) = check_path(&self.entry.path) {
            return Some(format!("{error}: not copied"));
        }
        match &self.entry.kind {
            EntryKind::Symlink { target } if target.is_empty() || target.len() > PATH_BYTES => {
                return Some(format!("its target has {} bytes: 1 to {PATH_BYTES} are copied", target.len()));
            }
            EntryKind::File { size, .. } if *size > FILE_MAX => {
                return Some(format!("it has {size} bytes: a copy takes files of up to {FILE_MAX} bytes"));
            }
            EntryKind::HardLink { .. } if self.first.as_ref().is_none_or(|first| check_path(first).is_err()) => {
                return Some("the first name of its file is not copied".into());
            }
            _ => {}
        }
        let mut sum = 0;
        for (name, value) in &self.entry.xattrs {
            if name.len() > NAME_BYTES || value.len() > XATTR_VALUE {
                return Some(format!("its extended attributes: a value has at most {XATTR_VALUE} bytes"));
            }
            sum += name.len() + value.len();
        }
        (sum > XATTR_BYTES)
            .then(|| format!("its extended attributes have {sum} bytes: a copy takes up to {XATTR_BYTES} bytes"))
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let entry = &self.entry;
        put_path(out, &entry.path);
        match &entry.kind {
            EntryKind::File { size, .. } => {
                out.push(0);
                put_number(out, *size);
            }
            EntryKind::Folder if self.content_left_out => out.push(7),
            EntryKind::Folder => out.push(1),
            EntryKind::Symlink { target } => {
                out.push(if self.is_source_link { 8 } else { 2 });
                put_bytes(out, target);
            }
            EntryKind::HardLink { to } => {
                out.push(3);
                put_number(out, *to);
                put_path(out, self.first.as_deref().unwrap_or_default());
            }
            EntryKind::Fifo => out.push(4),
            EntryKind::Device { block, major, minor } => {
                out.push(5 + u8::from(*block));
                put_number(out, u64::from(*major));
                put_number(out, u64::from(*minor));
            }
        }
        put_number(out, u64::from(entry.mode));
        put_number(out, u64::from(entry.uid));
        put_number(out, u64::from(entry.gid));
        put_stamp(out, entry.modified);
        put_number(out, entry.xattrs.len() as u64);
        for (name, value) in &entry.xattrs {
            put_bytes(out, name);
            put_bytes(out, value);
        }
        put_number(out, entry.identity.device);
        put_number(out, entry.identity.inode);
        put_number(out, entry.identity.size);
        put_stamp(out, entry.identity.modified);
        put_stamp(out, entry.identity.changed);
    }

    /// Reads one.
    ///
    /// # Errors
    /// A member beyond its bound, a path that is none.
    pub fn decode(from: &mut Decoder<'_>) -> Result<WireEntry, WireError> {
        let path = path(from)?;
        let mut first = None;
        let (mut content_left_out, mut is_source_link) = (false, false);
        let kind = match from.byte()? {
            0 => EntryKind::File { size: from.bounded(FILE_MAX)?, extents: None },
            1 => EntryKind::Folder,
            kind @ (2 | 8) => {
                is_source_link = kind == 8;
                let target = from.bytes(PATH_BYTES)?.to_vec();
                if target.is_empty() || target.contains(&0) {
                    return Err(WireError("a symbolic link to nothing"));
                }
                EntryKind::Symlink { target }
            }
            3 => {
                let to = from.number()?;
                first = Some(self::path(from)?);
                EntryKind::HardLink { to }
            }
            4 => EntryKind::Fifo,
            kind @ (5 | 6) => EntryKind::Device { block: kind == 6, major: small(from)?, minor: small(from)? },
            7 => {
                content_left_out = true;
                EntryKind::Folder
            }
            _ => return Err(WireError("an entry of no kind")),
        };
        let mode = from.bounded(0o7777)? as u32;
        let (uid, gid) = (small(from)?, small(from)?);
        let modified = stamp(from)?;
        let mut xattrs = Vec::new();
        let mut bytes = 0;
        for _ in 0..from.count(2)? {
            let name = from.bytes(NAME_BYTES)?;
            let value = from.bytes(XATTR_VALUE)?;
            bytes += name.len() + value.len();
            if name.is_empty() || name.contains(&0) || bytes > XATTR_BYTES {
                return Err(WireError("extended attributes beyond their bounds"));
            }
            xattrs.push((name.to_vec(), value.to_vec()));
        }
        let identity = Identity {
            device: from.number()?,
            inode: from.number()?,
            size: from.number()?,
            modified: stamp(from)?,
            changed: stamp(from)?,
        };
        let entry = Entry { path, kind, mode, uid, gid, modified, xattrs, identity };
        Ok(WireEntry { entry, first, content_left_out, is_source_link })
    }
}

fn small(from: &mut Decoder<'_>) -> Result<u32, WireError> {
    Ok(from.bounded(u64::from(u32::MAX))? as u32)
}

fn put_stamp(out: &mut Vec<u8>, stamp: Stamp) {
    put_signed(out, stamp.seconds);
    put_number(out, u64::from(stamp.nanoseconds));
}

fn stamp(from: &mut Decoder<'_>) -> Result<Stamp, WireError> {
    Ok(Stamp { seconds: signed(from)?, nanoseconds: from.bounded(999_999_999)? as u32 })
}

fn put_path(out: &mut Vec<u8>, path: &[Vec<u8>]) {
    put_number(out, path.len() as u64);
    path.iter().for_each(|name| put_bytes(out, name));
}

fn path(from: &mut Decoder<'_>) -> Result<Vec<Vec<u8>>, WireError> {
    let count = from.count(2)?;
    if count > DEPTH_MAX {
        return Err(WireError("a path too deep"));
    }
    let path = (0..count).map(|_| Ok(from.bytes(NAME_BYTES)?.to_vec())).collect::<Result<Vec<_>, WireError>>()?;
    check_path(&path)?;
    Ok(path)
}
