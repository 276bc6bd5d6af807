//! Gateways with nodes on UNIX datagram sockets.

mod node;
mod one_site;
mod stopping;
mod two_sites;
