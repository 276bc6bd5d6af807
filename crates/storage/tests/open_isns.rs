//! The iSNS client against open-isns, a server that we did not write: real TCP, a database in a temporary folder.
//!
//! The virtual time of the clients goes on by [`PAUSE`] with each look at their sockets, which takes as long.

use crate::isns_server::IsnsServer;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;
use storage::fc::isns::{Client, Connection, Event, LocalPort, RemotePort, Settings, Source};
use wire::fc::name_server::TypeMap;
use wire::fc::{FcId, Wwn};
use wire::isns::{port_role, Function, IpAddress};

const PAUSE: Duration = Duration::from_millis(10);
/// Looks after which a test gives up: 30 s.
const LOOKS_MAX: usize = 3_000;
const EAST: [Wwn; 2] = [Wwn(0x2000_0000_0000_00e1), Wwn(0x2000_0000_0000_00e2)];
const WEST: [Wwn; 2] = [Wwn(0x2000_0000_0000_00f1), Wwn(0x2000_0000_0000_00f2)];

fn pause() {
    let (_sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(PAUSE);
}

/// A client with its sockets.
struct Gateway {
    client: Client,
    server: SocketAddr,
    now_ns: u64,
    link: Option<TcpStream>,
    listener: TcpListener,
    inbound: Vec<(u32, TcpStream)>,
    next: u32,
    events: Vec<Event>,
    /// Inquiries of the server.
    inquiries: usize,
    /// Notifications of the server.
    changes: usize,
}

fn loopback() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

/// Takes what a socket has; None when it is closed.
fn read(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 65_536];
    match stream.read(&mut bytes) {
        Ok(0) => None,
        Ok(count) => {
            bytes.truncate(count);
            Some(bytes)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Some(Vec::new()),
        Err(_) => None,
    }
}

impl Gateway {
    fn new(name: &str, portal: u16, server: SocketAddr) -> Gateway {
        let listener = loopback();
        listener.set_nonblocking(true).unwrap();
        let settings = Settings {
            change_port: listener.local_addr().unwrap().port(),
            source: Source::ControlNode(format!("iqn.2026-11.example:{name}")),
            status_inquiry_s: 1,
            refresh_ms: 1_000,
            retry_ms: 100,
            ..Settings::new(name, IpAddress::of_v4([127, 0, 0, 1]), portal)
        };
        Gateway {
            client: Client::new(settings),
            server,
            now_ns: 0,
            link: None,
            listener,
            inbound: Vec::new(),
            next: 0,
            events: Vec::new(),
            inquiries: 0,
            changes: 0,
        }
    }

    fn register(&mut self, name: Wwn, role: u32) {
        assert!(self.client.register(port(name, role), self.now_ns));
    }

    /// Looks at the sockets once.
    fn look(&mut self) {
        self.now_ns += PAUSE.as_nanos() as u64;
        self.client.handle_timeout(self.now_ns);
        if let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true).unwrap();
            self.next += 1;
            self.client.handle_accepted(self.next);
            self.inbound.push((self.next, stream));
        }
        if let Some(mut stream) = self.link.take() {
            match read(&mut stream) {
                Some(bytes) => {
                    self.client.handle_bytes(Connection::Server, &bytes, self.now_ns);
                    self.link = Some(stream);
                }
                None => self.client.handle_closed(Connection::Server, self.now_ns),
            }
        }
        for (number, mut stream) in std::mem::take(&mut self.inbound) {
            match read(&mut stream) {
                Some(bytes) => {
                    let function = bytes.get(2..4).map(|half| Function(u16::from_be_bytes([half[0], half[1]])));
                    self.inquiries += usize::from(function == Some(Function::STATUS_INQUIRY));
                    self.changes += usize::from(function == Some(Function::CHANGE));
                    self.client.handle_bytes(Connection::Inbound(number), &bytes, self.now_ns);
                    self.inbound.push((number, stream));
                }
                None => self.client.handle_closed(Connection::Inbound(number), self.now_ns),
            }
        }
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Connect => match TcpStream::connect(self.server) {
                    Ok(stream) => {
                        stream.set_nonblocking(true).unwrap();
                        self.link = Some(stream);
                        self.client.handle_connected(self.now_ns);
                    }
                    Err(_) => self.client.handle_closed(Connection::Server, self.now_ns),
                },
                Event::Close(Connection::Server, _) => self.link = None,
                Event::Close(Connection::Inbound(number), _) => self.inbound.retain(|(other, _)| *other != number),
                _ => {}
            }
            self.events.push(event);
        }
        while let Some((connection, bytes)) = self.client.poll_transmit() {
            let stream = match connection {
                Connection::Server => self.link.as_mut(),
                Connection::Inbound(number) => {
                    self.inbound.iter_mut().find(|(other, _)| *other == number).map(|(_, stream)| stream)
                }
            };
            // A connection that is gone is noticed at the next read.
            let _ = stream.map(|stream| stream.write_all(&bytes));
        }
    }

    fn remote(&self) -> Vec<Wwn> {
        self.client.remote_ports().map(|port| port.name).collect()
    }
}

fn port(name: Wwn, role: u32) -> LocalPort {
    LocalPort {
        name,
        id: FcId::of(1, 1, name.0 as u8),
        node: Wwn(name.0 ^ 3 << 60),
        fabric_port: Wwn(0x2000_0000_0000_00fa),
        types: TypeMap::of(8),
        role,
        symbolic: "a port".to_string(),
    }
}

/// Looks at both until something holds.
fn until(east: &mut Gateway, west: &mut Gateway, text: &str, holds: impl Fn(&Gateway, &Gateway) -> bool) {
    for _ in 0..LOOKS_MAX {
        if holds(east, west) {
            return;
        }
        pause();
        east.look();
        west.look();
    }
    let last = |side: &Gateway| side.events.iter().rev().take(8).cloned().collect::<Vec<_>>();
    panic!("{text}, the last events first: east {:?}, west {:?}", last(east), last(west));
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn two_gateways_find_each_others_ports_at_open_isns() {
    let folder = Folder(std::env::temp_dir().join(format!("elephan-isns-{}", std::process::id())));
    // The server takes the port after it was free a moment before.
    let address = loopback().local_addr().unwrap();
    let Some(server) = IsnsServer::start(&folder.0.join("first"), address) else {
        return crate::skip::skipped("isnsd is not installed (Debian package open-isns-server)");
    };
    let (mut east, mut west) =
        (Gateway::new("east.example", 3420, address), Gateway::new("west.example", 3421, address));
    for name in EAST {
        east.register(name, port_role::INITIATOR);
    }
    west.register(WEST[0], port_role::TARGET);
    until(&mut east, &mut west, "registered", |east, west| east.remote() == [WEST[0]] && west.remote() == EAST);
    for gateway in [&east, &west] {
        assert!(gateway.events.contains(&Event::Registered), "{:?}", gateway.events);
    }
    let expected = RemotePort {
        name: WEST[0],
        id: Some(FcId::of(1, 1, 0xf1)),
        // This server refuses names of nodes.
        node: None,
        types: TypeMap::of(8),
        role: port_role::TARGET,
        symbolic: "a port".to_string(),
        entity: "west.example".to_string(),
        portal: Some((IpAddress::of_v4([127, 0, 0, 1]), 3421)),
    };
    assert_eq!(east.client.remote_ports().collect::<Vec<_>>(), [&expected]);
    until(&mut east, &mut west, "inquired", |east, west| east.inquiries > 1 && west.inquiries > 1);

    west.register(WEST[1], port_role::TARGET);
    until(&mut east, &mut west, "a further port", |east, _| east.remote() == WEST);
    // open-isns tells of gateways, not of single ports: those are found at the next query.
    assert_eq!(east.changes, 0);
    west.client.deregister(WEST[0], west.now_ns);
    until(&mut east, &mut west, "a port less", |east, _| east.remote() == [WEST[1]]);
    assert!(east.changes > 0 && east.events.contains(&Event::Disappeared(WEST[0])));
    assert!(!east.events.contains(&Event::Disappeared(WEST[1])), "{:?}", east.events);

    // A server that has forgotten everything: the gateways tell it again, and their ports stay with each other.
    drop(server);
    let lost = |gateway: &Gateway| gateway.link.is_none();
    until(&mut east, &mut west, "lost", |east, west| lost(east) && lost(west));
    let events = (east.events.len(), west.events.len());
    let _server = IsnsServer::start(&folder.0.join("second"), address);
    until(&mut east, &mut west, "registered again", |east, west| {
        let again = |gateway: &Gateway, from: usize| gateway.events[from..].contains(&Event::Registered);
        again(east, events.0) && again(west, events.1) && east.remote() == [WEST[1]] && west.remote() == EAST
    });
}
