//! iSCSI (RFC 7143): an initiator and a target as state machines without I/O, over simulated TCP and over sockets
//! alike.
//!
//! Both take and give whole PDUs ([`wire::iscsi::Pdu`]) with the framing that is in force for each. A caller over
//! sockets turns them into bytes; one in the simulator counts their bytes ([`wire::iscsi::Framing::length`]) and hands
//! them on when TCP has delivered so many. Data is a [`wire::iscsi::Payload`] in either case: bytes live, lengths in
//! the simulator.
//!
//! **Invariant: what a peer sends can end its own connection and session, and nothing else; what is kept for it is
//! bounded.**
//!
//! Error recovery level 0: what goes wrong on a connection ends it, and commands start again on the next one. Levels 1
//! and 2 are negotiated down.

mod chap;
pub mod initiator;
mod outbound;
mod settings;
mod target;

#[cfg(test)]
mod tests;

pub use chap::{Credentials, Secret};
pub use initiator::{Initiator, InitiatorConfig, WindowUse};
pub use outbound::Outbound;
pub use settings::{Digest, Negotiated, Negotiation, Settings};
pub use target::{ConnectionId, LoginProgress, MemoryConfig, Target, TargetConfig, Work};
