//! The loss of sessions and peers, and slow connections.

use super::net::{data, remote_port, settings, two_sites, Net, EPOCH_NS, S};
use bytes::BytesMut;
use storage::fc::fabric::PortKey;
use storage::fc::ifcp::{Clock, ConnectionKey, Flow, Gateway, PeerKey, Settings};
use wire::fc::els::Command;
use wire::ifcp::AddressMode;

fn usual() -> Settings {
    settings(AddressMode::Translation)
}

#[test]
fn a_cut_connection_logs_its_ports_out_and_leaves_the_others() {
    let mut net = Net::new(vec![usual(), usual(), usual()]);
    let hosts = [(0, 1, net.attach(0, 1)), (1, 2, net.attach(1, 2)), (2, 3, net.attach(2, 3))];
    net.join(&hosts);
    net.log_in(hosts[0], hosts[1]);
    net.log_in(hosts[0], hosts[2]);
    net.cut_between(0, 1);
    net.run();
    let (gone, stays) = (net.alias(0, 2), net.alias(0, 3));
    let logout = net.take(0, PortKey(1));
    assert_eq!((logout.header.s_id, logout.payload.to_bytes()[0]), (gone, Command::LOGO.0));
    assert_eq!(net.take(1, PortKey(2)).payload.to_bytes()[0], Command::LOGO.0);
    assert_eq!((net.open(0).len(), net.open(1).len(), net.open(2).len()), (1, 0, 1));
    let frame = data(hosts[0].2, stays, 5, 0, b"goes on");
    net.send_frame(0, PortKey(1), frame.clone());
    net.run();
    assert_eq!(net.take(2, PortKey(3)).payload, frame.payload);
    net.log_in(hosts[0], hosts[1]);
}

#[test]
fn a_peer_that_falls_silent_is_withdrawn_in_time_and_returns() {
    let (mut net, [a, b]) = two_sites(usual(), usual());
    net.log_in(a, b);
    net.sites.iter_mut().for_each(|site| site.state_changes.clear());
    let (alias, began_ns) = (net.alias(0, 2), net.now_ns);
    net.down.insert((0, 1));
    net.silent = true;
    net.wait(10 * S);
    for site in 0..2 {
        assert!(net.open(site).is_empty());
        assert!(!net.sites[site].gateway.is_up(PeerKey(1 - site as u32)));
        assert!(net.sites[site].gateway.connections() <= 1, "no more than the attempt to reach it");
    }
    assert!(
        net.sites[0].state_changes.contains(&alias),
        "the host heard of it by RSCN within {} s",
        (net.now_ns - began_ns) / S
    );
    assert_eq!(net.take(0, PortKey(1)).payload.to_bytes()[0], Command::LOGO.0);
    assert_eq!(net.take(1, PortKey(2)).payload.to_bytes()[0], Command::LOGO.0);

    net.down.clear();
    net.silent = false;
    net.forget_lines();
    net.wait(10 * S);
    assert!(net.sites[0].gateway.is_up(PeerKey(1)));
    assert_eq!(net.alias(0, 2), alias, "the port has its address again");
    net.log_in(a, b);
}

#[test]
fn a_peer_that_does_not_know_this_gateway_is_tried_ever_more_rarely_and_not_presented() {
    let mut net = Net::new(vec![usual(), usual()]);
    let (a, b) = ((0, 1, net.attach(0, 1)), (1, 2, net.attach(1, 2)));
    let now_ns = net.now_ns;
    let first = &mut net.sites[0].gateway;
    first.add_peer(PeerKey(1), now_ns);
    first.set_ports(PeerKey(1), vec![remote_port(2, b.2)], now_ns).unwrap();
    net.run();
    let known = "peer 1: closes connections at once: is this gateway one of its peers?";
    assert_eq!(net.lines_of(0), ["peer 1: up", known, "peer 1: down, its ports are withdrawn"]);
    // After 1, 2, 4 and 8 s.
    for (seconds, refused) in [(1, 2), (2, 3), (4, 4), (7, 4), (1, 5)] {
        net.wait(seconds * S);
        assert_eq!((net.refused, net.sites[0].gateway.is_up(PeerKey(1))), (refused, false));
    }
    assert!(net.lines_of(0).is_empty());
    net.wait(1000 * S);
    assert_eq!(net.refused, 5 + 1000 / 32, "every 32 s at the most");

    let now_ns = net.now_ns;
    net.sites[1].gateway.add_peer(PeerKey(0), now_ns);
    net.sites[1].gateway.set_ports(PeerKey(0), vec![remote_port(1, a.2)], now_ns).unwrap();
    net.run();
    assert_eq!(net.lines_of(0), ["peer 1: up"], "at once when it connects itself");
    net.log_in(a, b);
}

#[test]
fn a_peer_that_refused_and_then_keeps_a_connection_is_presented() {
    let mut net = Net::new(vec![usual(), usual()]);
    let b = net.attach(1, 2);
    let now_ns = net.now_ns;
    net.sites[0].gateway.add_peer(PeerKey(1), now_ns);
    net.sites[0].gateway.set_ports(PeerKey(1), vec![remote_port(2, b)], now_ns).unwrap();
    net.run();
    net.sites[1].gateway.add_peer(PeerKey(0), now_ns);
    // It does not connect itself.
    net.sites[1].gateway.poll_connect().unwrap();
    net.wait(2 * S);
    assert!(!net.sites[0].gateway.is_up(PeerKey(1)), "it may still close the connection");
    net.wait(S);
    assert!(net.sites[0].gateway.is_up(PeerKey(1)));
    net.alias(0, 2);
}

/// Connects a gateway to a peer that the test plays; returns the connection when it wants one.
fn connection_to(gateway: &mut Gateway, now_ns: u64) -> Option<ConnectionKey> {
    gateway.handle_timeout(now_ns);
    let (connection, _) = gateway.poll_connect()?;
    gateway.handle_connected(connection, now_ns);
    Some(connection)
}

#[test]
fn a_server_of_something_else_is_up_ever_more_rarely() {
    let mut gateway = Gateway::new(usual()).unwrap();
    gateway.add_peer(PeerKey(1), 0);
    let (mut now_ns, mut ups) = (0, 0);
    while now_ns < 600 * S {
        if let Some(connection) = connection_to(&mut gateway, now_ns) {
            // It waits for a request, and answers the first message with a page.
            now_ns += 3 * S;
            gateway.handle_timeout(now_ns);
            ups += usize::from(gateway.is_up(PeerKey(1)));
            gateway.handle_bytes(connection, &mut BytesMut::from(&[b'H'; 40][..]), now_ns);
            assert!(!gateway.is_up(PeerKey(1)), "its ports are withdrawn");
        }
        now_ns += S / 10;
    }
    assert!(ups <= 3, "{ups} times in ten minutes");
}

#[test]
fn a_peer_that_closes_connections_after_a_while_does_not_stay_up() {
    let mut gateway = Gateway::new(usual()).unwrap();
    gateway.add_peer(PeerKey(1), 0);
    let (mut now_ns, mut connections) = (0, 0);
    while now_ns < 600 * S {
        if let Some(connection) = connection_to(&mut gateway, now_ns) {
            connections += 1;
            assert_eq!(gateway.is_up(PeerKey(1)), connections == 1);
            now_ns += 3 * S / 2;
            gateway.handle_timeout(now_ns);
            gateway.handle_closed(connection, now_ns);
            assert!(!gateway.is_up(PeerKey(1)));
        }
        now_ns += S / 10;
    }
    assert!((10..30).contains(&connections), "{connections} attempts in ten minutes");
}

#[test]
fn a_peer_whose_connections_bring_no_ifcp_is_not_up_for_making_them() {
    let mut gateway = Gateway::new(usual()).unwrap();
    gateway.add_peer(PeerKey(1), 0);
    for second in 0..20 {
        let now_ns = second * S;
        let accepted = gateway.handle_accepted(PeerKey(1), now_ns).unwrap();
        assert_eq!(gateway.is_up(PeerKey(1)), second == 0);
        gateway.handle_bytes(accepted, &mut BytesMut::from(&[22; 40][..]), now_ns + 1);
        while let Some((connection, _)) = gateway.poll_connect() {
            gateway.handle_refused(connection, now_ns + 1);
        }
        assert!(!gateway.is_up(PeerKey(1)));
    }
}

#[test]
fn a_peer_that_removes_this_gateway_is_down_at_once() {
    let (mut net, [a, b]) = two_sites(usual(), usual());
    net.log_in(a, b);
    net.wait(10 * S);
    net.lines_of(0);
    let now_ns = net.now_ns;
    net.sites[1].gateway.remove_peer(PeerKey(0), now_ns);
    net.run();
    assert!(!net.sites[0].gateway.is_up(PeerKey(1)));
    assert_eq!(net.refused, 1);
    assert!(net.lines_of(0).iter().any(|line| line.contains("closes connections at once")));
}

#[test]
fn a_slow_connection_stops_its_port_within_the_bound() {
    let bounds = Settings { full_bytes: 20_000, resume_bytes: 10_000, queue_bytes_max: 40_000, ..usual() };
    let (mut net, [a, b]) = two_sites(bounds, usual());
    net.log_in(a, b);
    let alias = net.alias(0, 2);
    net.sites[0].stuck = true;
    let mut sent = 0;
    while !net.sites[0].gateway.is_full(a.2) {
        net.send_frame(0, PortKey(1), data(a.2, alias, sent, 0, &[sent as u8; 1000]));
        sent += 1;
        assert!(sent < 25, "the port has no flow to stop");
    }
    assert_eq!(net.sites[0].flows, [Flow { id: a.2, full: true }]);
    // Frames beyond the last bound are dropped, with an event each.
    for more in 0..100 {
        net.send_frame(0, PortKey(1), data(a.2, alias, 1000 + more, 0, &[0; 1000]));
    }
    let queued = net.sites[0].gateway.sessions().next().unwrap().queued_bytes;
    assert!(queued <= 40_000, "{queued} bytes wait");
    assert!(net.sites[0].gateway.counters().queue_full > 50);
    net.sites[0].stuck = false;
    net.run();
    assert_eq!(net.sites[0].flows, [Flow { id: a.2, full: true }, Flow { id: a.2, full: false }]);
    let came = net.sites[1].got.iter().map(|(_, frame)| frame.header.ox_id).filter(|ox_id| *ox_id < 1000);
    assert!(came.eq(0..sent));
}

#[test]
fn a_port_that_leaves_while_its_session_is_full_no_longer_stops_its_way() {
    let bounds = Settings { full_bytes: 20_000, resume_bytes: 10_000, queue_bytes_max: 40_000, ..usual() };
    let (mut net, [a, b]) = two_sites(bounds, usual());
    net.log_in(a, b);
    let alias = net.alias(0, 2);
    net.sites[0].stuck = true;
    for sent in 0..25 {
        net.send_frame(0, PortKey(1), data(a.2, alias, sent, 0, &[0; 1000]));
    }
    net.detach(0, 1);
    assert_eq!(net.sites[0].flows, [Flow { id: a.2, full: true }, Flow { id: a.2, full: false }]);
    assert!(!net.sites[0].gateway.is_full(a.2));
}

#[test]
fn a_frame_that_waited_too_long_does_not_go_out() {
    let (mut net, [a, b]) = two_sites(Settings { liveness_s: 0, ..usual() }, Settings { liveness_s: 0, ..usual() });
    net.log_in(a, b);
    let alias = net.alias(0, 2);
    net.sites[0].stuck = true;
    net.send_frame(0, PortKey(1), data(a.2, alias, 1, 0, b"old"));
    net.wait(6 * S);
    net.send_frame(0, PortKey(1), data(a.2, alias, 2, 0, b"new"));
    net.sites[0].stuck = false;
    net.run();
    assert_eq!(net.take(1, PortKey(2)).header.ox_id, 2);
    assert!(net.sites[1].got.is_empty());
    assert_eq!(net.sites[0].gateway.counters().expired, 1);
}

#[test]
fn a_frame_under_way_for_too_long_is_not_delivered() {
    let (mut net, [a, b]) = two_sites(Settings { liveness_s: 0, ..usual() }, Settings { liveness_s: 0, ..usual() });
    net.log_in(a, b);
    let alias = net.alias(0, 2);
    net.send_frame(0, PortKey(1), data(a.2, alias, 1, 0, b"old"));
    net.now_ns += 6 * S;
    net.send_frame(0, PortKey(1), data(a.2, alias, 2, 0, b"new"));
    net.run();
    assert_eq!(net.take(1, PortKey(2)).header.ox_id, 2);
    assert!(net.sites[1].got.is_empty());
    assert_eq!(net.sites[1].gateway.counters().stale, 1);
    let stale = "refused: the frame's time stamp differs by 6000 ms, more than IP_TOV";
    assert_eq!(net.lines_of(1).iter().filter(|line| line.ends_with(stale)).count(), 1);
}

#[test]
fn a_port_that_leaves_takes_its_sessions_with_it() {
    let (mut net, [a, b]) = two_sites(usual(), usual());
    net.log_in(a, b);
    net.detach(1, 2);
    net.run();
    assert_eq!((net.open(0).len(), net.open(1).len()), (0, 0));
    assert_eq!(net.take(0, PortKey(1)).payload.to_bytes()[0], Command::LOGO.0);
}

#[test]
fn frames_of_an_ended_session_reach_no_later_one() {
    let (mut net, [a, b]) = two_sites(usual(), usual());
    net.log_in(a, b);
    let (to_b, to_a, now_ns) = (net.alias(0, 2), net.alias(1, 1), net.now_ns);
    // One waits in the gateway, and one of the other side is under way.
    net.sites[0].stuck = true;
    net.send_frame(0, PortKey(1), data(a.2, to_b, 1, 0, b"old"));
    net.send_frame(1, PortKey(2), data(b.2, to_a, 1, 0, b"old"));
    net.sites[0].gateway.set_clock(Clock::Unsynchronized, now_ns);
    net.sites[0].gateway.set_clock(Clock::Synchronized { epoch_ns: EPOCH_NS }, now_ns);
    net.sites[0].stuck = false;
    net.run();
    for (site, port) in [(0, PortKey(1)), (1, PortKey(2))] {
        assert_eq!(net.take(site, port).payload.to_bytes()[0], Command::LOGO.0);
        assert_eq!(net.sites[site].gateway.counters().refused, 0, "frames under way are no fault of the peer");
    }
    net.log_in(a, b);
    assert!(net.sites.iter().all(|site| site.got.is_empty()), "an old frame came");
    net.send_frame(0, PortKey(1), data(a.2, to_b, 2, 0, b"new"));
    net.run();
    assert_eq!(net.take(1, PortKey(2)).header.ox_id, 2);
}
