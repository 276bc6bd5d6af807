//! Configuration of a way to Ethernet.

use std::path::PathBuf;

/// A way to Ethernet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttachmentConfig {
    /// An Ethernet interface, by its name.
    Interface(String),
    /// A UNIX datagram socket on which each datagram is an Ethernet frame, as QEMU's `-netdev dgram` has it.
    Socket {
        /// The path that is bound here.
        local: PathBuf,
        /// The path that the other side binds.
        remote: PathBuf,
    },
}
