//! Target and initiator over real sockets on the loopback, on a file.

use crate::common::{Image, BYTES, NAME};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage::iscsi::{Credentials, Digest, InitiatorConfig, Secret, TargetConfig};
use storage_net::{bench, BenchConfig, LunFile, Server, ServerConfig};
use units::Span;

fn server(image: &Image, target: TargetConfig) -> Server {
    let lun = LunFile { path: image.0.clone(), read_only: false, shared: false, block_bytes: 512 };
    let portals = vec!["127.0.0.1:0".parse().unwrap()];
    Server::start(ServerConfig {
        target,
        luns: vec![lun],
        portals,
        congestion_control: None,
        max_connections: 16,
        memory_bytes: 256 << 20,
    })
    .unwrap()
}

fn load(server: &Server, read_percent: u32) -> BenchConfig {
    BenchConfig {
        initiator: InitiatorConfig::new("iqn.2026-01.example:host", Some(NAME)),
        address: server.addresses()[0],
        congestion_control: None,
        lun: 0,
        read_percent,
        io_bytes: 65_536,
        depth: 8,
        random: false,
        duration: Span::from_millis(300),
        seed: 1,
    }
}

/// Waits so many ms.
fn rest(ms: i32) {
    // SAFETY: no entries are read.
    unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
}

static GO: AtomicBool = AtomicBool::new(false);

#[test]
fn a_load_writes_its_pattern_with_digests_over_several_connections() {
    let image = Image::new("pattern");
    let mut server = server(&image, TargetConfig::new(NAME));
    let mut config = load(&server, 0);
    config.initiator.connections = 3;
    config.initiator.settings.header_digest = Digest::Required;
    config.initiator.settings.data_digest = Digest::Required;
    config.duration = Span::from_secs(1);
    let report = bench(&config, &GO).unwrap();
    assert!(report.writes.done >= BYTES / 65_536, "{report:?}");
    assert_eq!((report.failed, report.lost, report.capacity_bytes), (0, 0, BYTES));
    server.stop();
    let file = std::fs::read(&image.0).unwrap();
    assert!(file.chunks(65_536).all(|chunk| chunk.iter().enumerate().all(|(at, &byte)| byte == (at / 512 + at) as u8)));
}

#[test]
fn mutual_chap_works_over_sockets() {
    let secret = |name: &str, secret: &str| Secret { name: name.into(), secret: secret.into() };
    let both = Credentials { initiator: secret("host", "hosthosthost"), target: Some(secret("disk", "diskdiskdisk")) };
    let image = Image::new("chap");
    let server = server(&image, TargetConfig { chap: Some(both.clone()), ..TargetConfig::new(NAME) });
    let error = bench(&load(&server, 100), &GO).unwrap_err().to_string();
    assert!(error.contains("status 0201"), "{error}");
    let mut config = load(&server, 100);
    (config.initiator.chap, config.initiator.entropy) = (Some(both), storage_net::entropy());
    assert!(bench(&config, &GO).unwrap().reads.done > 0);
}

#[test]
fn malformed_pdus_close_only_their_connection() {
    let image = Image::new("bad");
    let server = server(&image, TargetConfig::new(NAME));
    let address = server.addresses()[0];
    let peers = std::thread::spawn(move || {
        for round in 0..30_u8 {
            let mut peer = TcpStream::connect(address).unwrap();
            let bytes: Vec<u8> = (0..4096_u32).map(|at| (at * 7 + u32::from(round) * 13) as u8).collect();
            // The target may have closed the connection before all of it is written.
            let _ = peer.write_all(&bytes[usize::from(round)..]);
            peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut rest = Vec::new();
            let ended = peer.read_to_end(&mut rest);
            let reset = ended.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
            assert!(ended.is_ok() || reset, "round {round}: the connection is still open");
        }
    });
    let report = bench(&load(&server, 50), &GO).unwrap();
    peers.join().unwrap();
    assert_eq!((report.failed, report.lost), (0, 0), "{report:?}");
    assert!(report.reads.done > 0 && report.writes.done > 0);
}

#[test]
fn start_errors_name_the_file_or_portal() {
    let target = || TargetConfig::new(NAME);
    let lun = |path: PathBuf| LunFile { path, read_only: false, shared: false, block_bytes: 512 };
    let portals = vec!["127.0.0.1:0".parse().unwrap()];
    let config = ServerConfig {
        target: target(),
        luns: vec![lun("no-such.img".into())],
        portals,
        congestion_control: None,
        max_connections: 1,
        memory_bytes: 256 << 20,
    };
    let error = Server::start(config).err().unwrap().to_string();
    assert!(error.contains("no-such.img"), "{error}");
    let image = Image::new("named");
    let first = server(&image, target());
    let portals = vec![first.addresses()[0]];
    let other = Image::new("named-other");
    let config = ServerConfig {
        target: target(),
        luns: vec![lun(other.0.clone())],
        portals,
        congestion_control: None,
        max_connections: 1,
        memory_bytes: 256 << 20,
    };
    let error = Server::start(config).err().unwrap().to_string();
    assert!(error.contains(&first.addresses()[0].to_string()), "{error}");
}

#[test]
fn a_load_that_ends_early_reports_its_measurements() {
    for is_told in [false, true] {
        let image = Image::new(if is_told { "told" } else { "gone" });
        let mut server = server(&image, TargetConfig::new(NAME));
        let mut config = load(&server, 100);
        config.duration = Span::from_secs(3600);
        config.initiator.attempts = 1;
        let stop = AtomicBool::new(false);
        let report = std::thread::scope(|scope| {
            let load = scope.spawn(|| bench(&config, &stop));
            rest(500);
            if is_told {
                stop.store(true, Ordering::Relaxed);
            } else {
                server.stop();
            }
            load.join().unwrap().unwrap()
        });
        assert!(report.reads.done > 0 && report.elapsed_ns > 0, "{report:?}");
        assert_eq!(report.ended.as_deref() == Some("told to stop"), is_told, "{report:?}");
        assert!(report.ended.is_some());
        assert_eq!(report.failed, 0);
    }
}

#[test]
fn a_connection_attempt_without_answer_can_be_stopped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // SAFETY: listen takes no pointers. Who is beyond the queue gets no answer to its SYN.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let _first = TcpStream::connect(address).unwrap();
    let image = Image::new("no-answer");
    let config = BenchConfig { address, ..load(&server(&image, TargetConfig::new(NAME)), 100) };
    let stop = AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        let load = scope.spawn(|| bench(&config, &stop));
        rest(300);
        assert!(!load.is_finished());
        stop.store(true, Ordering::Relaxed);
        let ended = (0..100).any(|_| {
            rest(50);
            load.is_finished()
        });
        // The kernel would try for two minutes.
        assert!(ended);
        load.join().unwrap().unwrap_err()
    });
    assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
}
