//! Connections of peers that carry no session yet: any program at a peer's address can make them.
//!
//! A gateway keeps some idle connections for later sessions on purpose (`Settings::unbound_max`), so that a limit of
//! time holds only for the ones in excess.

use admission::{Limits, Pending};
use std::net::IpAddr;
use storage::fc::ifcp::ConnectionKey;
use units::{Span, Time};

/// TLS handshakes at once, and the time of each.
pub(super) const HANDSHAKES: Limits = Limits { total: 64, per_address: 32, time: Span::from_secs(3) };
/// Connections without a session; a further one displaces another. Their time counts for those in excess of `IDLE_MAX`.
const HALF_OPEN: Limits = Limits { total: 1024, per_address: 64, time: Span::from_secs(10) };
/// Idle connections that stay, per peer: twice what a gateway of this project keeps.
const IDLE_MAX: usize = 8;

/// See the module.
pub(super) struct HalfOpen {
    pending: Pending<ConnectionKey>,
    addresses: Vec<(ConnectionKey, IpAddr)>,
}

impl HalfOpen {
    pub fn new(seed: u64) -> HalfOpen {
        HalfOpen { pending: Pending::new(HALF_OPEN, seed), addresses: Vec::new() }
    }

    /// Takes an accepted connection; returns the one to be closed for it. `is_half_open`: no session uses it.
    pub fn admit(
        &mut self,
        now_ns: u64,
        key: ConnectionKey,
        address: IpAddr,
        is_half_open: impl Fn(ConnectionKey) -> bool,
    ) -> Option<ConnectionKey> {
        self.retain(is_half_open);
        self.addresses.push((key, address));
        let displaced = self.pending.admit(Time(now_ns), key, address, |_| ())?;
        self.addresses.retain(|(of, _)| *of != displaced);
        Some(displaced)
    }

    /// Returns the connections to be closed: late ones in excess of what a peer may keep.
    pub fn expire(&mut self, now_ns: u64, is_half_open: impl Fn(ConnectionKey) -> bool) -> Vec<ConnectionKey> {
        if self.pending.poll_timeout().is_none_or(|time| time.0 > now_ns) {
            return Vec::new();
        }
        self.retain(is_half_open);
        let mut closed = Vec::new();
        for late in self.pending.expire(Time(now_ns)) {
            let Some(&(_, address)) = self.addresses.iter().find(|(of, _)| *of == late) else { continue };
            if self.addresses.iter().filter(|(_, of)| *of == address).count() > IDLE_MAX {
                self.addresses.retain(|(of, _)| *of != late);
                closed.push(late);
            } else {
                self.pending.admit(Time(now_ns), late, address, |_| ());
            }
        }
        closed
    }

    /// Time at which [`HalfOpen::expire`] has something to do, ns.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.pending.poll_timeout().map(|time| time.0)
    }

    /// Forgets connections that carry a session, or are gone.
    fn retain(&mut self, is_half_open: impl Fn(ConnectionKey) -> bool) {
        self.pending.retain(|key| is_half_open(*key));
        self.addresses.retain(|(key, _)| is_half_open(*key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn half_open_connections_beyond_a_peers_own_pool_end() {
        let mut all = HalfOpen::new(1);
        let time = HALF_OPEN.time.0;
        for key in 0..64 {
            assert_eq!(all.admit(0, ConnectionKey(key), A, |_| true), None);
        }
        assert!(all.admit(0, ConnectionKey(64), A, |_| true).is_some());
        assert_eq!(all.expire(time - 1, |_| true), []);
        assert_eq!(all.expire(time, |_| true).len(), 64 - IDLE_MAX);
        assert_eq!(all.expire(2 * time, |_| true), []);
        // Those with a session do not count.
        assert_eq!(all.expire(4 * time, |_| false), []);
        assert_eq!(all.poll_timeout(), None);
    }
}
