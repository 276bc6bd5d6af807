//! An FCP target without I/O: the commands of initiators' exchanges for the logical units of a [`Device`] (FCP-3).
//!
//! Initiators come and go ([`Target::attach`], [`Target::detach`]); their frames go in ([`Target::handle_frame`]), the
//! target's come out ([`Target::poll_frame`]). The caller performs the operations of [`Target::poll_work`] and hands
//! their outcome to [`Target::handle_work`]. Data is cut into frames when they are polled, so that what waits for a
//! slow link is the data once, and no copies.
//!
//! **Invariant: a write reaches the medium whole, once, and in its place, or not at all; data of an aborted exchange
//! never does.**

mod abort;
mod command;
mod data;
mod engine;
mod exchange;
mod settings;

pub use engine::{Counters, Target};
pub use exchange::Work;
pub use settings::Settings;
