//! Keys of a gateway, and what it gives out.

use crate::fc::fabric::{Entry, Fabric};
use std::fmt;
use wire::fc::{FcId, Frame, Wwn};

/// Another gateway: the caller's number for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerKey(pub u32);

/// A TCP connection: the gateway's number for it, never given again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionKey(pub u64);

/// The N_Ports of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pair {
    /// The port in this gateway's region.
    pub local: Wwn,
    /// The port behind a peer.
    pub remote: Wwn,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {}", self.local, self.remote)
    }
}

/// A port behind a peer, from a list or from iSNS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemotePort {
    /// Address that its own gateway gave it. Transparent mode needs it; translation mode has no use for it.
    pub id: Option<FcId>,
    /// Names, types and features. Its location is not used.
    pub entry: Entry,
}

/// A step for the fabric of the gateway's region. The order of steps counts: a LOGO in a remote port's name comes
/// before the port is withdrawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FabricOutput {
    /// A frame of a remote port: [`Fabric::handle_remote`].
    Frame(Frame),
    /// A remote port is there: [`Fabric::present`] or, with an address, [`Fabric::present_at`].
    Present {
        /// Address that it must have, in transparent mode.
        at: Option<FcId>,
        /// The port.
        entry: Entry,
    },
    /// A remote port is gone: [`Fabric::withdraw`].
    Withdraw(FcId),
}

impl FabricOutput {
    /// Applies the step. Returns the name of a port that was to be presented and the address that it has now, to be
    /// handed to [`super::Gateway::handle_presented`].
    pub fn apply(self, fabric: &mut Fabric) -> Option<(Wwn, Option<FcId>)> {
        match self {
            FabricOutput::Frame(frame) => fabric.handle_remote(frame),
            FabricOutput::Withdraw(id) => fabric.withdraw(id),
            FabricOutput::Present { at: None, entry } => {
                let name = entry.port;
                return Some((name, fabric.present(entry)));
            }
            FabricOutput::Present { at: Some(id), entry } => {
                let name = entry.port;
                return Some((name, fabric.present_at(id, entry).then_some(id)));
            }
        }
        None
    }
}

/// The way in which the caller ends a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closing {
    /// A TCP close.
    Close,
    /// A reset.
    Reset,
}

/// A change of what a local port may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The local port.
    pub id: FcId,
    /// It is to send no more for now: no credits, or a pause.
    pub full: bool,
}
