//! Connections made and taken.

use crate::control::Shown;
use crate::error::QuicError;
use crate::runtime::{self, Shared};
use crate::settings::{Settings, LARGEST_PAYLOAD};
use crate::socket::PartialSends;
use crate::stream::{QuicStream, GREETING};
use crate::{socket, tls};
use admission::{Limits, Pending};
use quinn::{ConnectionError, Endpoint, EndpointConfig, Incoming, Runtime, TokioRuntime, VarInt};
use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{timeout, Instant};
use units::{Span, Time};

/// Handshakes at the same time; a further one displaces another. A copy opens up to 257 streams at once.
const HANDSHAKES: usize = 512;
/// From so many on a peer has to show that it receives at its address (RFC 9000, 8.1.2): forged addresses would
/// otherwise displace it.
const UNVALIDATED: usize = HANDSHAKES / 4;
/// Time for one, at most.
const HANDSHAKE: Span = Span::from_secs(10);
/// Streams that are ready and not taken yet.
const READY: usize = 64;
/// Time within which `stop` is heeded.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// A UDP port at which streams arrive.
pub struct QuicListener {
    endpoint: Endpoint,
    address: SocketAddr,
    ready: Mutex<Receiver<QuicStream>>,
    taking: JoinHandle<()>,
    runtime: Arc<Shared>,
}

impl QuicListener {
    /// Listens at `ip` on the first free port of `ports`, with the certificate and its key, DER (PKCS #8).
    ///
    /// # Errors
    /// No port is free, or the certificate is none.
    pub fn bind(
        ip: IpAddr,
        ports: RangeInclusive<u16>,
        certificate: &[u8],
        key: &[u8],
        settings: &Settings,
    ) -> Result<QuicListener, QuicError> {
        let server = tls::server(certificate, key)?;
        let socket = bind_one(ip, &ports, settings.socket_buffer_bytes)?;
        let io = |error| QuicError::Io { doing: "listening", error };
        let address = socket.local_addr().map_err(io)?;
        let runtime = runtime::shared()?;
        let endpoint = endpoint(&runtime, socket, Some(server.clone()))?;
        let (sender, ready) = mpsc::channel(READY);
        let taking = take_all(endpoint.clone(), server, settings.clone(), sender, Arc::downgrade(&runtime));
        let taking = runtime.handle().spawn(taking);
        Ok(QuicListener { endpoint, address, ready: Mutex::new(ready), taking, runtime })
    }

    /// Address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next stream, from a peer that knows the certificate; nothing more is known of it.
    ///
    /// # Errors
    /// None came within `within`, or `stop` was set.
    pub fn accept(&self, within: Duration, stop: &AtomicBool) -> Result<QuicStream, QuicError> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        self.runtime.handle().block_on(stoppable(within, stop, ready.recv()))?.ok_or(QuicError::Stopped)
    }
}

impl Drop for QuicListener {
    fn drop(&mut self) {
        // Streams that were taken live on.
        self.endpoint.set_server_config(None);
        self.taking.abort();
    }
}

/// Connects to `peer`, which must have exactly this certificate, DER.
///
/// # Errors
/// It does not answer within `within`, is another, or `stop` was set.
pub fn connect(
    peer: SocketAddr,
    certificate: &[u8],
    settings: &Settings,
    within: Duration,
    stop: &AtomicBool,
) -> Result<QuicStream, QuicError> {
    let mut client = tls::client(certificate)?;
    let (transport, shown) = settings.transport(peer.ip(), socket::route_mtu(peer));
    client.transport_config(Arc::new(transport));
    let runtime = runtime::shared()?;
    let local = settings.local.unwrap_or_else(|| socket::any(peer.ip()));
    let socket = bind_one(local, &(0..=0), settings.socket_buffer_bytes)?;
    let endpoint = endpoint(&runtime, socket, None)?;
    let making = async {
        let failed = |error: ConnectionError| failure(&error);
        let connecting =
            endpoint.connect_with(client, peer, tls::SERVER_NAME).map_err(|e| QuicError::Connection(e.to_string()))?;
        let connection = connecting.await.map_err(failed)?;
        let (mut send, recv) = connection.open_bi().await.map_err(failed)?;
        send.write_all(&[GREETING]).await.map_err(|e| QuicError::Connection(e.to_string()))?;
        Ok((connection, (send, recv)))
    };
    let (connection, halves) = runtime.handle().block_on(stoppable(within, stop, making))??;
    Ok(QuicStream::new(runtime, endpoint, connection, halves, (shown, settings.window())))
}

/// Waits for `future`, but not beyond `within` nor for long once `stop` is set.
async fn stoppable<T>(within: Duration, stop: &AtomicBool, future: impl Future<Output = T>) -> Result<T, QuicError> {
    let mut future = pin!(future);
    let deadline = Instant::now() + within;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(QuicError::Stopped);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        match timeout(left.min(STOP_INTERVAL), &mut future).await {
            Ok(result) => return Ok(result),
            Err(_) if left <= STOP_INTERVAL => return Err(QuicError::Timeout(within)),
            Err(_) => {}
        }
    }
}

fn bind_one(ip: IpAddr, ports: &RangeInclusive<u16>, buffer_bytes: usize) -> Result<UdpSocket, QuicError> {
    let mut refused = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for port in ports.clone() {
        match socket::bind((ip, port).into(), buffer_bytes) {
            Ok(socket) => return Ok(socket),
            Err(error) => refused = error,
        }
    }
    Err(QuicError::Port { ports: format!("{} to {} at {ip}", ports.start(), ports.end()), error: refused })
}

fn endpoint(runtime: &Shared, socket: UdpSocket, server: Option<quinn::ServerConfig>) -> Result<Endpoint, QuicError> {
    let _entered = runtime.handle().enter();
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(LARGEST_PAYLOAD).expect("within what a UDP packet holds");
    let io = |error| QuicError::Io { doing: "starting QUIC", error };
    let socket = PartialSends(TokioRuntime.wrap_udp_socket(socket).map_err(io)?);
    Endpoint::new_with_abstract_socket(config, server, Arc::new(socket), Arc::new(TokioRuntime)).map_err(io)
}

/// Handshakes in progress, with the hold on their tasks.
struct Handshakes {
    pending: Pending<u64>,
    tasks: BTreeMap<u64, AbortHandle>,
}

impl Handshakes {
    fn abort(&mut self, number: u64) {
        if let Some(task) = self.tasks.remove(&number) {
            task.abort();
        }
    }
}

/// Takes connections until the listener is dropped.
async fn take_all(
    endpoint: Endpoint,
    server: quinn::ServerConfig,
    settings: Settings,
    sender: Sender<QuicStream>,
    runtime: Weak<Shared>,
) {
    let limits = Limits { total: HANDSHAKES, per_address: HANDSHAKES, time: HANDSHAKE };
    // Peers must not predict which handshake is displaced: the hash has keys of this process's own.
    let seed = RandomState::new().hash_one(0);
    let handshakes = Mutex::new(Handshakes { pending: Pending::new(limits, seed), tasks: BTreeMap::new() });
    let handshakes = Arc::new(handshakes);
    let begin = Instant::now();
    let mut number = 0;
    while let Some(incoming) = endpoint.accept().await {
        let is_crowded = locked(&handshakes).pending.len() >= UNVALIDATED;
        if is_crowded && !incoming.remote_address_validated() && incoming.may_retry() {
            let _ = incoming.retry();
            continue;
        }
        let (endpoint, server, settings) = (endpoint.clone(), server.clone(), settings.clone());
        let (sender, runtime, all) = (sender.clone(), runtime.clone(), handshakes.clone());
        let address = incoming.remote_address().ip();
        number += 1;
        let own = number;
        let mut handshakes = locked(&handshakes);
        let task = tokio::spawn(async move {
            let within = settings.silence.min(Duration::from_nanos(HANDSHAKE.0));
            // A peer that does not come through is its own loss.
            let taking = timeout(within, take(incoming, server, &settings));
            if let (Ok(Ok(taken)), Some(runtime)) = (taking.await, runtime.upgrade()) {
                let (connection, halves, shown) = taken;
                let stream = QuicStream::new(runtime, endpoint, connection, halves, (shown, settings.window()));
                let _ = sender.send(stream).await;
            }
            let mut all = locked(&all);
            all.pending.remove(&own);
            all.tasks.remove(&own);
        });
        handshakes.tasks.insert(own, task.abort_handle());
        let now = Time(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        if let Some(displaced) = handshakes.pending.admit(now, own, address, |_| ()) {
            handshakes.abort(displaced);
        }
    }
}

fn locked(handshakes: &Mutex<Handshakes>) -> MutexGuard<'_, Handshakes> {
    handshakes.lock().unwrap_or_else(PoisonError::into_inner)
}

type Taken = (quinn::Connection, (quinn::SendStream, quinn::RecvStream), Arc<Shown>);

/// The handshake and the first byte.
async fn take(
    incoming: Incoming,
    mut server: quinn::ServerConfig,
    settings: &Settings,
) -> Result<Taken, ConnectionError> {
    // A socket of IPv6 has IPv4's peers too.
    let peer = SocketAddr::new(incoming.remote_address().ip().to_canonical(), incoming.remote_address().port());
    let (mut transport, shown) = settings.transport(peer.ip(), socket::route_mtu(peer));
    if let Some(bytes) = settings.stranger_window_bytes {
        transport.receive_window(VarInt::from_u64(bytes).unwrap_or(VarInt::MAX).min(settings.window()));
    }
    server.transport_config(Arc::new(transport));
    let connection = incoming.accept_with(Arc::new(server))?.await?;
    let (send, mut recv) = connection.accept_bi().await?;
    let mut greeting = [0];
    match recv.read_exact(&mut greeting).await {
        Ok(()) if greeting[0] == GREETING => Ok((connection, (send, recv), shown)),
        _ => {
            connection.close(VarInt::from_u32(1), b"no greeting");
            Err(connection.closed().await)
        }
    }
}

fn failure(error: &ConnectionError) -> QuicError {
    match error {
        // Codes of TLS alerts (RFC 9001, 4.8): the certificate or the protocol is another.
        ConnectionError::TransportError(e) if (0x100..0x200).contains(&u64::from(e.code)) => {
            QuicError::Peer(error.to_string())
        }
        ConnectionError::ConnectionClosed(e) if (0x100..0x200).contains(&u64::from(e.error_code)) => {
            QuicError::Peer(error.to_string())
        }
        _ => QuicError::Connection(error.to_string()),
    }
}
