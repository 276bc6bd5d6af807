//! Loss detection of three generations, window reduction, undo. Each file adds its methods to the endpoint.

mod newreno;
mod prr;
pub(crate) mod rack;
mod sack;
mod undo;
