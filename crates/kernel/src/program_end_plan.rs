//! One end of a real program as the traffic of a flow between two hosts.

use crate::traffic::Ports;
use std::path::PathBuf;

/// A server or a client, the other one of which another agent has.
#[derive(Clone, Debug)]
pub struct ProgramEndPlan {
    /// Name for messages.
    pub name: String,
    /// Command line.
    pub words: Vec<String>,
    /// True if it is the server, which listens until it is ended; false if it is the client, which ends when everything
    /// has been sent.
    pub serves: bool,
    /// Ranges of the server's ports, of which the first begins with the one that it listens on: connections on other
    /// ports are not the program's.
    pub ports: Vec<[u16; 2]>,
    /// Connections that are to carry data at once.
    pub streams: usize,
    /// True if the client ends well only after the server has confirmed all data.
    pub confirmed: bool,
    /// Folder in which it starts, and for its output.
    pub folder: PathBuf,
}

impl ProgramEndPlan {
    /// The port that the server listens on.
    pub(crate) fn port(&self) -> u16 {
        self.ports.first().map_or(0, |[first, _]| *first)
    }

    /// The connections of this end.
    pub(crate) fn connections(&self) -> Ports {
        let ports = self.ports.clone();
        if self.serves {
            Ports::OfServer(ports)
        } else {
            Ports::OfPeer(ports)
        }
    }
}
