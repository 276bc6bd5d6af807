//! A gateway and nodes on UNIX datagram sockets.

use super::node::{Node, Received};
use bytes::Bytes;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use storage_net::gateway::{Gateway, GatewayConfig};
use storage_net::AttachmentConfig;
use wire::fc::Wwn;
use wire::fip::Operation;

/// Time between two looks at a state, and their number: 30 s.
const LOOK: Duration = Duration::from_millis(20);
const MAX_POLLS: usize = 1500;

/// A folder that goes with the test. Its name is short: a socket's path has 107 characters.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("elephan-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn gateway(&self, node: u8) -> PathBuf {
        self.0.join(format!("{node}.gateway"))
    }

    fn node(&self, number: u8) -> Node {
        Node::new(&self.0.join(format!("{number}.node")), &self.gateway(number), number)
    }

    fn config(&self) -> GatewayConfig {
        let socket = |number| AttachmentConfig::Socket {
            local: self.gateway(number),
            remote: self.0.join(format!("{number}.node")),
        };
        let sockets = vec![socket(1), socket(2)];
        GatewayConfig::new(sockets, Wwn(0x1000_0000_0000_00fa), 5, self.0.join("addresses"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn numbered(number: u32) -> Bytes {
    let mut payload = vec![0x5a; 2048];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    Bytes::from(payload)
}

fn number_of(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload[..4].try_into().unwrap())
}

#[test]
fn the_address_of_a_node_that_is_logged_in_counts_at_its_own_socket_alone() {
    let folder = Folder::new("fc-intruder");
    let mut gateway = Gateway::start(folder.config()).unwrap();
    let mut first = folder.node(1);
    first.log_in();
    // The same name and Ethernet address at the other socket.
    let mut other = Node::new(&folder.0.join("2.node"), &folder.gateway(2), 1);
    for _ in 0..3 {
        other.solicit();
    }
    let mut log = Vec::new();
    for _ in 0..MAX_POLLS {
        log.extend(gateway.drain_log());
        if gateway.status().other_link_frames == 3 {
            break;
        }
        std::thread::park_timeout(LOOK);
    }
    log.extend(gateway.drain_log());
    let refused: Vec<&String> = log.iter().filter(|line| line.contains("refused: 52:54:00:00:00:01 ")).collect();
    assert!(matches!(refused[..], [line] if line.contains("2.gateway: ")), "{log:?}");
    assert_eq!(gateway.status().ports.len(), 1);
    assert!(first.send(&first.data(first.id, numbered(5))));
    assert_eq!(number_of(&first.fc().payload.to_bytes()), 5);
    first.log_out();
    // The port has the address that it had, and so the Ethernet address of the first's.
    other.log_in();
    gateway.stop();
}

#[test]
fn nodes_log_in_and_a_restart_gives_each_the_address_that_it_had() {
    let folder = Folder::new("fc-restart");
    let mut gateway = Gateway::start(folder.config()).unwrap();
    let (mut first, mut second) = (folder.node(1), folder.node(2));
    first.log_in();
    second.log_in();
    let (one, two) = (first.id, second.id);
    assert_ne!(one, two);
    assert!(first.send(&first.data(two, numbered(77))));
    let frame = second.fc();
    assert_eq!((frame.header.s_id, number_of(&frame.payload.to_bytes())), (one, 77));
    let names: Vec<Wwn> = gateway.status().ports.iter().map(|port| port.port).collect();
    assert_eq!(names, [first.name(), second.name()]);
    gateway.stop();
    for node in [&first, &second] {
        node.fip(|message| message.operation == Operation::ClearVirtualLinks);
    }
    assert!(gateway.status().ports.is_empty() && !folder.gateway(1).exists());
    drop(gateway);
    // The other one first: the order of logins gives no address.
    let mut gateway = Gateway::start(folder.config()).unwrap();
    second.log_in();
    first.log_in();
    assert_eq!((first.id, second.id), (one, two));
    gateway.stop();
}

#[test]
fn a_node_that_stops_reading_holds_frames_back_and_loses_none() {
    let folder = Folder::new("fc-pause");
    let gateway = Gateway::start(folder.config()).unwrap();
    let (mut first, mut second) = (folder.node(1), folder.node(2));
    first.log_in();
    second.log_in();
    const FRAMES: u32 = 3000;
    let mut sent = 0;
    // As many as the gateway takes while nobody reads.
    while gateway.status().pauses == 0 {
        assert!(sent < FRAMES, "nothing stopped the sender");
        if first.send(&first.data(second.id, numbered(sent))) {
            sent += 1;
        }
    }
    let reader = std::thread::spawn(move || {
        for expected in 0..FRAMES {
            assert_eq!(number_of(&second.fc().payload.to_bytes()), expected);
        }
    });
    while sent < FRAMES {
        if first.send(&first.data(frame_receiver(&gateway), numbered(sent))) {
            sent += 1;
        } else {
            std::thread::park_timeout(Duration::from_micros(100));
        }
    }
    reader.join().unwrap();
    let status = gateway.status();
    assert_eq!((status.kernel_drops, status.held_too_long, status.fabric.forwarded), (0, 0, u64::from(FRAMES)));
    assert!(status.paused_ns > 0);
}

/// The address of the second node.
fn frame_receiver(gateway: &Gateway) -> wire::fc::FcId {
    gateway.status().ports[1].id
}

#[test]
fn a_node_that_reads_no_more_does_not_stop_the_others_for_good() {
    let folder = Folder::new("fc-dead");
    let gateway = Gateway::start(folder.config()).unwrap();
    let (mut first, mut second) = (folder.node(1), folder.node(2));
    first.log_in();
    second.log_in();
    let mut sent = 0;
    while gateway.status().held_too_long == 0 {
        if first.send(&first.data(second.id, numbered(sent))) {
            sent += 1;
        } else {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
    // The first one is served again.
    first.log_in();
    assert!(gateway.status().held_too_long >= 200);
}

#[test]
fn what_a_killed_gateway_left_is_taken_over_and_what_another_has_is_not() {
    let folder = Folder::new("fc-stale");
    // A socket whose program is gone.
    drop(std::os::unix::net::UnixDatagram::bind(folder.gateway(1)).unwrap());
    assert!(folder.gateway(1).exists());
    let gateway = Gateway::start(folder.config()).unwrap();
    let mut node = folder.node(1);
    node.log_in();
    let refused = |config| Gateway::start(config).map(drop).unwrap_err();
    assert_eq!(refused(folder.config()).kind(), ErrorKind::WouldBlock, "the addresses");
    let other = GatewayConfig { addresses: folder.0.join("other"), ..folder.config() };
    assert_eq!(refused(other).kind(), ErrorKind::AddrInUse, "the sockets");
    let file = GatewayConfig { attachments: vec![plain_file(&folder.0)], ..folder.config() };
    let file = GatewayConfig { addresses: folder.0.join("third"), ..file };
    assert_eq!(refused(file).kind(), ErrorKind::AddrInUse, "a file that is no socket stays");
    assert!(folder.0.join("file").is_file());
    // The first one did not notice.
    node.log_in();
    assert!(gateway.is_running());
    assert!(matches!(node.receive(), Received::Fip(_)), "advertisements go on");
}

fn plain_file(folder: &Path) -> AttachmentConfig {
    let path = folder.join("file");
    std::fs::write(&path, "text").unwrap();
    AttachmentConfig::Socket { local: path, remote: folder.join("nobody") }
}
