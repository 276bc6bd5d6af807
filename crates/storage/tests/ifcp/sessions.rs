//! The life of sessions: CBIND, UNBIND, LTEST, their collisions and ends.

use super::net::{els_request, login, name, settings, two_sites, Net, S};
use bytes::Bytes;
use storage::fc::fabric::{Location, PortKey};
use storage::fc::ifcp::{Clock, Pair, Settings};
use wire::fc::els::{self, Command, Logout, Reject, Request};
use wire::ifcp::AddressMode;

#[test]
fn a_login_opens_a_session_and_crosses_with_its_accept() {
    for mode in [AddressMode::Translation, AddressMode::Transparent] {
        let (mut net, [a, b]) = two_sites(settings(mode), settings(mode));
        assert_eq!(a.2 == b.2, mode == AddressMode::Translation, "both fabrics gave the same address");
        net.log_in(a, b);
        assert_eq!(net.open(0), [Pair { local: name(1), remote: name(2) }]);
        assert_eq!(net.open(1), [Pair { local: name(2), remote: name(1) }]);
        net.wait(60 * S);
        assert_eq!(net.open(0).len(), 1, "tests of liveness keep it");
        assert_eq!(net.sites[0].got.iter().filter(|(port, _)| *port == PortKey(1)).count(), 0);
    }
}

#[test]
fn logins_from_both_sides_at_once_share_one_session() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    let plogi = |host| Request::Login(login(Command::PLOGI, host)).to_bytes();
    let (to_b, to_a) = (net.alias(0, 2), net.alias(1, 1));
    net.send(0, PortKey(1), a.2, to_b, plogi(1));
    net.send(1, PortKey(2), b.2, to_a, plogi(2));
    net.run();
    assert_eq!((net.open(0).len(), net.open(1).len()), (1, 1));
    assert_eq!(net.take(1, PortKey(2)).payload.to_bytes(), plogi(1));
    assert_eq!(net.take(0, PortKey(1)).payload.to_bytes(), plogi(2));
    // The port of the lesser name yields (RFC 4172, 5.2.2.3).
    let yielded = "refused: CBIND was refused: this gateway binds the pair at the same time, and its port has the \
                   greater name";
    assert!(net.lines_of(1).iter().any(|line| line.ends_with(yielded)));
    assert!(!net.lines_of(0).iter().any(|line| line.ends_with(yielded)));
}

#[test]
fn a_login_that_is_rejected_for_another_under_way_leaves_the_session_to_it() {
    for greater_first in [false, true] {
        let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
        let plogi = |host| Request::Login(login(Command::PLOGI, host)).to_bytes();
        let (to_b, to_a) = (net.alias(0, 2), net.alias(1, 1));
        net.send(0, PortKey(1), a.2, to_b, plogi(1));
        net.send(1, PortKey(2), b.2, to_a, plogi(2));
        net.run();
        let of_a = net.take(1, PortKey(2));
        let of_b = net.take(0, PortKey(1));
        // libfc's port of the greater name rejects the login of the lesser, which accepts.
        let reject = Reject { reason: Reject::UNABLE, explanation: Reject::NO_EXPLANATION }.to_bytes();
        let accept = Bytes::copy_from_slice(&els::accept_login(&login(Command::PLOGI, 1)));
        for turn in [greater_first, !greater_first] {
            if turn {
                net.answer(1, PortKey(2), &of_a, reject.clone());
            } else {
                net.answer(0, PortKey(1), &of_b, accept.clone());
            }
            net.run();
            assert_eq!((net.open(0).len(), net.open(1).len()), (1, 1), "the greater first: {greater_first}");
        }
        assert_eq!(net.take(0, PortKey(1)).payload.to_bytes(), reject);
        assert_eq!(net.take(1, PortKey(2)).payload.to_bytes(), accept);
    }
}

#[test]
fn two_logins_that_are_both_rejected_leave_no_session() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    let plogi = |host| Request::Login(login(Command::PLOGI, host)).to_bytes();
    let (to_b, to_a) = (net.alias(0, 2), net.alias(1, 1));
    net.send(0, PortKey(1), a.2, to_b, plogi(1));
    net.send(1, PortKey(2), b.2, to_a, plogi(2));
    net.run();
    let reject = Reject { reason: Reject::UNABLE, explanation: Reject::NO_EXPLANATION }.to_bytes();
    let of_a = net.take(1, PortKey(2));
    net.answer(1, PortKey(2), &of_a, reject.clone());
    net.run();
    let of_b = net.take(0, PortKey(1));
    net.answer(0, PortKey(1), &of_b, reject);
    net.run();
    assert_eq!((net.open(0).len(), net.open(1).len()), (0, 0));
}

#[test]
fn a_logout_unbinds_the_connection_and_the_next_login_uses_it_again() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    net.log_in(a, b);
    let lines = net.lines();
    net.log_out(a, b);
    assert_eq!((net.open(0).len(), net.open(1).len()), (0, 0));
    assert_eq!(net.lines(), lines);
    net.log_in(a, b);
    assert_eq!(net.lines(), lines, "no connection was made");
    assert!(net.sites.iter().all(|site| site.got.is_empty()), "nobody was told of a logout twice");
}

/// The reject that host 1 gets for a login at host 2.
fn rejected(first: Settings, second: Settings, prepare: impl Fn(&mut Net)) -> (Reject, Vec<String>) {
    let (mut net, [a, _]) = two_sites(first, second);
    let alias = net.alias(0, 2);
    prepare(&mut net);
    let plogi = Request::Login(login(Command::PLOGI, 1)).to_bytes();
    net.send(0, PortKey(1), a.2, alias, plogi);
    net.run();
    assert!(net.open(0).is_empty());
    assert_eq!(net.sites[0].gateway.sessions().count(), 0);
    let reply = net.take(0, PortKey(1));
    assert_eq!((reply.header.s_id, reply.header.d_id, reply.header.ox_id), (alias, a.2, 0x17));
    (Reject::parse(&reply.payload.to_bytes()).unwrap(), net.lines_of(0))
}

#[test]
fn a_refused_cbind_rejects_the_login_as_table_8_says() {
    let usual = || settings(AddressMode::Translation);
    let unable = |explanation| Reject { reason: Reject::UNABLE, explanation };
    let (reject, events) = rejected(usual(), settings(AddressMode::Transparent), |_| {});
    assert_eq!(reject, unable(Reject::NO_EXPLANATION));
    assert!(events.iter().any(|line| line.ends_with("ended: the peer treats addresses in the other mode")));

    let (reject, events) = rejected(usual(), Settings { clock: Clock::Unsynchronized, ..usual() }, |_| {});
    assert_eq!(reject, unable(Reject::NO_EXPLANATION));
    assert!(events.iter().any(|line| line.ends_with("ended: the peer's clock is not synchronised")));

    let (reject, events) = rejected(usual(), Settings { sessions_max: 0, ..usual() }, |_| {});
    assert_eq!(reject, unable(Reject::INSUFFICIENT_RESOURCES));
    assert!(events.iter().any(|line| line.ends_with("ended: the peer has no room for a session")));

    let (reject, events) = rejected(usual(), usual(), |net| net.detach(1, 2));
    assert_eq!(reject, unable(Reject::INVALID_PORT_NAME));
    assert!(events.iter().any(|line| line.ends_with("ended: the peer has no such port")));

    let (reject, _) = rejected(Settings { clock: Clock::Unsynchronized, ..usual() }, usual(), |_| {});
    assert_eq!(reject, unable(Reject::NO_EXPLANATION));
    let (reject, _) = rejected(Settings { sessions_max: 0, ..usual() }, usual(), |_| {});
    assert_eq!(reject, unable(Reject::INSUFFICIENT_RESOURCES));
}

#[test]
fn a_port_that_its_peer_lacks_is_withdrawn_until_it_is_there() {
    for mode in [AddressMode::Translation, AddressMode::Transparent] {
        let (mut net, [a, b]) = two_sites(settings(mode), settings(mode));
        let plogi = |host| Request::Login(login(Command::PLOGI, host)).to_bytes();
        let is_presented = |net: &Net| net.sites[0].fabric.entries().any(|(_, entry)| entry.port == name(2));
        net.detach(1, 2);
        // The times of its absence double.
        for seconds in [1, 2] {
            let alias = net.alias(0, 2);
            net.sites[0].state_changes.clear();
            net.send(0, PortKey(1), a.2, alias, plogi(1));
            net.run();
            net.wait(seconds * S - S / 10);
            assert!(!is_presented(&net));
            net.wait(S / 5);
            assert!(is_presented(&net));
            assert_eq!(net.alias(0, 2), alias, "it keeps its address");
            assert_eq!(net.sites[0].state_changes.len(), 2, "hosts hear that it goes and comes");
        }
        let alias = net.alias(0, 2);
        net.send(0, PortKey(1), a.2, alias, plogi(1));
        net.run();
        assert!(!is_presented(&net));
        // Its own login shows that it is there.
        assert_eq!(net.attach(1, 2), b.2);
        let other = net.alias(1, 1);
        net.sites.iter_mut().for_each(|site| site.got.clear());
        net.send(1, PortKey(2), b.2, other, plogi(2));
        net.run();
        assert!(is_presented(&net));
        assert_eq!((net.open(0).len(), net.open(1).len()), (1, 1));
        assert_eq!(net.take(0, PortKey(1)).payload.to_bytes(), plogi(2));
    }
}

#[test]
fn a_port_that_moved_here_and_back_is_presented_again() {
    let (mut net, [a, _]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    net.detach(1, 2);
    let alias = net.alias(0, 2);
    net.send(0, PortKey(1), a.2, alias, Request::Login(login(Command::PLOGI, 1)).to_bytes());
    net.run();
    let is_remote = |net: &Net| {
        let mut entries = net.sites[0].fabric.entries();
        entries.any(|(_, entry)| entry.port == name(2) && entry.location == Location::Remote)
    };
    // While it is away its name may log in here.
    net.attach(0, 2);
    net.wait(2 * S);
    assert!(!is_remote(&net));
    net.detach(0, 2);
    net.wait(33 * S);
    assert!(is_remote(&net));
}

#[test]
fn a_port_with_a_session_stays_when_its_peer_does_not_know_another_local_port() {
    let mut net = Net::new(vec![settings(AddressMode::Translation), settings(AddressMode::Translation)]);
    let hosts = [(0, 1, net.attach(0, 1)), (0, 3, net.attach(0, 3)), (1, 2, net.attach(1, 2))];
    net.join(&[hosts[0], hosts[2]]);
    net.log_in(hosts[0], hosts[2]);
    let alias = net.alias(0, 2);
    net.send(0, PortKey(3), hosts[1].2, alias, Request::Login(login(Command::PLOGI, 3)).to_bytes());
    net.run();
    assert_eq!(net.take(0, PortKey(3)).payload.to_bytes()[0], Command::LS_RJT.0);
    assert_eq!((net.alias(0, 2), net.open(0).len()), (alias, 1));
}

#[test]
fn a_login_that_the_port_rejects_leaves_no_session() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    let alias = net.alias(0, 2);
    net.send(0, PortKey(1), a.2, alias, Request::Login(login(Command::PLOGI, 1)).to_bytes());
    net.run();
    let request = net.take(1, PortKey(b.1 as u32));
    let reject = Reject { reason: Reject::UNABLE, explanation: Reject::INSUFFICIENT_RESOURCES }.to_bytes();
    net.answer(1, PortKey(2), &request, reject.clone());
    net.run();
    assert_eq!(net.take(0, PortKey(1)).payload.to_bytes(), reject);
    assert_eq!((net.open(0).len(), net.open(1).len()), (0, 0));
}

#[test]
fn a_clock_that_loses_its_server_ends_all_sessions() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    net.log_in(a, b);
    let now_ns = net.now_ns;
    net.sites[0].gateway.set_clock(Clock::Unsynchronized, now_ns);
    net.run();
    assert_eq!((net.open(0).len(), net.open(1).len()), (0, 0));
    for (site, port, remote) in [(0, PortKey(1), 2), (1, PortKey(2), 1)] {
        let alias = net.alias(site, remote);
        let logout = net.take(site, port);
        let expected = Request::Logout(Logout { id: alias, port: name(remote) });
        assert_eq!((logout.header.s_id, logout.payload.to_bytes()), (alias, expected.to_bytes()));
    }
}

#[test]
fn ten_thousand_logins_and_logouts_leave_nothing() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    for _ in 0..10_000 {
        net.log_in(a, b);
        net.log_out(a, b);
        net.now_ns += S;
        net.run();
    }
    for site in &net.sites {
        assert_eq!(site.gateway.sessions().count(), 0);
        assert!(site.gateway.connections() <= 4, "{} connections", site.gateway.connections());
        assert_eq!(site.gateway.poll_timeout(), None, "no deadline is left");
        assert!(site.got.is_empty());
        let counters = site.gateway.counters();
        assert_eq!((counters.sessions_opened, counters.sessions_ended), (10_000, 10_000));
    }
}

#[test]
fn a_frame_without_a_session_goes_nowhere() {
    let (mut net, [a, _]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    let alias = net.alias(0, 2);
    net.send_frame(0, PortKey(1), els_request(a.2, alias, 1, Bytes::from_static(&[0x20, 0, 0, 0])));
    net.run();
    assert_eq!(net.sites[0].gateway.counters().no_session, 1);
    assert!(net.sites[1].got.is_empty());
}

#[test]
fn a_login_in_another_ports_name_is_rejected() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    let alias = net.alias(0, 2);
    let plogi = Request::Login(login(Command::PLOGI, 7)).to_bytes();
    net.send(0, PortKey(1), a.2, alias, plogi);
    net.run();
    let reject = Reject { reason: Reject::UNABLE, explanation: Reject::INVALID_PORT_NAME };
    assert_eq!(net.take(0, PortKey(1)).payload.to_bytes(), reject.to_bytes());
    let wrong = format!("refused: the message has the port name {}, its session {}", name(7), name(1));
    assert!(net.lines_of(0).iter().any(|line| line.ends_with(&wrong)));

    // An accept in another's name ends at its own gateway.
    let plogi = Request::Login(login(Command::PLOGI, 1)).to_bytes();
    net.send(0, PortKey(1), a.2, alias, plogi);
    net.run();
    let request = net.take(1, PortKey(b.1 as u32));
    let accept = Bytes::copy_from_slice(&els::accept_login(&login(Command::PLOGI, 9)));
    net.answer(1, PortKey(2), &request, accept);
    net.run();
    assert!(net.sites[0].got.is_empty());
    let wrong = format!("refused: the message has the port name {}, its session {}", name(9), name(2));
    assert!(net.lines_of(1).iter().any(|line| line.ends_with(&wrong)));
}
