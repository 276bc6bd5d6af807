//! Two ends over a path in a loop of their own: what the protocol promises whatever is lost.

mod path;
mod promises;
mod transfers;
