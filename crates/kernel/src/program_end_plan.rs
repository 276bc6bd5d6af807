//! One end of a real program as the traffic of a flow between two hosts.

use std::path::PathBuf;

/// The connections that are a program's, of those between two addresses.
#[derive(Clone, Debug)]
pub(crate) enum Ports {
    /// All of them.
    Any,
    /// Those to a server here, on ports in these ranges.
    OfServer(Vec<[u16; 2]>),
    /// Those to a server at the other end, on ports in these ranges.
    OfPeer(Vec<[u16; 2]>),
}

impl Ports {
    /// Returns true if a connection between a port here and one there is the program's.
    pub fn have(&self, local: u16, remote: u16) -> bool {
        let within =
            |ranges: &[[u16; 2]], port: u16| ranges.iter().any(|[first, last]| (*first..=*last).contains(&port));
        match self {
            Ports::Any => true,
            Ports::OfServer(ranges) => within(ranges, local),
            Ports::OfPeer(ranges) => within(ranges, remote),
        }
    }
}

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
