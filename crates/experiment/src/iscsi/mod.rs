//! iSCSI sessions over simulated TCP: `storage`'s initiator and target at the two ends of its connections.
//!
//! The cores decide everything, login included. What lies between them here: the bytes of each PDU are written to TCP
//! and the PDU is handed on when TCP has delivered them; an operation takes the time of the disk behind; requests come
//! from a source (`crate::block`). No payload is made.

mod build;
mod session;
pub mod settings;

pub use build::session;
pub use session::Session;
