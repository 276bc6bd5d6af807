//! The node's side of FCoE without I/O (FC-BB-5, clause 7.8): finds a forwarder by FIP, carries the logins of its one
//! port by FIP and its other frames by FCoE, and keeps the virtual link alive. [`crate::fc::forwarder`] is the other
//! side.
//!
//! A caller hands in Ethernet frames ([`ENode::handle_ethernet`]) and the port's frames ([`ENode::handle_frame`]),
//! takes out Ethernet frames ([`ENode::poll_transmit`]), frames for the port ([`ENode::poll_frame`]) and changes of the
//! link ([`ENode::poll_event`]), and comes back at [`ENode::poll_timeout`].
//!
//! **Invariant: the port gets frames that its forwarder sent to the address that it gave, and no others.**

mod engine;
mod settings;
#[cfg(test)]
mod tests;

pub use engine::{Counters, ENode, Event};
pub use settings::Settings;
