//! Two gateways that find each other through open-isns, a name server that we did not write.

use super::node::Node;
use super::two_sites::{alias, number_of, send, until, Sites};
use crate::isns_server::IsnsServer;
use crate::skip::skipped;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use storage::fc::isns::Source;
use storage_net::gateway::{Gateway, IsnsConfig, PeerConfig};
use units::Span;
use wire::fc::els::Command;
use wire::fc::FcId;

/// Time between two queries: open-isns sends notifications of gateways, not of single ports.
const REFRESH: Span = Span::from_millis(200);
/// Time after which a host asks again for a login, and times that it asks.
const LOGIN_WAIT: Duration = Duration::from_secs(2);
const LOGINS_MAX: usize = 10;

/// A name server, with the address that it may be started at again.
struct Names {
    address: SocketAddr,
    server: Option<IsnsServer>,
    starts: u32,
}

impl Names {
    /// Starts a server without entries; None, which is reported, when none is installed.
    fn new(sites: &Sites) -> Option<Names> {
        // The server takes the port after it was free a moment before.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut names = Names { address, server: None, starts: 0 };
        names.start(sites);
        if names.server.is_none() {
            skipped("isnsd is not installed (Debian package open-isns-server)");
            return None;
        }
        Some(names)
    }

    /// Starts it anew: it has forgotten everything.
    fn start(&mut self, sites: &Sites) {
        self.starts += 1;
        self.server = IsnsServer::start(&sites.folder(&format!("isns-{}", self.starts)), self.address);
    }

    fn end(&mut self) {
        self.server = None;
    }

    fn config(&self, site: u8) -> IsnsConfig {
        IsnsConfig {
            server: self.address,
            entity: format!("site-{site}.example"),
            source: Source::ControlNode(format!("naa.1000000000000f{site:02x}")),
            scn_port: None,
            refresh: REFRESH,
            registration: Span::from_secs(300),
        }
    }
}

/// Both gateways, which know of each other by the server alone.
fn both(sites: &Sites, names: &Names) -> [Gateway; 2] {
    [1, 2].map(|site| sites.gateway_with_isns(site, Vec::new(), names.config(site)))
}

/// Logs two nodes in to their fabrics and the first in to the second; returns their addresses for each other.
///
/// As a host does, the first asks again: a gateway closes the connections of another that it does not know yet, and the
/// logins on them are lost.
fn found(gateways: [&Gateway; 2], nodes: [&mut Node; 2]) -> (FcId, FcId) {
    let [first, second] = nodes;
    first.log_in();
    second.log_in();
    let (second_here, first_there) = (alias(gateways[0]), alias(gateways[1]));
    let accepted = (0..LOGINS_MAX).find_map(|_| {
        first.ask_for_login(second_here);
        second.accept_login_within(LOGIN_WAIT)
    });
    assert_eq!(accepted, Some(first_there));
    assert_eq!(first.els(Command::LS_ACC).header.s_id, second_here);
    (second_here, first_there)
}

fn has_remote(gateway: &Gateway, wanted: usize, text: &str) {
    until(gateway, text, |status| status.ports.iter().filter(|port| port.is_remote).count() == wanted);
}

fn crosses(from: &Node, to: &Node, at: FcId, number: u32) {
    send(from, at, number);
    assert_eq!(number_of(&to.data_frame().payload.to_bytes()), number);
}

/// Lines of the log on the name server.
fn lines_on_server(gateway: &Gateway) -> Vec<String> {
    gateway.drain_log().into_iter().filter(|line| line.starts_with("iSNS server")).collect()
}

#[test]
fn gateways_find_each_other_and_a_port_that_goes_is_withdrawn() {
    let sites = Sites::new("isns-find");
    let Some(names) = Names::new(&sites) else { return };
    let [here, there] = both(&sites, &names);
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, _) = found([&here, &there], [&mut first, &mut second]);
    crosses(&first, &second, second_here, 77);
    let status = here.status();
    let peers: Vec<(&str, bool, bool)> =
        status.peers.iter().map(|peer| (peer.name.as_str(), peer.is_up, peer.is_learnt)).collect();
    assert_eq!(peers, [("site-2.example", true, true)]);
    let isns = status.isns.unwrap();
    assert_eq!((isns.is_registered, isns.local_ports, isns.remote_ports, isns.failures), (true, 1, 1, 0), "{isns:?}");
    assert!(isns.age_ns.is_some());

    first.register_for_changes();
    second.log_out();
    has_remote(&here, 0, "the port is still presented");
    first.els(Command::RSCN);
    until(&here, "the session is still there", |status| status.sessions.is_empty());
    // The same port again, at the address that it had here.
    found([&here, &there], [&mut first, &mut second]);
    crosses(&first, &second, second_here, 78);
    assert_eq!(lines_on_server(&here).len(), 1);
}

#[test]
fn sessions_outlive_the_server_and_a_new_one_learns_all_again() {
    let sites = Sites::new("isns-killed");
    let Some(mut names) = Names::new(&sites) else { return };
    let [here, there] = both(&sites, &names);
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, _) = found([&here, &there], [&mut first, &mut second]);
    let ended = [&here, &there].map(|gateway| gateway.status().ifcp.sessions_ended);
    names.end();
    for gateway in [&here, &there] {
        until(gateway, "the server is still there", |status| !status.isns.as_ref().unwrap().is_registered);
    }
    crosses(&first, &second, second_here, 1);
    names.start(&sites);
    for gateway in [&here, &there] {
        until(gateway, "not registered again", |status| {
            let isns = status.isns.as_ref().unwrap();
            isns.is_registered && isns.remote_ports == 1 && isns.age_ns.is_some_and(|age_ns| age_ns < REFRESH.0)
        });
    }
    crosses(&first, &second, second_here, 2);
    assert_eq!([&here, &there].map(|gateway| gateway.status().ifcp.sessions_ended), ended);
    for gateway in [&here, &there] {
        let lines = lines_on_server(gateway);
        let [registered, lost, again] = &lines[..] else { panic!("{lines:?}") };
        assert!(registered.contains("registered as site-") && again.contains("registered as site-"), "{lines:?}");
        assert!(lost.contains("it is tried again"), "{lines:?}");
    }
}

#[test]
fn what_a_silent_server_listed_goes_after_the_period_unless_a_session_uses_it() {
    let sites = Sites::new("isns-stale");
    let Some(mut names) = Names::new(&sites) else { return };
    let short = |site| IsnsConfig { registration: Span::from_secs(1), ..names.config(site) };
    let [here, there] = [1, 2].map(|site| sites.gateway_with_isns(site, Vec::new(), short(site)));
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, _) = found([&here, &there], [&mut first, &mut second]);
    names.end();
    until(&here, "the answer is fresh", |status| {
        status.isns.as_ref().unwrap().age_ns.is_some_and(|age_ns| age_ns > Span::from_secs(3).0)
    });
    // The session is older than the server's last answer by far.
    crosses(&first, &second, second_here, 1);
    first.register_for_changes();
    second.log_out();
    until(&here, "the session is still there", |status| status.sessions.is_empty());
    has_remote(&here, 0, "a port without a session is still there");
    first.els(Command::RSCN);
    // The other gateway may have left first: the port goes with its connection, the peer within a second of that.
    until(&here, "the peer is still there", |status| status.peers.is_empty());
}

#[test]
fn a_peer_of_the_file_stays_with_its_ports_and_gets_those_that_the_server_lists() {
    let sites = Sites::new("isns-both");
    let Some(mut names) = Names::new(&sites) else { return };
    // Site 1 has the address of site 2 without its port; site 2 has site 1 with its port.
    let without_ports = PeerConfig { ports: Vec::new(), ..sites.peer_of(1) };
    let here = sites.gateway_with_isns(1, vec![without_ports], names.config(1));
    let there = sites.gateway_with_isns(2, vec![sites.peer_of(2)], names.config(2));
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, _) = found([&here, &there], [&mut first, &mut second]);
    crosses(&first, &second, second_here, 1);
    let peers = here.status().peers;
    assert_eq!(peers.iter().map(|peer| (peer.name.as_str(), peer.is_learnt)).collect::<Vec<_>>(), [("site 2", false)]);
    // A port that the server lists no longer leaves the peer that has it from there, and stays where the file has it.
    second.log_out();
    has_remote(&here, 0, "the server's port is still there");
    names.end();
    drop(here);
    until(&there, "the peer is still there", |status| status.peers.iter().all(|peer| !peer.is_up));
    let here = sites.gateway(1);
    has_remote(&there, 1, "the file's port is not there without a server");
    assert!(here.is_running());
}

#[test]
fn a_gateway_that_stops_is_taken_from_the_server() {
    let sites = Sites::new("isns-stop");
    let Some(names) = Names::new(&sites) else { return };
    let [here, mut there] = both(&sites, &names);
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    found([&here, &there], [&mut first, &mut second]);
    there.stop();
    until(&here, "the server still lists the gateway", |status| {
        status.peers.is_empty() && status.isns.as_ref().unwrap().remote_ports == 0
    });
    has_remote(&here, 0, "its port is still presented");
}

#[test]
fn a_server_that_is_not_there_costs_one_line_and_peers_of_the_file_are_served() {
    let sites = Sites::new("isns-none");
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let names = Names { address, server: None, starts: 0 };
    let here = sites.gateway_with_isns(1, vec![sites.peer_of(1)], names.config(1));
    let there = sites.gateway_with_isns(2, vec![sites.peer_of(2)], names.config(2));
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, _) = found([&here, &there], [&mut first, &mut second]);
    crosses(&first, &second, second_here, 1);
    until(&here, "no failure", |status| status.isns.as_ref().unwrap().failures > 1);
    let lines = lines_on_server(&here);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.contains("Connection refused"), "{line}");
    let isns = here.status().isns.unwrap();
    assert!(!isns.is_registered && isns.age_ns.is_none(), "{isns:?}");
}
