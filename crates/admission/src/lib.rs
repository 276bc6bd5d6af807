//! Bounded accept: the connections of a listener whose peers have not authenticated yet.
//!
//! Scope: how many there may be, for how long, and which is closed when another arrives. Out of scope: sockets, clocks,
//! authentication.
//!
//! **Invariant: a new connection is always admitted.** At a limit it displaces another, drawn at random, of the address
//! that has most. So an address with few connections loses none to an address with many, and a peer behind the same
//! address as a flood keeps each connection with probability (1 - 1/limit)^n, for n arrivals during its handshake.
//! Displacing the oldest instead would let a flood of `limit` arrivals close every handshake that takes longer.

#![forbid(unsafe_code)]

use core::net::{IpAddr, Ipv6Addr};
use std::collections::BTreeMap;
use units::{Span, Time};

/// Limits of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections that have not authenticated, from all addresses.
    pub total: usize,
    /// Of them from one address.
    pub per_address: usize,
    /// Time for authentication.
    pub time: Span,
}

#[derive(Clone, Debug)]
struct Entry<K> {
    key: K,
    network: IpAddr,
    deadline: Time,
}

/// Connections that have not authenticated yet, in order of arrival.
#[derive(Clone, Debug)]
pub struct Pending<K> {
    limits: Limits,
    entries: Vec<Entry<K>>,
    random: u64,
}

impl<K: Copy + PartialEq> Pending<K> {
    /// None yet; `seed` should be unknown to peers.
    pub fn new(limits: Limits, seed: u64) -> Pending<K> {
        Pending { limits, entries: Vec::new(), random: seed }
    }

    /// Connections that have not authenticated.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Admits a connection. Returns the connection that it displaces, which the caller closes. `progress` is the state
    /// of a handshake: those with the least are displaced first.
    pub fn admit<P: Ord>(&mut self, now: Time, key: K, address: IpAddr, progress: impl Fn(&K) -> P) -> Option<K> {
        let network = network(address);
        let from_there = self.entries.iter().filter(|entry| entry.network == network).count();
        let crowded = if from_there >= self.limits.per_address {
            Some(network)
        } else if self.entries.len() >= self.limits.total {
            self.largest()
        } else {
            None
        };
        let displaced = crowded.and_then(|crowded| self.draw(crowded, progress));
        self.entries.push(Entry { key, network, deadline: now + self.limits.time });
        displaced
    }

    /// Removes a connection that has authenticated or closed. False: it was displaced or is late, and does not count as
    /// authenticated.
    pub fn remove(&mut self, key: &K) -> bool {
        let place = self.entries.iter().position(|entry| entry.key == *key);
        place.map(|place| self.entries.remove(place)).is_some()
    }

    /// Keeps the connections of which `stays` holds.
    pub fn retain(&mut self, mut stays: impl FnMut(&K) -> bool) {
        self.entries.retain(|entry| stays(&entry.key));
    }

    /// Gives a connection at most `time` more.
    pub fn shorten(&mut self, now: Time, key: &K, time: Span) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == *key) {
            entry.deadline = entry.deadline.min(now + time);
        }
    }

    /// Removes the connections whose time is over; the caller closes them.
    pub fn expire(&mut self, now: Time) -> Vec<K> {
        let mut late = Vec::new();
        self.entries.retain(|entry| {
            let is_late = entry.deadline <= now;
            if is_late {
                late.push(entry.key);
            }
            !is_late
        });
        late
    }

    /// The earliest deadline.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.entries.iter().map(|entry| entry.deadline).min()
    }

    /// The address with most connections; of several one at random.
    fn largest(&mut self) -> Option<IpAddr> {
        let mut counts = BTreeMap::new();
        for entry in &self.entries {
            *counts.entry(entry.network).or_insert(0_usize) += 1;
        }
        let most = counts.values().max().copied()?;
        let crowded: Vec<IpAddr> =
            counts.into_iter().filter(|(_, count)| *count == most).map(|(network, _)| network).collect();
        let drawn = self.below(crowded.len());
        crowded.get(drawn).copied()
    }

    fn draw<P: Ord>(&mut self, crowded: IpAddr, progress: impl Fn(&K) -> P) -> Option<K> {
        let there = |entry: &&Entry<K>| entry.network == crowded;
        let least = self.entries.iter().filter(there).map(|entry| progress(&entry.key)).min()?;
        let places: Vec<usize> = self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.network == crowded && progress(&entry.key) == least)
            .map(|(place, _)| place)
            .collect();
        let drawn = self.below(places.len());
        places.get(drawn).map(|&place| self.entries.remove(place).key)
    }

    /// A number below `bound`. SplitMix64 (Steele, Lea and Flood 2014).
    fn below(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * bound as u128) >> 64) as usize
    }
}

/// The address that identifies a host: an IPv6 host has 2^64 addresses of its own (RFC 4291, 2.5.4).
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { total: 64, per_address: 32, time: Span::from_secs(10) };
    const A: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1));

    fn other(number: u8) -> IpAddr {
        core::net::Ipv4Addr::new(10, 0, 1, number).into()
    }

    fn equal(_: &u64) -> u8 {
        0
    }

    #[test]
    fn a_flood_from_one_address_displaces_no_other_address() {
        let mut pending = Pending::new(LIMITS, 1);
        assert_eq!(pending.admit(Time(0), 0, A, equal), None);
        for key in 1..10_000 {
            let displaced = pending.admit(Time(0), key, other((key % 3) as u8), equal);
            assert!(displaced.is_none_or(|key| key != 0));
            assert!(pending.len() <= LIMITS.total);
        }
        assert!(pending.remove(&0));
    }

    #[test]
    fn a_peer_at_the_address_of_a_flood_keeps_a_fair_share() {
        let limits = Limits { total: 512, per_address: 512, ..LIMITS };
        let mut pending = Pending::new(limits, 7);
        let (mut key, mut passed) = (0, 0);
        for _ in 0..1000 {
            key += 1;
            let own = key;
            pending.admit(Time(0), own, A, equal);
            for _ in 0..100 {
                key += 1;
                pending.admit(Time(0), key, A, equal);
            }
            passed += u32::from(pending.remove(&own));
        }
        // (1 - 1/512)^100 = 82 %.
        assert!((780..860).contains(&passed), "{passed}");
    }

    #[test]
    fn the_least_progress_is_displaced_first() {
        let mut pending = Pending::new(LIMITS, 3);
        let begun = |key: &u64| u8::from(*key == 5);
        for key in 0..32 {
            assert_eq!(pending.admit(Time(0), key, A, begun), None);
        }
        for key in 32..1000 {
            assert!(pending.admit(Time(0), key, A, begun).is_some_and(|key| key != 5));
        }
        assert!(pending.remove(&5) && !pending.remove(&5));
    }

    #[test]
    fn late_connections_are_removed() {
        let mut pending = Pending::new(LIMITS, 3);
        pending.admit(Time(0), 1, A, equal);
        pending.admit(Time(1), 2, A, equal);
        assert_eq!(pending.poll_timeout(), Some(Time(0) + LIMITS.time));
        assert_eq!(pending.expire(Time(0) + LIMITS.time), [1]);
        pending.shorten(Time(5), &2, Span(5));
        assert_eq!(pending.expire(Time(10)), [2]);
        assert!(pending.is_empty());
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_host() {
        let address = |text: &str| network(text.parse().unwrap());
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:2"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:10.0.0.1"), A);
    }
}
