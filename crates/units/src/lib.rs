//! Time, rate and size as integer newtypes, with the text forms people write.
//!
//! Scope: arithmetic that cannot mix units, parsing of "25ms", "1Gbit/s", "8MB", "8MiB", printing of the same;
//! distributions of durations. Out of scope: floats but to print, calendars, clocks.
//!
//! **Invariant: inside, every quantity is an integer of one fixed unit (ns, bit/s, bytes); text needs a unit.**

#![forbid(unsafe_code)]

pub mod growth;
mod histogram;
mod parse;
mod quantity;

pub use histogram::Histogram;
pub use parse::{parse_rate, parse_size, parse_span, ParseError};
pub use quantity::{Rate, Size, Span, Time, NS_PER_S};
