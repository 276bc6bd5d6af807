//! A session whose connections are cut while requests are under way: every request is answered all the same.

use crate::common::{Image, BYTES, NAME};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use storage::iscsi::{InitiatorConfig, TargetConfig};
use storage_net::{bench, BenchConfig, BenchReport, LunFile, Server, ServerConfig};
use units::Span;

const IO_BYTES: usize = 65_536;

static GO: AtomicBool = AtomicBool::new(false);

/// Hands bytes on until `left` have gone; then both ways are cut, in the middle of whatever PDU it is.
fn hand_on(mut from: TcpStream, mut to: TcpStream, mut left: usize) {
    let mut bytes = [0; 4096];
    while left > 0 {
        let most = left.min(bytes.len());
        match from.read(&mut bytes[..most]) {
            Ok(0) => break,
            Ok(count) if to.write_all(&bytes[..count]).is_ok() => left -= count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    for end in [from, to] {
        // The other direction's thread may have done it.
        let _ = end.shutdown(Shutdown::Both);
    }
}

/// A way to `target` on which connection n, counted from 0, is cut when `cuts[n]` bytes have gone towards the target;
/// those after the last of `cuts` are left alone. How many were made so far is the second.
fn cutting(target: SocketAddr, cuts: &'static [usize]) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let near = near.unwrap();
            let far = TcpStream::connect(target).unwrap();
            let most = cuts.get(count.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or(usize::MAX);
            let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
            std::thread::spawn(move || hand_on(near, far, most));
            std::thread::spawn(move || hand_on(back.0, back.1, usize::MAX));
        }
    });
    (address, made)
}

fn load(read_percent: u32, connections: usize, cuts: &'static [usize], name: &str) -> (BenchReport, usize, Vec<u8>) {
    let image = Image::new(name);
    let lun = LunFile { path: image.0.clone(), read_only: false, shared: false, block_bytes: 512 };
    let portals = vec!["127.0.0.1:0".parse().unwrap()];
    let mut target = TargetConfig::new(NAME);
    target.settings.time_to_wait_s = 0;
    let config = ServerConfig {
        target,
        luns: vec![lun],
        portals,
        congestion_control: None,
        max_connections: 16,
        memory_bytes: 256 << 20,
    };
    let mut server = Server::start(config).unwrap();
    let (address, made) = cutting(server.addresses()[0], cuts);
    let mut initiator = InitiatorConfig::new("iqn.2026-01.example:host", Some(NAME));
    initiator.connections = connections;
    // Nothing is gained here by waiting; the larger of both sides' values wins (RFC 7143, 13.15).
    initiator.settings.time_to_wait_s = 0;
    let config = BenchConfig {
        initiator,
        address,
        congestion_control: None,
        lun: 0,
        read_percent,
        io_bytes: IO_BYTES as u32,
        depth: 8,
        random: false,
        duration: Span::from_secs(1),
        seed: 1,
    };
    let report = bench(&config, &GO).unwrap();
    server.stop();
    let file = std::fs::read(&image.0).unwrap();
    (report, made.load(Ordering::SeqCst), file)
}

#[test]
fn interrupted_writes_are_completed_on_the_medium() {
    // In the login; in the middle of the data of the third write or so; much later.
    let (report, made, file) = load(0, 1, &[100, 3 * IO_BYTES - 1000, 100 * IO_BYTES + 17], "lost-writes");
    assert_eq!((report.failed, report.lost, made), (0, 3, 4));
    assert!(report.writes.done > BYTES / IO_BYTES as u64);
    assert!(file
        .chunks(IO_BYTES)
        .all(|chunk| chunk.iter().enumerate().all(|(at, &byte)| byte == (at / 512 + at) as u8)));
}

#[test]
fn one_lost_connection_of_three_reinstates_the_session() {
    // The second; the others are closed with it. Afterwards all three are made anew.
    let (report, made, _) = load(50, 3, &[usize::MAX, 10 * IO_BYTES + 1, usize::MAX], "lost-connection");
    assert_eq!((report.failed, report.lost, made), (0, 1, 6));
    assert!(report.reads.done > 0 && report.writes.done > 0);
}
