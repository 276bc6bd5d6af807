//! Identity of a file: its inode, size and times.

use copy::{Identity, Stamp};
use rustix::fs::Stat;

/// Identity of the file that `stat` shows. Any write to it changes the identity, also one that restores the time of
/// the last change.
pub(crate) fn identity(stat: &Stat) -> Identity {
    Identity {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: size(stat),
        modified: Stamp { seconds: stat.st_mtime, nanoseconds: nanoseconds(stat.st_mtime_nsec) },
        changed: Stamp { seconds: stat.st_ctime, nanoseconds: nanoseconds(stat.st_ctime_nsec) },
    }
}

/// Bytes of the file.
pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

#[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions, reason = "the type differs per target")]
fn nanoseconds(value: impl TryInto<u32>) -> u32 {
    value.try_into().unwrap_or_default()
}
