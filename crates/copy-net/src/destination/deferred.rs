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

/// The reason of a fault: [`Renamed::Blocked`].
pub(super) const NOT_EMPTY: &str = "a folder that is not empty has its name";

/// The result of a rename.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Renamed {
    /// It has its name.
    Done,
    /// A folder has the name that `mirror` removes in the end.
    Blocked,
}
