//! QUIC as a transport of the engine: one connection per stream, under a control of `congestion/`.

use crate::error::{CopyError, ErrorKind};
use crate::transport::{Connection, Dialer, Handle, Incoming, Listener, StreamFacts};
use congestion::Algorithm;
use copy::{EndSpec, TlsSpec, TransportSpec};
use quic::{Control, QuicError, QuicHandle, QuicListener, QuicStream, Settings};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are kept for a peer before it has shown the token, which is 45 bytes long.
const STRANGER_BYTES: u64 = 4096;
/// Time for the last messages.
const SETTLE: Duration = Duration::from_secs(5);

/// Binds the port of the end that listens, on all addresses unless `spec.local` names one. Waits end when `over` is
/// set.
///
/// # Errors
/// `Input`: the control or the keys. `Port`: none is free. `Io`: this host refused.
pub(crate) fn listener(spec: &EndSpec, over: Arc<AtomicBool>) -> Result<Box<dyn Listener>, CopyError> {
    let settings = Settings { stranger_window_bytes: Some(STRANGER_BYTES), ..settings(spec)? };
    let tls = keys(spec)?;
    let certificate = der("certificate", &tls.certificate)?;
    let key = tls.key.as_deref().ok_or_else(|| input("tls.key: the end that listens needs one".into()))?;
    let key = der("key", key)?;
    let (low, high) = spec.ports.unwrap_or((0, 0));
    let hosts = match spec.local {
        Some(local) => vec![local],
        // One socket for IPv6 and IPv4, where the host has both.
        None => vec![IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
    };
    let mut refused = None;
    for host in hosts {
        match QuicListener::bind(host, low..=high, &certificate, &key, &settings) {
            Ok(listener) => return Ok(Box::new(QuicPort { listener, over })),
            Err(error) => refused = Some(error),
        }
    }
    Err(match refused {
        Some(error @ QuicError::Port { .. }) => CopyError { kind: ErrorKind::Port, text: error.to_string() },
        Some(error @ QuicError::Certificate(_)) => input(format!("tls: {error}")),
        Some(error) => CopyError { kind: ErrorKind::Io, text: error.to_string() },
        None => CopyError { kind: ErrorKind::Port, text: "no address to listen at".into() },
    })
}

/// Maker of the streams of the end that connects. Waits end when `over` is set.
///
/// # Errors
/// `Input`: the control, the keys or the peer.
pub(crate) fn dialer(spec: &EndSpec, over: Arc<AtomicBool>) -> Result<Box<dyn Dialer>, CopyError> {
    let settings = settings(spec)?;
    let certificate = der("certificate", &keys(spec)?.certificate)?;
    let peer = spec.peer.unwrap_or(Ipv4Addr::LOCALHOST.into());
    Ok(Box::new(QuicDialer { peer: SocketAddr::new(peer, spec.port), certificate, settings, over }))
}

/// Dropped, it waits until the last messages to the other end have arrived: with a program that ends they would go.
pub(crate) struct Settling(bool);

impl Settling {
    /// Of an end; it does nothing without QUIC.
    pub fn new(spec: &EndSpec) -> Settling {
        Settling(matches!(spec.transport, TransportSpec::Quic { .. }))
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        if self.0 {
            quic::settle(SETTLE);
        }
    }
}

fn input(text: String) -> CopyError {
    CopyError { kind: ErrorKind::Input, text }
}

fn keys(spec: &EndSpec) -> Result<&TlsSpec, CopyError> {
    spec.tls.as_ref().ok_or_else(|| input("tls: QUIC is always encrypted: keys are needed".into()))
}

fn der(name: &str, text: &str) -> Result<Vec<u8>, CopyError> {
    copy::unhex(text).ok_or_else(|| input(format!("tls.{name}: hex digits of a DER form are needed")))
}

fn settings(spec: &EndSpec) -> Result<Settings, CopyError> {
    let TransportSpec::Quic { congestion_control, source, parameters, window_bytes } = &spec.transport else {
        return Err(input("transport: QUIC is needed".into()));
    };
    let algorithm = match (congestion_control, source) {
        (_, Some(source)) => compile(source)?,
        (name, None) => {
            let name = name.as_deref().unwrap_or("cubic");
            congestion::find(name).ok_or_else(|| {
                let known: Vec<_> = congestion::builtin().iter().map(Algorithm::name).collect();
                input(format!("congestion_control = {name:?}: one of {}, or a C file", known.join(", ")))
            })?
        }
    };
    let control = Control::new(&algorithm, parameters).map_err(|error| input(format!("parameters: {error}")))?;
    let mut settings = Settings::new(control);
    if let Some(bytes) = window_bytes {
        settings.window_bytes = *bytes;
    }
    settings.silence = Duration::try_from_secs_f64(spec.silence_s)
        .map_err(|_| input(format!("silence_s = {}: seconds are needed", spec.silence_s)))?;
    settings.local = spec.local;
    Ok(settings)
}

/// The user's own control: compiled from a file that is nobody else's and goes at once.
fn compile(source: &str) -> Result<Algorithm, CopyError> {
    use std::os::unix::fs::DirBuilderExt;
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("elephan-control-{}-{number}", std::process::id()));
    let io = |error: io::Error| CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", folder.display()) };
    std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(io)?;
    let file = folder.join("control.c");
    let result = std::fs::write(&file, source)
        .map_err(io)
        .and_then(|()| congestion::compile(&file).map_err(|error| input(format!("transport.source: {error}"))));
    let _ = std::fs::remove_dir_all(&folder);
    result
}

struct QuicPort {
    listener: QuicListener,
    over: Arc<AtomicBool>,
}

impl Listener for QuicPort {
    fn port(&self) -> u16 {
        self.listener.address().port()
    }

    fn next(&self, wait: Duration) -> io::Result<Option<Box<dyn Incoming>>> {
        match self.listener.accept(wait, &self.over) {
            Ok(stream) => Ok(Some(Box::new(QuicIncoming { stream }))),
            Err(QuicError::Timeout(_) | QuicError::Stopped) => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// A stream whose handshake is done: quinn's threads did it.
struct QuicIncoming {
    stream: QuicStream,
}

impl Incoming for QuicIncoming {
    fn peer(&self) -> IpAddr {
        self.stream.handle().peer().ip().to_canonical()
    }

    fn handle(&self) -> Arc<dyn Handle> {
        Arc::new(self.stream.handle())
    }

    fn accept(self: Box<Self>, _wait: Duration) -> io::Result<Connection> {
        Ok(connection(self.stream))
    }
}

struct QuicDialer {
    peer: SocketAddr,
    certificate: Vec<u8>,
    settings: Settings,
    over: Arc<AtomicBool>,
}

impl Dialer for QuicDialer {
    fn connect(&self, wait: Duration) -> io::Result<Connection> {
        quic::connect(self.peer, &self.certificate, &self.settings, wait, &self.over).map(connection).map_err(|error| {
            let kind = match error {
                QuicError::Peer(_) => io::ErrorKind::InvalidData,
                QuicError::Timeout(_) => io::ErrorKind::TimedOut,
                QuicError::Connection(_) => io::ErrorKind::ConnectionRefused,
                _ => io::ErrorKind::Other,
            };
            io::Error::new(kind, error)
        })
    }
}

fn connection(stream: QuicStream) -> Connection {
    let handle = Arc::new(stream.handle());
    let (reader, writer) = stream.split();
    Connection { reader: Box::new(reader), writer: Box::new(writer), handle }
}

impl Handle for QuicHandle {
    fn close(&self) {
        self.shutdown();
    }

    fn abort(&self) {
        QuicHandle::abort(self);
    }

    fn is_open(&self) -> bool {
        QuicHandle::is_open(self)
    }

    fn facts(&self) -> StreamFacts {
        let facts = QuicHandle::facts(self);
        StreamFacts {
            rtt_s: Some(facts.rtt.as_secs_f64()),
            window_bytes: Some(facts.window_bytes),
            retransmitted: Some(facts.lost_packets),
        }
    }

    fn trust(&self) {
        QuicHandle::trust(self);
    }

    fn pace(&self, bytes_per_s: Option<u64>) -> bool {
        self.control().limit(bytes_per_s);
        true
    }
}
