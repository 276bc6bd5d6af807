//! Test of an Ethernet line without I/O: frames of a stream, what a receiver measures of them, and the messages between
//! both ends, which go over the line itself.
//!
//! A [`Sender`] sends one stream after the other: it announces the stream, sends frames at a constant rate, asks the
//! receiver for its counts now and then, and for all of them at the end. A [`Responder`] is the other end: it counts
//! streams with a [`Receiver`] each, and answers. Both take frames with `handle_frame` and the time as an argument.
//! Times of frames are those of the clock of the day (ns since 1970), which two machines may share; how far they do is
//! a [`Clock`].
//!
//! **Invariant: a frame that the generator did not send is in no number of its stream, so that what a receiver misses
//! is the line's loss or its own kernel's, which is counted apart.**

mod clock;
mod ethernet;
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
pub use ethernet::{Mac, ETHERTYPE, FCS_BYTES, HEADER_BYTES, LINE_OVERHEAD_BYTES, VLAN_TAG_BYTES};
pub use message::{Answer, Description, Message};
pub use mix::{Mix, FRAME_BYTES_MAX, FRAME_BYTES_MIN};
pub use pattern::Pattern;
pub use receiver::{Arrival, Receiver};
pub use report::{Latency, Report, Window};
pub use responder::{Responder, STREAMS_MAX};
pub use schedule::Schedule;
pub use sender::{Due, Now, Outcome, Row, Sender, Sent};
pub use spec::{mac_text, parse_mac, StreamSpec, WrongSpec};
pub use stamp::{Kind, Stamp, STAMP_BYTES};
