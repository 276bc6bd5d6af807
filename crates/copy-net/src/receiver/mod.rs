//! The end that writes: decides what it needs, checks and writes chunks, syncs, notes in the journal, then
//! acknowledges.

mod commit;
mod delta;
mod entries;
mod state;
mod stream;

pub(crate) use state::Receiver;
