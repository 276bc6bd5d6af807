//! STAMP's packets, reflector and sender, over a path in virtual time.

mod packets;
mod reflectors;
mod sessions;
