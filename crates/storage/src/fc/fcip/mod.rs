//! One end of an FCIP tunnel without I/O (RFC 3821): several TCP connections that carry the frames of one link between
//! two switches.
//!
//! A caller tells of connections ([`Tunnel::handle_connected`], [`Tunnel::handle_accepted`], [`Tunnel::handle_closed`])
//! and hands in what comes through them, as bytes ([`Tunnel::handle_bytes`]) or, in a simulator that moves none, as
//! messages ([`Tunnel::handle_message`]). It takes out what goes through each ([`Tunnel::poll_bytes`],
//! [`Tunnel::poll_message`]). Frames enter at [`Tunnel::handle_frame`] and leave at [`Tunnel::poll_frame`].
//!
//! **Invariant: frames of one exchange and direction leave in the order in which they entered, none of them twice, and
//! none after the limit on its way; what is kept is bounded.** The limit holds where both ends have the same clock, as
//! RFC 3643, section 4 has it.

mod connection;
mod engine;
mod flows;
mod keep_alive;
mod output;
mod settings;
mod special;
#[cfg(test)]
mod tests;

pub use engine::Tunnel;
pub use flows::Spread;
pub use output::{CloseReason, ConnectionKey, Counters, Event, Unsent, UnsentReason};
pub use settings::Settings;
