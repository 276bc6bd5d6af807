//! Estimators over paths whose truth is known.

mod hops;
mod line;
mod mtu;
