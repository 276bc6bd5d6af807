//! Connections to a copy's port that do not have its token: the copy ends well whatever they do.

use crate::copies::{noise, same};
use crate::ends::Pair;
use crate::folders::Folder;
use copy::{CopyOptions, EndReport, EndSpec, Event, Role, TransportSpec};
use copy_net::{run_end, Control, CopyError, ErrorKind};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Duration;

const BYTES: usize = 12_000_000;
/// The copy runs for two seconds at least, so that strangers also connect while it sends.
const RATE_BPS: u64 = 48_000_000;

fn over_quic(mut pair: Pair) -> Pair {
    for end in [&mut pair.send, &mut pair.receive] {
        let (congestion_control, source, parameters) = (Some("cubic".into()), None, BTreeMap::new());
        end.transport = TransportSpec::Quic { congestion_control, source, parameters, window_bytes: Some(8 << 20) };
    }
    pair
}

struct Copied {
    listened: Result<EndReport, CopyError>,
    connected: Result<EndReport, CopyError>,
    /// Connections that the listening end refused.
    refused: u64,
}

/// Runs the listening end, then `before`, then the connecting end with `during` beside it, which ends when the flag is
/// set.
fn copied(pair: &Pair, before: impl FnOnce(u16), during: &(dyn Fn(u16, &AtomicBool) + Sync)) -> Copied {
    let (listen, connect) = if pair.send.tls.as_ref().unwrap().key.is_some() {
        (&pair.send, &pair.receive)
    } else {
        (&pair.receive, &pair.send)
    };
    let (give, port) = channel();
    let (refused, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let refused = &refused;
        let listening = scope.spawn(move || {
            run_end(listen, &Control::default(), &mut |event| match event {
                Event::Listening { port } => give.send(port).unwrap(),
                Event::Refused { connections } => refused.store(connections, Relaxed),
                _ => {}
            })
        });
        let port = port.recv_timeout(Duration::from_secs(30)).unwrap();
        before(port);
        let is_over = &is_over;
        let strangers = scope.spawn(move || during(port, is_over));
        let connected = run_end(&EndSpec { port, ..connect.clone() }, &Control::default(), &mut |_| {});
        let listened = listening.join().unwrap();
        is_over.store(true, Relaxed);
        strangers.join().unwrap();
        Copied { listened, connected, refused: refused.load(Relaxed) }
    })
}

/// The other end with another token.
fn with_another_token(pair: &Pair, port: u16) -> CopyError {
    let connect = if pair.send.tls.as_ref().unwrap().key.is_some() { &pair.receive } else { &pair.send };
    let spec = EndSpec { token: copy::hex(&[8; 32]), port, ..connect.clone() };
    run_end(&spec, &Control::default(), &mut |_| {}).unwrap_err()
}

/// Connects and sends bytes that are no TLS, or an incomplete TLS record.
fn send_garbage(port: u16, number: u32) -> std::io::Result<TcpStream> {
    let mut stranger = TcpStream::connect(("127.0.0.1", port))?;
    match number % 4 {
        0 => stranger.write_all(&[0x47; 300])?,
        // A record with 16,000 bytes of a ClientHello, of which few arrive.
        1 => stranger.write_all(&[22, 3, 1, 0x3e, 0x80, 1, 0, 0x3e, 0x7c, 0, 0])?,
        // An alert.
        2 => stranger.write_all(&[21, 3, 3, 0, 2, 2, 40])?,
        _ => {}
    }
    Ok(stranger)
}

fn pause(time: Duration) {
    let (_open, never) = channel::<()>();
    assert!(never.recv_timeout(time).is_err());
}

fn pair_of(folder: &Folder, turned: bool, quic: bool) -> Pair {
    fs::create_dir_all(folder.join("from")).unwrap();
    fs::write(folder.join("from/file"), noise(3, BYTES)).unwrap();
    let mut pair = Pair::new(&[&folder.text("from/")], &folder.join("to"), CopyOptions::default());
    pair.send.rate_bps = Some(RATE_BPS);
    (pair.send.connect_s, pair.receive.connect_s) = (20.0, 20.0);
    let pair = if quic { over_quic(pair) } else { pair };
    if turned {
        pair.turned()
    } else {
        pair
    }
}

fn holds(folder: &Folder, copied: Copied) {
    let (listened, connected) = (copied.listened.expect("listening end"), copied.connected.expect("connecting end"));
    assert_eq!(listened.root, connected.root);
    assert!(copied.refused > 0);
    same(&folder.join("from"), &folder.join("to"));
}

#[test]
fn garbage_and_wrong_tokens_before_the_other_end_do_not_end_a_copy() {
    for turned in [false, true] {
        let folder = Folder::new("strangers-before");
        let pair = pair_of(&folder, turned, false);
        let before = |port| {
            // Still open when the copy ends.
            std::mem::forget((0..40).map(|number| send_garbage(port, number).unwrap()).collect::<Vec<_>>());
            for _ in 0..7 {
                assert_eq!(with_another_token(&pair, port).kind, ErrorKind::Token);
            }
        };
        holds(&folder, copied(&pair, before, &|_, _| ()));
    }
}

#[test]
fn a_flood_from_the_address_of_the_other_end_does_not_end_a_copy() {
    for turned in [false, true] {
        let folder = Folder::new("strangers-flood");
        let pair = pair_of(&folder, turned, false);
        let made = AtomicU64::new(0);
        let flood = |port: u16, is_over: &AtomicBool| {
            let mut open = std::collections::VecDeque::new();
            let mut number = 0;
            while !is_over.load(Relaxed) {
                number += 1;
                // As many as a process may have stay open.
                if open.len() >= 300 {
                    drop(open.pop_front());
                }
                open.extend(send_garbage(port, number));
                made.fetch_add(1, Relaxed);
            }
        };
        let idle = |port| {
            let mut open: Vec<_> = (0..600).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
            // The oldest are displaced by then.
            open[599].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            assert!(open[599].read(&mut [0]).is_err());
            std::mem::forget(open);
        };
        let copied = copied(&pair, idle, &|port, is_over| {
            std::thread::scope(|scope| {
                scope.spawn(|| flood(port, is_over));
                flood(port, is_over);
            });
        });
        let made = made.load(Relaxed);
        assert!(made > 2000, "{made} connections are no flood");
        assert!(copied.refused > 1000, "{} of {made} refused", copied.refused);
        holds(&folder, copied);
    }
}

#[test]
fn strangers_at_a_port_of_quic_do_not_end_a_copy() {
    for turned in [false, true] {
        let folder = Folder::new("strangers-quic");
        let pair = pair_of(&folder, turned, true);
        let certificate = copy::unhex(&pair.send.tls.as_ref().unwrap().certificate).unwrap();
        let stranger = |port: u16, within: Duration| {
            let algorithm = congestion::find("cubic").unwrap();
            let settings = quic::Settings::new(quic::Control::new(&algorithm, &BTreeMap::new()).unwrap());
            let peer = ([127, 0, 0, 1], port).into();
            quic::connect(peer, &certificate, &settings, within, &AtomicBool::new(false))
        };
        let datagrams = |port: u16| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            for length in [1, 40, 1200, 1452] {
                // A long header of version 1, and bytes of no version.
                let mut datagram = vec![0x5a; length];
                let _ = socket.send_to(&datagram, ("127.0.0.1", port));
                datagram[0] = 0xc3;
                let _ = socket.send_to(&datagram, ("127.0.0.1", port));
            }
        };
        let before = |port| {
            datagrams(port);
            for _ in 0..7 {
                assert_eq!(with_another_token(&pair, port).kind, ErrorKind::Token);
            }
            // Streams that say nothing, and handshakes that stop.
            std::mem::forget((0..40).map(|_| stranger(port, Duration::from_secs(5)).unwrap()).collect::<Vec<_>>());
            (0..100).for_each(|_| drop(stranger(port, Duration::from_millis(1))));
        };
        let during = |port: u16, is_over: &AtomicBool| {
            while !is_over.load(Relaxed) {
                datagrams(port);
                drop(stranger(port, Duration::from_millis(1)));
                drop(stranger(port, Duration::from_secs(5)));
                // Each has an endpoint and a socket in this process, which linger for seconds.
                pause(Duration::from_millis(50));
            }
        };
        holds(&folder, copied(&pair, before, &during));
    }
}

#[test]
fn another_token_and_another_certificate_end_the_connecting_end_at_once() {
    for quic in [false, true] {
        let folder = Folder::new("strangers-wrong");
        let pair = pair_of(&folder, false, quic);
        let before = |port| {
            let begin_ns = path_net::monotonic_ns();
            let error = with_another_token(&pair, port);
            assert_eq!(error.kind, ErrorKind::Token, "{error}");
            assert!(error.text.contains("refuses the token"), "{error}");
            let mut other = pair.send.clone();
            other.tls = Pair::new(&["/another"], &folder.join("to"), CopyOptions::default()).send.tls;
            let error = run_end(&EndSpec { port, ..other }, &Control::default(), &mut |_| {}).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Protocol, "{error}");
            assert!(path_net::monotonic_ns() - begin_ns < 5_000_000_000);
        };
        assert_eq!(pair.send.role, Role::Send);
        holds(&folder, copied(&pair, before, &|_, _| ()));
    }
}
