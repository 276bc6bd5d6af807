//! A frame on its way, and the ends of the links that carry it.

use storage::fc::link::End;
use units::Time;
use wire::fc::Frame;

/// The end of a link at an N_Port; the gateway has the other.
pub const PORT: End = End::A;
/// The end of a link at a gateway.
pub const GATEWAY: End = End::B;

/// A frame on its way.
#[derive(Clone)]
pub struct Carried {
    /// Time of its generation.
    pub issued: Time,
    /// Time at which it entered the gateways, as its time stamp says (RFC 3643, section 4).
    pub entered: Time,
    /// The frame.
    pub frame: Frame,
}
