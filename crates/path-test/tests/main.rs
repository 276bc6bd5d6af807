//! STAMP's packets, reflector and sender, and estimators, over paths whose truth is known.

mod estimators;
mod exact_line;
mod hops;
mod line;
mod mtu;
mod packets;
mod reflectors;
mod sessions;
