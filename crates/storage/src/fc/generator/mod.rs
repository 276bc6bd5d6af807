//! A load of frames at a share of a port's rate, and what the receiver measures of it: the test of the FCSim cards in
//! "Storage-friendly TCP" in software.
//!
//! A sender polls a [`Generator`] for the frames that are due; each has a [`Stamp`] with its number and time of
//! sending, as bytes in the payload or, in a simulator that moves none, as a value beside the frame. A [`Receiver`]
//! takes the stamps: latency of every frame, loss, duplicates, frames out of order, in constant memory. At the end the
//! sender asks for the receiver's [`LoadResult`] by a frame ([`EndOfLoad`]).

mod receiver;
mod result;
mod schedule;
mod settings;
mod stamp;
#[cfg(test)]
mod tests;

pub use receiver::{Receiver, Report};
pub use result::{EndOfLoad, LoadResult, RESULT_PER_MILLE};
pub use schedule::{Due, Generator};
pub use settings::{Settings, Size, WrongSettings};
pub use stamp::{load_frame, load_header, stamp_of, Stamp, LOAD_TYPE, STAMP_BYTES};
