//! Entries whose name a folder has that `mirror` removes: they get their name when the copy is known to be complete.

use copy::Entry;

/// An entry that waits.
pub(super) struct Deferred {
    pub(super) entry: Entry,
    /// Its path below the destination.
    pub(super) path: Vec<Vec<u8>>,
    pub(super) step: Step,
}

/// The step that is left.
pub(super) enum Step {
    /// The part of this name, sealed and durable, is renamed.
    Rename(Vec<u8>),
    /// [`super::Destination::make`]; a hard link's first path.
    Make(Option<Vec<Vec<u8>>>),
    /// [`super::Destination::link_older`].
    LinkOlder,
}

/// Reasons of faults: a folder has the name of an entry, and stays.
pub(super) const NOT_EMPTY: &str = "a folder that is not empty has its name";
pub(super) const MOUNT_POINT: &str = "a mount point has its name";
pub(super) const ELSEWHERE: &str =
    "a folder on another mount than the destination has its name: mirror removes nothing there";
pub(super) const NO_REMOVAL: &str = "a folder has its name, and mirror removes nothing, since not all could be done";
pub(super) const SOURCE_LINK: &str =
    "the source is a symbolic link, and a folder that is not empty has its name: SRC/ copies what the link leads to";

/// The result of a rename.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Renamed {
    /// It has its name.
    Done,
    /// A folder has the name that `mirror` removes in the end.
    Blocked,
}
