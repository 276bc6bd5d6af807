//! A bulk transfer over a modelled path in virtual time: by quinn's protocol core and by the simulator's TCP.

use congestion::{Algorithm, Controller};
use link::{Framing, Link, LinkConfig, LossModel, Pacers, Packet, QueueConfig};
use quic::{Control, Shown};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId, TransportConfig, VarInt,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
#[allow(clippy::disallowed_types, reason = "quinn names moments by it; here each is the first plus virtual time")]
use std::time::Instant;
use tcp::segment::Segment;
use units::{Rate, Span, Time};

/// Headers of UDP and IPv4, bytes.
const HEADERS: usize = 28;
/// UDP payload in packets of 1500 bytes.
const PAYLOAD: u16 = 1_472;
/// Window of QUIC's flow control, bytes.
const FLOW_WINDOW: u32 = 64 << 20;
/// Time between two looks at the sender, ns.
const SAMPLE_NS: u64 = 10_000_000;

/// A path with a bottleneck in the direction of the data.
#[derive(Clone, Copy)]
pub struct Path {
    pub rate: Rate,
    pub rtt: Span,
    pub queue_bytes: u64,
    /// Probability of loss in 10^-12.
    pub loss_e12: u64,
    pub seed: u64,
    /// QUIC's ends look at arrivals and timers so seldom, ns: as threads of a busy host.
    pub looks_ns: u64,
}

/// The sender at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Window, segments.
    pub cwnd: f64,
    /// Bytes that arrived and were read in order.
    pub received: u64,
}

/// A transfer, looked at every 10 ms.
#[derive(Debug)]
pub struct Transfer {
    pub samples: Vec<Sample>,
    /// Packets judged lost.
    pub lost: u64,
    /// Packets that the path lost.
    pub dropped: u64,
}

impl Transfer {
    /// Goodput from one second to another, bit/s.
    pub fn goodput(&self, from_s: usize, to_s: usize) -> f64 {
        let at = |s: usize| self.samples[(s * 100).min(self.samples.len() - 1)].received as f64;
        (at(to_s) - at(from_s)) * 8.0 / (to_s - from_s) as f64
    }

    /// Mean window over the same time, segments.
    pub fn mean_cwnd(&self, from_s: usize, to_s: usize) -> f64 {
        let part = &self.samples[from_s * 100..to_s * 100];
        part.iter().map(|sample| sample.cwnd).sum::<f64>() / part.len() as f64
    }
}

struct Flying<T> {
    bytes: u32,
    content: T,
}

impl<T> Packet for Flying<T> {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flow_hash(&self) -> u64 {
        0
    }
    fn is_ect(&self) -> bool {
        false
    }
    fn mark_ce(&mut self) {}
}

struct Lines<T> {
    forward: Link<Flying<T>>,
    back: Link<Flying<T>>,
    pacers: Pacers,
}

impl<T> Lines<T> {
    fn new(path: &Path) -> Lines<T> {
        let config = |rate, limit, loss| LinkConfig {
            rate,
            framing: Framing::default(),
            delay: Span(path.rtt.0 / 2),
            queue: QueueConfig::DropTail { limit_packets: None, limit_bytes: limit },
            loss,
            jitter: None,
            policer: None,
            batching: None,
        };
        let loss = match path.loss_e12 {
            0 => LossModel::None,
            probability_e12 => LossModel::Independent { probability_e12 },
        };
        Lines {
            forward: Link::fixed(&config(path.rate, Some(path.queue_bytes), loss), path.seed),
            back: Link::fixed(&config(Rate(10_000_000_000), None, LossModel::None), path.seed),
            pacers: Pacers::default(),
        }
    }

    fn put(&mut self, now: u64, forward: bool, bytes: u32, content: T) {
        let line = if forward { &mut self.forward } else { &mut self.back };
        // A packet that the queue refuses is gone.
        let _ = line.handle_packet(Time(now), Flying { bytes, content }, &mut self.pacers);
    }

    fn due(&self) -> u64 {
        self.forward.poll_timeout().0.min(self.back.poll_timeout().0)
    }

    /// The next packet that has arrived by `now`, and whether it went forward.
    fn take(&mut self, now: u64) -> Option<(bool, T)> {
        loop {
            let forward = self.forward.poll_timeout().0 <= now;
            if !forward && self.back.poll_timeout().0 > now {
                return None;
            }
            let line = if forward { &mut self.forward } else { &mut self.back };
            if let Some(packet) = line.handle_event(Time(now), &mut self.pacers).delivered {
                return Some((forward, packet.content));
            }
        }
    }
}

/// One end of a QUIC connection.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
}

#[allow(clippy::disallowed_types, reason = "quinn names moments by it")]
impl End {
    fn handle(&mut self, now: Instant, data: &[u8]) {
        let mut buf = vec![];
        match self.endpoint.handle(now, self.peer, None, None, data.into(), &mut buf) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                let (_, connection) = self.connection.as_mut().expect("connected");
                connection.handle_event(event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut buf, None);
                self.connection = Some(accepted.map_err(|e| e.cause).expect("accepted"));
            }
            _ => {}
        }
    }

    /// Puts on the line what may be sent.
    fn flush(&mut self, now: Instant, ns: u64, forward: bool, lines: &mut Lines<Vec<u8>>) {
        let Some((handle, connection)) = self.connection.as_mut() else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let mut buf = vec![];
        while let Some(transmit) = connection.poll_transmit(now, 10, &mut buf) {
            for packet in buf[..transmit.size].chunks(transmit.segment_size.unwrap_or(transmit.size)) {
                lines.put(ns, forward, (packet.len() + HEADERS) as u32, packet.to_vec());
            }
            buf.clear();
        }
    }

    fn due(&mut self) -> Option<Instant> {
        self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout())
    }
}

/// Bulk data over QUIC under `algorithm` for `seconds`.
#[allow(clippy::disallowed_types, reason = "quinn names moments by it")]
pub fn quic_bulk(algorithm: &Algorithm, path: &Path, seconds: u64) -> Transfer {
    #[allow(clippy::disallowed_methods, reason = "the first moment may be any")]
    let start = Instant::now();
    let (mut client, mut server, shown) = ends(algorithm, start);
    let mut lines: Lines<Vec<u8>> = Lines::new(path);
    let (mut ns, mut received, mut samples) = (0, 0, vec![]);
    let (mut stream, mut arriving): (Option<StreamId>, Option<StreamId>) = (None, None);
    let data = vec![7; 1 << 20];
    while ns < seconds * 1_000_000_000 {
        let now = start + Duration::from_nanos(ns);
        let to_ns = |at: Instant| at.saturating_duration_since(start).as_nanos() as u64;
        for end in [&mut client, &mut server] {
            if end.due().is_some_and(|due| to_ns(due) <= ns) {
                end.connection.as_mut().expect("it has a timer").1.handle_timeout(now);
            }
        }
        while let Some((forward, packet)) = lines.take(ns) {
            if forward { &mut server } else { &mut client }.handle(now, &packet);
        }
        if let Some((_, connection)) = client.connection.as_mut() {
            while let Some(event) = connection.poll() {
                if matches!(event, Event::Connected) {
                    stream = connection.streams().open(Dir::Bi);
                }
                assert!(!matches!(event, Event::ConnectionLost { .. }), "{event:?}");
            }
            if let Some(id) = stream {
                while connection.send_stream(id).write(&data).is_ok() {}
            }
        }
        if let Some((_, connection)) = server.connection.as_mut() {
            while let Some(event) = connection.poll() {
                if matches!(event, Event::Stream(StreamEvent::Opened { .. })) {
                    arriving = connection.streams().accept(Dir::Bi);
                }
            }
            if let Some(id) = arriving {
                let mut stream = connection.recv_stream(id);
                let mut chunks = stream.read(true).expect("open");
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    received += chunk.bytes.len() as u64;
                }
                let _ = chunks.finalize();
            }
        }
        client.flush(now, ns, true, &mut lines);
        server.flush(now, ns, false, &mut lines);
        while samples.len() as u64 * SAMPLE_NS <= ns {
            samples.push(Sample { cwnd: shown.window() as f64 / f64::from(PAYLOAD), received });
        }
        let timers = [client.due(), server.due()].into_iter().flatten().map(to_ns).min().unwrap_or(u64::MAX);
        let sample_ns = samples.len() as u64 * SAMPLE_NS;
        let next = lines.due().min(timers).min(sample_ns).next_multiple_of(path.looks_ns);
        ns = next.min(sample_ns).max(ns + 1);
    }
    let lost = client.connection.expect("connected").1.stats().path.lost_packets;
    Transfer { samples, lost, dropped: lines.forward.stats().dropped() }
}

#[allow(clippy::disallowed_types, reason = "quinn names moments by it")]
fn ends(algorithm: &Algorithm, start: Instant) -> (End, End, Arc<Shown>) {
    let made = rcgen::generate_simple_self_signed(vec!["elephan".into()]).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let control = Control::new(algorithm, &BTreeMap::new()).expect("default parameters");
    let (control, shown) = control.fresh();
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(control))
        .initial_mtu(PAYLOAD)
        .mtu_discovery_config(None)
        .stream_receive_window(FLOW_WINDOW.into())
        .receive_window(FLOW_WINDOW.into())
        .send_window(FLOW_WINDOW.into())
        .max_concurrent_bidi_streams(VarInt::from_u32(1));
    let transport = Arc::new(transport);

    let tls = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|b| b.with_no_client_auth().with_single_cert(vec![certificate.clone()], key))
        .expect("a server");
    let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).expect("TLS 1.3")));
    server.transport_config(transport.clone());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("TLS 1.3")));
    client.transport_config(transport);

    let (here, there): (SocketAddr, SocketAddr) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into());
    let config = Arc::new(EndpointConfig::default());
    let mut connecting = Endpoint::new(config.clone(), None, false, Some([1; 32]));
    let listening = Endpoint::new(config, Some(Arc::new(server)), false, Some([2; 32]));
    let connection = connecting.connect(start, client, there, "elephan").expect("connecting");
    let client = End { endpoint: connecting, connection: Some(connection), peer: there };
    (client, End { endpoint: listening, connection: None, peer: here }, shown)
}

/// Bulk data over the simulator's TCP under `algorithm` for `seconds`.
pub fn tcp_bulk(algorithm: &Algorithm, path: &Path, seconds: u64) -> Transfer {
    let make = || Controller::new(algorithm, &BTreeMap::new()).expect("default parameters");
    let mut client = tcp::Endpoint::new_client(tcp::config::Config::default(), make(), Time::ZERO);
    let mut server = tcp::Endpoint::new_server(tcp::config::Config::default(), make(), Time::ZERO);
    let mut lines: Lines<Segment> = Lines::new(path);
    let (mut ns, mut samples) = (0, vec![]);
    client.connect(Time::ZERO);
    client.write(Time::ZERO, u64::MAX >> 8);
    let mut segment = Segment::default();
    while ns < seconds * 1_000_000_000 {
        let now = Time(ns);
        for end in [&mut client, &mut server] {
            if end.poll_timeout() <= now {
                end.handle_timeout(now);
            }
        }
        loop {
            while client.poll_transmit(now, &mut segment) {
                lines.put(ns, true, segment.packet_bytes(), segment);
            }
            while server.poll_transmit(now, &mut segment) {
                lines.put(ns, false, segment.packet_bytes(), segment);
            }
            match lines.take(ns) {
                Some((true, segment)) => server.handle_segment(now, &segment),
                Some((false, segment)) => client.handle_segment(now, &segment),
                None => break,
            }
        }
        while samples.len() as u64 * SAMPLE_NS <= ns {
            let cwnd = f64::from(client.controller().sock().snd_cwnd);
            samples.push(Sample { cwnd, received: server.bytes_received() });
        }
        let timers = client.poll_timeout().0.min(server.poll_timeout().0);
        ns = lines.due().min(timers).min(samples.len() as u64 * SAMPLE_NS).max(ns + 1);
    }
    let lost = u64::from(client.controller().sock().lost);
    Transfer { samples, lost, dropped: lines.forward.stats().dropped() }
}
