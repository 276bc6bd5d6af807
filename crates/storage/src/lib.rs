//! Storage: block traces of common formats, and disk models with the timing of measured drives.
//!
//! The crate reads traces strictly (what does not parse is an error with its line, never a guess), and turns the
//! writes of a trace into a timetable, slowed down and repeated as asked. What it does not: it knows no network, and
//! its readers take any `BufRead`; only [`trace::open`], [`trace::stream`] and [`disk::device`] touch files.
//!
//! **Invariant: requests are in the order of their arrival, and a replay never goes back in time or drifts from its
//! trace.**

#![forbid(unsafe_code)]

pub mod disk;
pub mod fc;
pub mod iscsi;
pub mod scsi;
pub mod trace;

pub use trace::{
    open, stream, Format, Kind, Replay, Request, Trace, TraceError, TraceReader, Write, Writes, SECTOR_BYTES,
};
