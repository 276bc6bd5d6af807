//! The services of a fabric of one switch: login, name server, fabric controller, routing between attached ports and
//! those that a gateway presents (FC-LS, FC-GS-2, FC-SW-2's F_Port side).
//!
//! A caller hands in each frame with the port it came through ([`Fabric::handle_frame`]) and takes out what the fabric
//! sends ([`Fabric::poll_output`]) and what became of logins ([`Fabric::poll_event`]). There is no clock: the fabric
//! answers at once, and nothing in it expires. The edge notices a link that is gone ([`Fabric::detach`]).
//!
//! Class 3 only: frames of class 2 are rejected, those of class F are counted and dropped, so that no switch joins.

mod addresses;
mod directory;
mod engine;
mod exchanges;
mod login;
mod output;
mod settings;

pub use addresses::Assignments;
pub use directory::{Entry, Location};
pub use engine::Fabric;
pub use output::{Counters, Event, Output, PortKey};
pub use settings::{Settings, WrongDomain};
