//! An N_Port without I/O: its logins with the fabric and with other ports, its registrations, its answers to link
//! services (FC-LS, FC-GS-2), in the order in which Linux's libfc goes.
//!
//! A caller starts the port ([`NPort::log_in`]), hands in each frame with the time ([`NPort::handle_frame`]), takes out
//! frames ([`NPort::poll_frame`]) and changes ([`NPort::poll_event`]), and comes back at [`NPort::poll_timeout`].
//! Commands and data belong to FC-4 ([`NPort::poll_upward`]), which sends by [`NPort::send`]: [`crate::fc::fcp::Port`]
//! has both.
//!
//! **Invariant: FC-4 gets frames of logged-in ports alone, and what is kept for others is bounded.**

mod answer;
mod engine;
mod fabric_login;
mod output;
mod peer;
mod peer_login;
mod requests;
mod settings;
#[cfg(test)]
mod tests;

pub use engine::NPort;
pub use output::{Counters, Event, PeerInfo, StatusAnswer, Upward};
pub use requests::LINK_SERVICE_EXCHANGES;
pub use settings::{Role, Settings};
