//! Test of an Ethernet line without I/O: frames of a stream, what a receiver measures of them, and the messages between
//! both ends, which go over the line itself.
//!
//! A [`Sender`] sends one stream after the other: it announces the stream, sends frames at a constant rate, asks the
//! receiver for its counts now and then, and for all of them at the end. A [`Responder`] is the other end: it counts
//! streams with a [`Receiver`] each, and answers. Both take frames with `handle_frame` and the time as an argument.
//! Times of frames are those of the clock of the day (ns since 1970), which two machines may share; how far they do is
//! a [`Clock`].

mod clock;
mod message;
mod mix;
mod pattern;
mod receiver;
mod report;
mod responder;
mod schedule;
mod sender;
mod spec;
mod stamp;

pub use clock::{Clock, ClockEstimate};
pub use message::{Answer, Description, Message};
pub use mix::{Mix, FRAME_BYTES_MAX, FRAME_BYTES_MIN};
pub use pattern::Pattern;
pub use receiver::{Arrival, Receiver};
pub use report::{Latency, Report, Window};
pub use responder::{Responder, STREAMS_MAX};
pub use schedule::Schedule;
pub use sender::{Due, Now, Outcome, Row, Sender, Sent};
pub use spec::{parse_mac, StreamSpec, WrongSpec};
pub use stamp::{Kind, Stamp, STAMP_BYTES};

/// An Ethernet address.
pub type Mac = [u8; 6];
/// Type of all frames: the first of those for local experiments (IEEE 802, 9.2.4).
pub const ETHERTYPE: u16 = 0x88b5;
/// Bytes before a frame's stamp: two addresses and a type. A tag is not counted.
pub const HEADER_BYTES: usize = wire::ethernet::ETHERNET_HEADER_BYTES;
/// Frame check sequence, bytes (IEEE 802.3, 3.2.9).
pub const FCS_BYTES: usize = 4;
/// Preamble, start of frame and the shortest gap, bytes (IEEE 802.3, 3.1.1 and 4A.4.2).
pub const LINE_OVERHEAD_BYTES: u64 = 20;
