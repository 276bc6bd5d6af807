//! State of a gateway at a moment.

use std::net::SocketAddr;
use storage::fc::ifcp::{self, SessionView};
use storage::fc::{fabric, forwarder};
use wire::fc::{FcId, Wwn};

/// A port that the name server knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortStatus {
    /// Its address.
    pub id: FcId,
    /// Its name.
    pub port: Wwn,
    /// The name of its node.
    pub node: Wwn,
    /// It is behind another gateway.
    pub is_remote: bool,
    /// It registered that it speaks SCSI.
    pub has_scsi: bool,
}

/// Another gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerStatus {
    /// Its name.
    pub name: String,
    /// It can be reached.
    pub is_up: bool,
    /// It is there because the name server lists it.
    pub is_learnt: bool,
}

/// The way to a name server (iSNS).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IsnsStatus {
    /// Address of the server.
    pub server: SocketAddr,
    /// Name of the gateway there.
    pub entity: String,
    /// There is a connection, on which the server took the gateway and its ports.
    pub is_registered: bool,
    /// Attached ports, which are registered.
    pub local_ports: usize,
    /// Ports of other gateways that the server listed last.
    pub remote_ports: usize,
    /// Time since the server's last answer, ns; None before the first.
    pub age_ns: Option<u64>,
    /// Connections and requests that failed.
    pub failures: u64,
}

/// A session with a port behind another gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionStatus {
    /// Name of the other gateway.
    pub peer: String,
    /// Ports, queue and counters.
    pub view: SessionView,
}

impl From<(&str, SessionView)> for SessionStatus {
    fn from((peer, view): (&str, SessionView)) -> SessionStatus {
        SessionStatus { peer: peer.to_owned(), view }
    }
}

/// State of a gateway. Counters are of its whole life.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// Ports, in order of addresses.
    pub ports: Vec<PortStatus>,
    /// Exchanges between ports that are under way.
    pub exchanges: usize,
    /// Ethernet frames that came, and their bytes.
    pub received_frames: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Ethernet frames that went out, those that wait included.
    pub sent_frames: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Frames that the kernel dropped for want of room before they were read.
    pub kernel_drops: u64,
    /// Frames that no node took for the hold time.
    pub held_too_long: u64,
    /// Frames to nodes or interfaces that are not there.
    pub unreachable: u64,
    /// Frames from the address of a node that has a login at another socket.
    pub other_link_frames: u64,
    /// Times that reading stopped because a queue was full.
    pub pauses: u64,
    /// PAUSE frames that asked the SAN to wait, or to go on.
    pub pause_frames: u64,
    /// Time for which reading stood still, ns.
    pub paused_ns: u64,
    /// The forwarder's counters.
    pub forwarder: forwarder::Counters,
    /// The fabric's counters.
    pub fabric: fabric::Counters,
    /// Address on which it listens for other gateways.
    pub address: Option<SocketAddr>,
    /// The other gateways.
    pub peers: Vec<PeerStatus>,
    /// The way to a name server.
    pub isns: Option<IsnsStatus>,
    /// Sessions, in the order in which they began.
    pub sessions: Vec<SessionStatus>,
    /// Counters of iFCP.
    pub ifcp: ifcp::Counters,
}
