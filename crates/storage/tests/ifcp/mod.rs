//! Gateways joined over lines that reorder between connections and are cut, and peers that break the protocol.

mod chance;
mod crossing;
mod hostile;
mod losses;
mod net;
mod sessions;
mod stopping;
mod three_sites;
