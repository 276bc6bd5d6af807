//! Streams over loopback.

use quic::{connect, Control, QuicError, QuicListener, QuicStream, Settings};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(20);
static GO: AtomicBool = AtomicBool::new(false);

/// A certificate and its key, DER.
pub fn certificate() -> (Vec<u8>, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(vec!["elephan".into()]).expect("a certificate");
    (made.cert.der().to_vec(), made.signing_key.serialize_der())
}

pub fn settings(name: &str) -> Settings {
    let algorithm = congestion::find(name).expect("a built-in control");
    Settings::new(Control::new(&algorithm, &BTreeMap::new()).expect("default parameters"))
}

/// The two ends of a stream: that which listened, that which connected.
pub fn pair(settings: &Settings) -> (QuicStream, QuicStream) {
    let (certificate, key) = certificate();
    let ip = Ipv4Addr::LOCALHOST.into();
    let listener = QuicListener::bind(ip, 0..=0, &certificate, &key, settings).expect("a port");
    let connected = connect(listener.address(), &certificate, settings, WITHIN, &GO).expect("a connection");
    (listener.accept(WITHIN, &GO).expect("a stream"), connected)
}

/// Bytes that tell where they belong.
pub fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut x = seed | 1;
    let mut data = Vec::with_capacity(bytes + 8);
    while data.len() < bytes {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        data.extend_from_slice(&x.to_le_bytes());
    }
    data.truncate(bytes);
    data
}

#[test]
fn bytes_arrive_in_both_directions_at_once() {
    let (listened, connected) = pair(&settings("cubic"));
    let (here, there) = (content(6_000_001, 1), content(5_000_003, 2));
    let exchange = |stream: QuicStream, out: Vec<u8>, expected: Vec<u8>| {
        let (mut reader, mut writer) = stream.split();
        let writing = thread::spawn(move || {
            writer.write_all(&out).expect("written");
            writer.finish().expect("all arrived");
        });
        let mut got = vec![];
        reader.read_to_end(&mut got).expect("read");
        writing.join().expect("no panic");
        assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
    };
    let other = {
        let (here, there) = (here.clone(), there.clone());
        thread::spawn(move || exchange(listened, here, there))
    };
    exchange(connected, there, here);
    other.join().expect("no panic");
}

#[test]
fn another_certificate_is_refused() {
    let (certificate, key) = certificate();
    let (another, _) = self::certificate();
    let settings = settings("cubic");
    let ip = Ipv4Addr::LOCALHOST.into();
    let listener = QuicListener::bind(ip, 0..=0, &certificate, &key, &settings).expect("a port");
    let error = connect(listener.address(), &another, &settings, WITHIN, &GO).expect_err("refused");
    assert!(matches!(error, QuicError::Peer(_)), "{error}");
    let none = listener.accept(Duration::from_millis(200), &GO).expect_err("no stream");
    assert!(matches!(none, QuicError::Timeout(_)), "{none}");
    // The listener is still good for the right one.
    connect(listener.address(), &certificate, &settings, WITHIN, &GO).expect("a connection");
    listener.accept(WITHIN, &GO).expect("a stream");
}

#[test]
fn a_key_that_is_none_and_a_port_in_use_are_said() {
    let (certificate, key) = certificate();
    let settings = settings("reno");
    let ip = Ipv4Addr::LOCALHOST.into();
    let wrong = QuicListener::bind(ip, 0..=0, &certificate, b"no key", &settings).err().expect("refused");
    assert!(matches!(wrong, QuicError::Certificate(_)), "{wrong}");
    let first = QuicListener::bind(ip, 0..=0, &certificate, &key, &settings).expect("a port");
    let port = first.address().port();
    let taken = QuicListener::bind(ip, port..=port, &certificate, &key, &settings).err().expect("refused");
    assert!(matches!(taken, QuicError::Port { .. }), "{taken}");
}

#[test]
fn a_blocked_read_ends_when_another_thread_shuts_down() {
    let (mut listened, mut connected) = pair(&settings("cubic"));
    let handle = connected.handle();
    let blocked = thread::spawn(move || connected.read(&mut [0; 10]).expect_err("shut down").kind());
    handle.shutdown();
    assert_eq!(blocked.join().expect("no panic"), ErrorKind::ConnectionAborted);
    assert_eq!(listened.read(&mut [0; 10]).expect("the end"), 0);
    assert_eq!(handle.facts().lost_packets, 0);
    assert!(handle.facts().rtt > Duration::ZERO);
}

#[test]
fn what_was_written_arrives_although_the_stream_was_dropped() {
    let (mut listened, mut connected) = pair(&settings("reno"));
    let data = content(3_000_000, 3);
    connected.write_all(&data).expect("written");
    drop(connected);
    let mut got = vec![];
    listened.read_to_end(&mut got).expect("read");
    assert!(got == data);
}

#[test]
fn what_was_written_arrives_although_the_stream_was_shut_down() {
    let (mut listened, mut connected) = pair(&settings("reno"));
    let data = content(1_000_000, 4);
    connected.write_all(&data).expect("written");
    connected.handle().shutdown();
    assert_eq!(connected.write(b"more").expect_err("shut down").kind(), ErrorKind::ConnectionAborted);
    drop(connected);
    let mut got = vec![];
    listened.read_to_end(&mut got).expect("read");
    assert!(got == data);
}

#[test]
fn nobody_there_is_a_timeout_and_a_stop_is_heeded() {
    let (certificate, _) = certificate();
    let settings = settings("reno");
    // A socket that never answers.
    let silent = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = silent.local_addr().expect("an address");
    let within = Duration::from_millis(300);
    let error = connect(address, &certificate, &settings, within, &GO).expect_err("silence");
    assert!(matches!(error, QuicError::Timeout(_)), "{error}");
    let stopped = connect(address, &certificate, &settings, WITHIN, &AtomicBool::new(true)).expect_err("stopped");
    assert!(matches!(stopped, QuicError::Stopped), "{stopped}");
}

#[test]
fn a_dead_peer_is_noticed_within_the_silence_and_a_quiet_one_is_not_lost() {
    let mut settings = settings("reno");
    settings.silence = Duration::from_millis(800);
    // Both ends are alive and say nothing for longer than the silence: keep-alives hold the connection.
    let (mut listened, mut connected) = pair(&settings);
    #[allow(clippy::disallowed_methods, reason = "the test waits longer than the silence")]
    thread::sleep(Duration::from_millis(1_200));
    connected.write_all(b"!").expect("written");
    assert_eq!(listened.read(&mut [0; 10]).expect("read"), 1);
    // A path that carries nothing more: a relay that stops.
    let relay = Relay::new();
    let (certificate, key) = certificate();
    let ip = Ipv4Addr::LOCALHOST.into();
    let listener = QuicListener::bind(ip, 0..=0, &certificate, &key, &settings).expect("a port");
    let address = relay.start(listener.address());
    let mut connected = connect(address, &certificate, &settings, WITHIN, &GO).expect("a connection");
    let _listened = listener.accept(WITHIN, &GO).expect("a stream");
    relay.stop.store(true, Ordering::Relaxed);
    assert_eq!(connected.read(&mut [0; 1]).expect_err("nobody there").kind(), ErrorKind::TimedOut);
}

/// Carries packets between one client and one server until it is told to stop.
struct Relay {
    stop: Arc<AtomicBool>,
}

impl Relay {
    fn new() -> Relay {
        Relay { stop: Arc::default() }
    }

    fn start(&self, server: SocketAddr) -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = socket.local_addr().expect("an address");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
        let stop = self.stop.clone();
        thread::spawn(move || {
            let (mut client, mut buf) = (None, [0; 65_536]);
            while !stop.load(Ordering::Relaxed) {
                let Ok((bytes, from)) = socket.recv_from(&mut buf) else { continue };
                let to = if from == server { client } else { Some(server) };
                if from != server {
                    client = Some(from);
                }
                if let Some(to) = to {
                    let _ = socket.send_to(&buf[..bytes], to);
                }
            }
        });
        address
    }
}
