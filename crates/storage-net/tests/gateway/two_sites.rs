//! Two gateways, each with a node on a UNIX datagram socket, and TCP over loopback between them.

use super::node::Node;
use bytes::Bytes;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;
use storage::fc::fabric::{Entry, Location};
use storage::fc::ifcp::RemotePort;
use storage_net::gateway::{Gateway, GatewayConfig, IpConfig, IsnsConfig, PeerConfig, Status};
use storage_net::AttachmentConfig;
use units::Span;
use wire::fc::els::Command;
use wire::fc::name_server::TypeMap;
use wire::fc::{FcId, FrameType, Wwn};
use wire::ifcp::AddressMode;

/// Longest wait for a byte.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two looks at a state, and their number: 30 s.
const LOOK: Duration = Duration::from_millis(20);
const MAX_POLLS: usize = 1500;

/// Time between keep-alives that the gateways ask for, ms. Nodes send none: a gateway that waits for two and a half of
/// the default of 8 s (FC-BB-5, 7.8.6.2) forgets their logins while a loaded machine starts a name server.
const KEEP_ALIVE_MS: u32 = 120_000;

/// Two sites: a folder that goes with the test, and the port on which both listen, each at its own address.
pub struct Sites {
    folder: PathBuf,
    port: u16,
}

impl Sites {
    pub fn new(name: &str) -> Sites {
        let folder = std::env::temp_dir().join(format!("elephan-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Sites { folder, port }
    }

    pub fn address(&self, site: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, site], self.port))
    }

    /// A folder for files of a name server.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn path(&self, site: u8, ending: &str) -> PathBuf {
        self.folder.join(format!("{site}.{ending}"))
    }

    pub fn node(&self, site: u8) -> Node {
        Node::new(&self.path(site, "node"), &self.path(site, "gateway"), site)
    }

    /// The gateway of site 1 or 2, whose peer is the other.
    pub fn gateway(&self, site: u8) -> Gateway {
        self.gateway_with(site, Span::from_secs(10))
    }

    /// The same, with a bound for exchanges under way when it stops.
    pub fn gateway_with(&self, site: u8, drain: Span) -> Gateway {
        self.start(site, drain, vec![self.peer_of(site)], None)
    }

    /// The gateway of site 1 or 2 whose peers are those that it is given and those that a name server lists.
    pub fn gateway_with_isns(&self, site: u8, peers: Vec<PeerConfig>, isns: IsnsConfig) -> Gateway {
        self.start(site, Span::from_millis(100), peers, Some(isns))
    }

    /// The other site, as a peer of site 1 or 2, with its port.
    pub fn peer_of(&self, site: u8) -> PeerConfig {
        let other = 3 - site;
        let name = |prefix: u64| Wwn(prefix << 48 | u64::from(other));
        let mut entry = Entry::new(Location::Remote, name(0x2000), name(0x1000));
        entry.types = TypeMap::of(FrameType::FCP.0);
        PeerConfig {
            name: format!("site {other}"),
            address: self.address(other),
            ports: vec![RemotePort { id: None, entry }],
        }
    }

    fn start(&self, site: u8, drain: Span, peers: Vec<PeerConfig>, isns: Option<IsnsConfig>) -> Gateway {
        let socket = AttachmentConfig::Socket { local: self.path(site, "gateway"), remote: self.path(site, "node") };
        let ip = IpConfig {
            listen: self.address(site),
            congestion_control: Some("reno".to_owned()),
            mode: AddressMode::Translation,
            tls: None,
            peers,
            isns,
        };
        // Both sites have one domain: addresses of the same number stay apart.
        let fabric = Wwn(0x1000_0000_0000_0f00 | u64::from(site));
        let config = GatewayConfig::new(vec![socket], fabric, 5, self.path(site, "addresses"));
        Gateway::start(GatewayConfig { ip: Some(ip), drain, keep_alive_ms: KEEP_ALIVE_MS, ..config }).unwrap()
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn until(gateway: &Gateway, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
    for _ in 0..MAX_POLLS {
        let status = gateway.status();
        if wanted(&status) {
            return status;
        }
        std::thread::park_timeout(LOOK);
    }
    panic!("{what}: {:?}", gateway.status())
}

/// Address here of the port behind the peer.
pub fn alias(gateway: &Gateway) -> FcId {
    let status = until(gateway, "no remote port", |status| status.ports.iter().any(|port| port.is_remote));
    status.ports.iter().find(|port| port.is_remote).unwrap().id
}

/// Logs two nodes in to their fabrics and the first in to the second; returns their addresses for each other.
pub fn joined(gateways: [&Gateway; 2], nodes: [&mut Node; 2]) -> (FcId, FcId) {
    let [first, second] = nodes;
    first.log_in();
    second.log_in();
    let (second_here, first_there) = (alias(gateways[0]), alias(gateways[1]));
    first.ask_for_login(second_here);
    assert_eq!(second.accept_login(), first_there);
    assert_eq!(first.els(Command::LS_ACC).header.s_id, second_here);
    (second_here, first_there)
}

fn numbered(number: u32) -> Bytes {
    let mut payload = vec![0x5a; 2048];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    Bytes::from(payload)
}

pub fn number_of(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload[..4].try_into().unwrap())
}

pub fn send(node: &Node, to: FcId, number: u32) {
    while !node.send(&node.data(to, numbered(number))) {
        std::thread::park_timeout(Duration::from_micros(100));
    }
}

#[test]
fn ports_of_two_sites_with_the_same_address_log_in_and_exchange_frames_in_order() {
    let sites = Sites::new("ifcp-two");
    let (here, there) = (sites.gateway(1), sites.gateway(2));
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, first_there) = joined([&here, &there], [&mut first, &mut second]);
    for number in 0..500 {
        send(&first, second_here, number);
        let frame = second.data_frame();
        assert_eq!((frame.header.s_id, number_of(&frame.payload.to_bytes())), (first_there, number));
        send(&second, first_there, number);
        assert_eq!(number_of(&first.data_frame().payload.to_bytes()), number);
    }
    let status = here.status();
    let [session] = &status.sessions[..] else { panic!("{status:?}") };
    assert!(session.view.open && session.peer == "site 2");
    assert!(session.view.counters.sent_frames >= 500);
    assert!(status.ports.iter().all(|port| port.id.domain() == 5));
}

#[test]
fn a_node_that_stops_reading_stops_the_sender_at_the_other_site_and_no_frame_is_lost() {
    let sites = Sites::new("ifcp-pause");
    let (here, there) = (sites.gateway(1), sites.gateway(2));
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, _) = joined([&here, &there], [&mut first, &mut second]);
    let mut sent = 0;
    while here.status().pauses == 0 {
        assert!(sent < 100_000, "nothing stopped the sender");
        if first.send(&first.data(second_here, numbered(sent))) {
            sent += 1;
        }
    }
    let frames = sent + 1000;
    let reader = std::thread::spawn(move || {
        for expected in 0..frames {
            assert_eq!(number_of(&second.data_frame().payload.to_bytes()), expected);
        }
    });
    for number in sent..frames {
        send(&first, second_here, number);
    }
    reader.join().unwrap();
    let (near, far) = (here.status(), there.status());
    assert_eq!((near.kernel_drops, near.held_too_long, near.ifcp.queue_full, near.ifcp.expired), (0, 0, 0, 0));
    assert_eq!((far.held_too_long, far.ifcp.stale), (0, 0));
}

#[test]
fn ports_of_a_peer_that_is_gone_are_withdrawn_and_come_back_with_it() {
    let sites = Sites::new("ifcp-lost");
    let (here, there) = (sites.gateway(1), sites.gateway(2));
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, _) = joined([&here, &there], [&mut first, &mut second]);
    first.register_for_changes();
    drop(there);
    let status = until(&here, "the peer is still there", |status| !status.peers[0].is_up);
    assert!(status.sessions.is_empty() && status.ports.iter().all(|port| !port.is_remote));
    first.els(Command::RSCN);
    // The same node, and the same address for it.
    let there = sites.gateway(2);
    assert_eq!(alias(&here), second_here);
    first.els(Command::RSCN);
    joined([&here, &there], [&mut first, &mut second]);
    assert!(here.is_running());
}

#[test]
fn a_connection_from_an_address_that_is_no_peers_is_closed() {
    let sites = Sites::new("ifcp-stranger");
    let here = sites.gateway(1);
    // Its address is 127.0.0.1; the peer's is 127.0.0.2.
    let mut stranger = std::net::TcpStream::connect(sites.address(1)).unwrap();
    stranger.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert_eq!(stranger.read(&mut [0; 16]).unwrap_or(0), 0);
    // The connection is closed a moment before its line is there to read.
    let mut said = String::new();
    for _ in 0..MAX_POLLS {
        said += &here.drain_log().join("\n");
        if said.contains("refused: the address is no peer's") {
            return;
        }
        std::thread::park_timeout(LOOK);
    }
    panic!("nothing was said of the stranger: {said}");
}
