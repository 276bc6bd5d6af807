//! Places of connections that have not logged in yet: few, so that those who send nothing keep nobody out.
//!
//! They come on top of the places of connections that have logged in, which the core counts. Where all are taken, a
//! newcomer gets the place of the one that has had the longest time for its login, once that was long enough; so
//! whoever does log in finds a place.

use std::net::IpAddr;
use storage::iscsi::{ConnectionId, LoginProgress};
use units::{Span, Time};

/// Connections that have not logged in, from anywhere.
pub(crate) const PENDING: usize = 64;
/// Of them from one address; a session of 8 connections has 7 logins at once.
const PER_ADDRESS: usize = 32;
/// How long one keeps its place against newcomers without having sent a PDU.
const SILENT: Span = Span::from_secs(1);
/// The same for one that has begun: a login with CHAP takes four round trips, of a second at the most.
const BEGUN: Span = Span::from_secs(5);

#[derive(Debug)]
struct Login {
    id: ConnectionId,
    address: IpAddr,
    since: Time,
}

/// Connections that have not logged in yet, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Places(Vec<Login>);

/// What becomes of a newcomer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    /// It has a place.
    Taken,
    /// It has the place of this one, which is to be closed.
    Instead(ConnectionId),
    /// It is to be closed, and why.
    Refused(String),
}

/// What stands for a host: an IPv6 host has 2^64 addresses of its own (RFC 4291, 2.5.4).
fn host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => std::net::Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
    }
}

impl Places {
    /// A connection came from `address`; if it has a place it is number `id` from now on. `progress` says how far a
    /// login is, None where it is done or the connection gone.
    pub fn enter(
        &mut self,
        now: Time,
        id: ConnectionId,
        address: IpAddr,
        progress: impl Fn(ConnectionId) -> Option<LoginProgress>,
    ) -> Entry {
        self.0.retain(|login| progress(login.id).is_some());
        let address = host(address);
        let from_there = self.0.iter().filter(|login| login.address == address).count();
        let entry = if from_there >= PER_ADDRESS {
            let who = format!("{PER_ADDRESS} connections from its address have not logged in yet");
            self.displace(now, Some(address), progress).map_or(Entry::Refused(who), Entry::Instead)
        } else if self.0.len() >= PENDING {
            let who = format!("{PENDING} connections have not logged in yet");
            self.displace(now, None, progress).map_or(Entry::Refused(who), Entry::Instead)
        } else {
            Entry::Taken
        };
        if !matches!(entry, Entry::Refused(_)) {
            self.0.push(Login { id, address, since: now });
        }
        entry
    }

    /// Takes its place from the oldest that had time enough, the silent ones first; of one address where there is one.
    fn displace(
        &mut self,
        now: Time,
        address: Option<IpAddr>,
        progress: impl Fn(ConnectionId) -> Option<LoginProgress>,
    ) -> Option<ConnectionId> {
        let is_late = |login: &Login, state, time| {
            let is_there = address.is_none_or(|address| login.address == address);
            is_there && progress(login.id) == Some(state) && now.since(login.since) >= time
        };
        let silent = self.0.iter().position(|login| is_late(login, LoginProgress::Silent, SILENT));
        let late = silent.or_else(|| self.0.iter().position(|login| is_late(login, LoginProgress::Begun, BEGUN)))?;
        Some(self.0.remove(late).id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn other(number: u8) -> IpAddr {
        std::net::Ipv4Addr::new(10, 0, 1, number).into()
    }

    fn silent(_: ConnectionId) -> Option<LoginProgress> {
        Some(LoginProgress::Silent)
    }

    #[test]
    fn one_address_takes_no_more_than_its_places_and_who_sends_nothing_loses_his() {
        let mut places = Places::default();
        let mut now = Time(0);
        for id in 0..PER_ADDRESS as u64 {
            assert_eq!(places.enter(now, id, A, silent), Entry::Taken);
        }
        assert!(matches!(places.enter(now, 900, A, silent), Entry::Refused(why) if why.contains("its address")));
        // Others have theirs meanwhile.
        assert_eq!(places.enter(now, 901, other(1), silent), Entry::Taken);
        now += SILENT;
        assert_eq!(places.enter(now, 902, A, silent), Entry::Instead(0));
        assert_eq!(places.enter(now, 903, A, silent), Entry::Instead(1));
    }

    #[test]
    fn all_addresses_together_take_no_more_than_the_places_that_there_are() {
        let mut places = Places::default();
        let mut now = Time(0);
        for id in 0..PENDING as u64 {
            assert_eq!(places.enter(now, id, other(id as u8), silent), Entry::Taken);
        }
        assert!(matches!(places.enter(now, 900, A, silent), Entry::Refused(_)));
        now += SILENT;
        // One that has begun is left alone while others are silent, and gets more time than they.
        let progress = |id| Some(if id < 2 { LoginProgress::Begun } else { LoginProgress::Silent });
        assert_eq!(places.enter(now, 901, A, progress), Entry::Instead(2));
        let all_begun = |_| Some(LoginProgress::Begun);
        assert!(matches!(places.enter(now, 902, A, all_begun), Entry::Refused(_)));
        now += BEGUN;
        assert_eq!(places.enter(now, 903, A, all_begun), Entry::Instead(0));
        // Who has logged in has left these places.
        let logged_in = |id| (id != 1).then_some(LoginProgress::Begun);
        assert_eq!(places.enter(now, 904, A, logged_in), Entry::Taken);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_host() {
        let address = |text: &str| host(text.parse().unwrap());
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:2"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:10.0.0.1"), A);
    }
}
