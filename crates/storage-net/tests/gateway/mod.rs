//! Gateways with nodes on UNIX datagram sockets.

mod isns;
mod node;
mod one_site;
mod stopping;
mod two_sites;
