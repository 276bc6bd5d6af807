//! Shape of the sources: with it the receiver knows whether the destination is a folder or a name.

use serde::{Deserialize, Serialize};

/// Shape of the sources, taken together. The sender finds it, the receiver places entries by it (as rsync does).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourcesShape {
    /// One file, symbolic link or FIFO: it goes into a folder, or takes the destination as its name.
    OneFile,
    /// One block device, of which the content is copied: to a device, a file, or into a folder.
    OneDevice,
    /// Anything else: it goes into the destination, which is a folder.
    Tree,
}
