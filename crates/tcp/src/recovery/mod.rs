//! Loss detection of three generations, window reduction, undo. Each file adds its methods to the endpoint.

mod copies;
pub(crate) mod copies_state;
mod newreno;
mod prr;
mod rack;
pub(crate) mod rack_state;
mod sack;
mod undo;

pub use prr::{prr_window, PrrStep};
