//! Output of a tunnel's end: changes of connections, frames that were given back, counters.

use std::fmt;
use wire::encapsulation::Discarded;
use wire::fc::{Frame, Wwn};
use wire::WireError;

/// A TCP connection: the caller's number for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionKey(pub u32);

/// A change of connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Frames go through a connection from now on.
    Opened {
        /// The connection.
        connection: ConnectionKey,
        /// Number of the peer's end among those of its switch; None where this end opened the connection.
        entity: Option<u64>,
    },
    /// The caller sends what [`super::Tunnel::poll_message`] has for a connection and then closes it. No
    /// [`super::Tunnel::handle_closed`] has to follow.
    Close {
        /// The connection.
        connection: ConnectionKey,
        /// The reason.
        reason: CloseReason,
    },
    /// The first connection is open: the switches can speak.
    Up,
    /// No connection is open any more.
    Down,
    /// A frame was given back for want of room, and now there is room.
    Room,
}

/// Reason to close a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The special frame came back changed: the other end is `0`.
    OtherName(Wwn),
    /// The special frame came back, changed in something else than the name, or without a name.
    NotEchoed,
    /// The peer is `0`, which this tunnel does not end at.
    WrongSource(Wwn),
    /// The peer asks for `0`, which this is not.
    WrongDestination(Wwn),
    /// Another end of the same peer has connections already.
    OtherEntity(u64),
    /// The number of a request came twice in a row.
    RepeatedNonce,
    /// A special frame where none may be, or a frame where one has to be.
    OutOfPlace,
    /// No special frame in time.
    NoSpecialFrame,
    /// Nothing came for twice the keep-alive time.
    Silent,
    /// The bytes are none of this protocol.
    Malformed(WireError),
    /// There are as many connections as allowed.
    TooMany,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::OtherName(name) => write!(f, "the switch at the other end is {name}, another than configured"),
            CloseReason::NotEchoed => f.write_str("the peer echoed another special frame than it was sent"),
            CloseReason::WrongSource(name) => write!(f, "switch {name} is not the configured peer of this tunnel"),
            CloseReason::WrongDestination(name) => write!(f, "the peer asks for switch {name}, which is not here"),
            CloseReason::OtherEntity(entity) => write!(f, "entity {entity} of the peer, while another has connections"),
            CloseReason::RepeatedNonce => f.write_str("the nonce of the last special frame came again"),
            CloseReason::OutOfPlace => f.write_str("the special frame must be the first message, and only that"),
            CloseReason::NoSpecialFrame => f.write_str("no special frame came in time"),
            CloseReason::Silent => f.write_str("nothing came for twice the keep-alive time"),
            CloseReason::Malformed(error) => write!(f, "{error}"),
            CloseReason::TooMany => f.write_str("the tunnel has as many connections as allowed"),
        }
    }
}

/// A frame that was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsent {
    /// The frame.
    pub frame: Frame,
    /// The reason.
    pub reason: UnsentReason,
}

/// Reason not to take a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnsentReason {
    /// Too much waits: the caller keeps the frame until [`Event::Room`].
    NoRoom,
    /// No connection is open.
    NoConnection,
    /// Frames of its exchange were lost with a connection: more of it could overtake those that are still on their way.
    Broken,
}

/// Numbers of frames by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Given to connections.
    pub sent: u64,
    /// Taken from connections and passed on.
    pub received: u64,
    /// Thrown away before they were sent: too long in this end.
    pub stale_here: u64,
    /// Thrown away when they came: too long on their way.
    pub stale: u64,
    /// Thrown away when they came: damaged.
    pub damaged: u64,
    /// Thrown away with their connection before they were sent.
    pub lost: u64,
    /// Moved to another connection when theirs was lost.
    pub moved: u64,
    /// Given back for want of room.
    pub no_room: u64,
    /// Keep-alives that were sent.
    pub keep_alives: u64,
    /// The last damage.
    pub last_damage: Option<Discarded>,
}
