//! The destination of a copy: parts that become files when they are whole, checked and synced; nothing outside of it.

mod close;
mod compare;
mod durable;
mod make;
mod metadata;
mod part;
mod part_names;
mod parts;
mod place;
mod state;
mod target;

pub use close::Closed;
pub use compare::Existing;
pub use part::{Base, Part};
pub use state::{copy_state, user_state_folder};
pub use target::Destination;
