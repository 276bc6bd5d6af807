//! The destination of a copy: parts that become files when they are whole, checked and synced; nothing outside of it.

mod close;
mod compare;
mod deferred;
mod disk_bytes;
mod durable;
mod keep;
mod make;
mod metadata;
mod part;
mod parts;
mod paths;
mod place;
mod removal;
mod stale_parts;
mod state;
mod target;

pub use close::Closed;
pub use compare::Existing;
pub(crate) use keep::Kept;
pub use part::{Base, Part};
pub(crate) use paths::path_hash;
pub(crate) use removal::{Removal, Scope};
pub use state::{copy_state, user_state_folder};
pub use target::Destination;
