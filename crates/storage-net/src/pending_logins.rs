//! Limits connections that have not logged in yet, so that idle connections keep no initiator out.
//!
//! The core limits connections that have logged in; this limit comes on top. At the limit, a new connection displaces
//! the one whose login has taken longest, once its grace period is over.

use std::net::IpAddr;
use storage::iscsi::{ConnectionId, LoginProgress};
use units::{Span, Time};

/// Connections that have not logged in, from all addresses.
const MAX_PENDING: usize = 64;
/// Of them from one address; a session of 8 connections has 7 logins at once.
const MAX_PER_ADDRESS: usize = 32;
/// Grace period of a connection that has sent no PDU.
const SILENT_GRACE: Span = Span::from_secs(1);
/// Grace period of a login in progress: a login with CHAP takes four round trips, of a second at most.
const BEGUN_GRACE: Span = Span::from_secs(5);

/// Most open connections, closing ones included.
pub(crate) fn max_open_connections(logged_in: usize) -> usize {
    logged_in + 2 * MAX_PENDING
}

#[derive(Debug)]
struct Login {
    id: ConnectionId,
    address: IpAddr,
    since: Time,
}

/// Connections that have not logged in yet, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct PendingLogins(Vec<Login>);

/// The outcome for a new connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// Admitted.
    Admitted,
    /// Admitted in place of this one, which has to be closed.
    Displacing(ConnectionId),
    /// To be closed, with the reason.
    Refused(String),
}

/// The address that identifies a host: an IPv6 host has 2^64 addresses of its own (RFC 4291, 2.5.4).
fn host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => std::net::Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
    }
}

impl PendingLogins {
    /// Admits or refuses a connection `id` from `address`. `progress` returns the progress of a login, None once it is
    /// done or its connection closed.
    pub fn admit(
        &mut self,
        now: Time,
        id: ConnectionId,
        address: IpAddr,
        progress: impl Fn(ConnectionId) -> Option<LoginProgress>,
    ) -> Admission {
        self.0.retain(|login| progress(login.id).is_some());
        let address = host(address);
        let from_there = self.0.iter().filter(|login| login.address == address).count();
        let admission = if from_there >= MAX_PER_ADDRESS {
            let reason = format!("{MAX_PER_ADDRESS} connections from its address have not logged in yet");
            self.displace(now, Some(address), progress).map_or(Admission::Refused(reason), Admission::Displacing)
        } else if self.0.len() >= MAX_PENDING {
            let reason = format!("{MAX_PENDING} connections have not logged in yet");
            self.displace(now, None, progress).map_or(Admission::Refused(reason), Admission::Displacing)
        } else {
            Admission::Admitted
        };
        if !matches!(admission, Admission::Refused(_)) {
            self.0.push(Login { id, address, since: now });
        }
        admission
    }

    /// Removes the oldest login past its grace period, silent ones first; only those of `address` where it is given.
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
        let silent = self.0.iter().position(|login| is_late(login, LoginProgress::Silent, SILENT_GRACE));
        let late =
            silent.or_else(|| self.0.iter().position(|login| is_late(login, LoginProgress::Begun, BEGUN_GRACE)))?;
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
    fn one_address_is_limited_and_silent_connections_are_displaced() {
        let mut logins = PendingLogins::default();
        let mut now = Time(0);
        for id in 0..MAX_PER_ADDRESS as u64 {
            assert_eq!(logins.admit(now, id, A, silent), Admission::Admitted);
        }
        assert!(matches!(logins.admit(now, 900, A, silent), Admission::Refused(why) if why.contains("its address")));
        // Other addresses are admitted meanwhile.
        assert_eq!(logins.admit(now, 901, other(1), silent), Admission::Admitted);
        now += SILENT_GRACE;
        assert_eq!(logins.admit(now, 902, A, silent), Admission::Displacing(0));
        assert_eq!(logins.admit(now, 903, A, silent), Admission::Displacing(1));
    }

    #[test]
    fn all_addresses_together_are_limited() {
        let mut logins = PendingLogins::default();
        let mut now = Time(0);
        for id in 0..MAX_PENDING as u64 {
            assert_eq!(logins.admit(now, id, other(id as u8), silent), Admission::Admitted);
        }
        assert!(matches!(logins.admit(now, 900, A, silent), Admission::Refused(_)));
        now += SILENT_GRACE;
        // A login in progress stays while others are silent, and has a longer grace period.
        let progress = |id| Some(if id < 2 { LoginProgress::Begun } else { LoginProgress::Silent });
        assert_eq!(logins.admit(now, 901, A, progress), Admission::Displacing(2));
        let all_begun = |_| Some(LoginProgress::Begun);
        assert!(matches!(logins.admit(now, 902, A, all_begun), Admission::Refused(_)));
        now += BEGUN_GRACE;
        assert_eq!(logins.admit(now, 903, A, all_begun), Admission::Displacing(0));
        // A connection that has logged in no longer counts.
        let logged_in = |id| (id != 1).then_some(LoginProgress::Begun);
        assert_eq!(logins.admit(now, 904, A, logged_in), Admission::Admitted);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_host() {
        let address = |text: &str| host(text.parse().unwrap());
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:2"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:10.0.0.1"), A);
    }
}
