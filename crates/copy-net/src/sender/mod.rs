//! The end that reads: sources walked, chunks read, hashed and sent, what the receiver says taken in.

mod control;
mod hashes;
mod scan;
mod state;
mod stream;

pub(crate) use state::Sender;
