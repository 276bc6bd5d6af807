//! Output of a fabric: frames, changes of logins, counters.

use wire::fc::{FcId, Frame, Wwn};

/// A link to the fabric: the caller's number for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortKey(pub u32);

/// A frame that leaves the fabric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Through an attached port.
    Attached(PortKey, Frame),
    /// To a port that a gateway presents.
    Remote(Frame),
}

/// A change of logins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A port has an address from now on.
    LoggedIn {
        /// The link.
        port: PortKey,
        /// The address.
        id: FcId,
        /// Its name.
        name: Wwn,
    },
    /// A port has none any more.
    LoggedOut {
        /// The link.
        port: PortKey,
        /// The address that it had.
        id: FcId,
        /// Its name.
        name: Wwn,
    },
    /// The name server's entry of an attached port changed.
    Registered {
        /// Address of the port.
        id: FcId,
    },
}

/// Frames that the fabric did not pass on, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Passed on between ports.
    pub forwarded: u64,
    /// The sender's address is not one of the link's.
    pub foreign_source: u64,
    /// Nobody has the receiver's address.
    pub unknown_destination: u64,
    /// Class 2 or 4: rejected.
    pub other_class: u64,
    /// Class F: from a switch.
    pub switch_traffic: u64,
    /// Damaged, or not as a link service or request has to be.
    pub malformed: u64,
    /// Would begin an exchange while none may: link services were rejected, other frames dropped.
    pub refused_exchanges: u64,
}
