//! TLS 1.3 over a blocking socket: one certificate is taken, and no other.

use crate::error::{CopyError, ErrorKind};
use crate::tcp_end::TcpEnd;
use crate::transport::Connection;
use copy::TlsSpec;
use quic::PinnedCertificate;
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are asked of the kernel at once.
const RECEIVE_BYTES: usize = 256 << 10;

/// Keys of one end.
#[derive(Clone)]
pub(crate) enum TlsKeys {
    Listen(Arc<ServerConfig>),
    Connect(Arc<ClientConfig>),
}

impl TlsKeys {
    /// Keys of an end's specification.
    ///
    /// # Errors
    /// `Input`: no certificate or key in DER.
    pub fn new(spec: &TlsSpec, listens: bool) -> Result<TlsKeys, CopyError> {
        let input = |text: String| CopyError { kind: ErrorKind::Input, text };
        let bytes = |name: &str, text: &str| {
            copy::unhex(text).ok_or_else(|| input(format!("tls.{name}: hex digits of a DER form are needed")))
        };
        let certificate = CertificateDer::from(bytes("certificate", &spec.certificate)?);
        let provider = Arc::new(provider());
        let tls = |error: rustls::Error| input(format!("tls: {error}"));
        if listens {
            let key = spec.key.as_deref().ok_or_else(|| input("tls.key: the end that listens needs one".into()))?;
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(bytes("key", key)?));
            let mut config = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&rustls::version::TLS13])
                .map_err(tls)?
                .with_no_client_auth()
                .with_single_cert(vec![certificate], key)
                .map_err(tls)?;
            // A stream that only sends never reads a ticket.
            config.send_tls13_tickets = 0;
            Ok(TlsKeys::Listen(Arc::new(config)))
        } else {
            let refusal = rustls::Error::General("the other end has another certificate".into());
            let verifier = Arc::new(PinnedCertificate { certificate, provider: provider.clone(), refusal });
            let mut config = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&rustls::version::TLS13])
                .map_err(tls)?
                .dangerous()
                .with_custom_certificate_verifier(verifier)
                .with_no_client_auth();
            config.resumption = rustls::client::Resumption::disabled();
            config.enable_sni = false;
            Ok(TlsKeys::Connect(Arc::new(config)))
        }
    }

    /// Handshake over a socket whose timeouts are short, until `is_over`.
    ///
    /// # Errors
    /// `InvalidData`: the other end has another certificate, or speaks no TLS 1.3.
    pub fn handshake(&self, socket: TcpEnd, is_over: &dyn Fn() -> bool) -> io::Result<Connection> {
        let wrong = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut tls = match self {
            TlsKeys::Listen(config) => {
                rustls::Connection::Server(ServerConnection::new(config.clone()).map_err(wrong)?)
            }
            TlsKeys::Connect(config) => {
                let name = ServerName::try_from("elephan").expect("a name");
                rustls::Connection::Client(ClientConnection::new(config.clone(), name).map_err(wrong)?)
            }
        };
        tls.set_buffer_limit(None);
        let mut timely = Timely { socket: &socket, is_over };
        while tls.is_handshaking() || tls.wants_write() {
            match tls.complete_io(&mut timely) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if is_over() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let tls = Arc::new(Mutex::new(tls));
        let reader =
            TlsReader { socket: socket.clone(), tls: tls.clone(), received: vec![0; RECEIVE_BYTES], begin: 0, end: 0 };
        let writer = TlsWriter { socket: socket.clone(), tls, sealed: Vec::new() };
        Ok(Connection { reader: Box::new(reader), writer: Box::new(writer), handle: Arc::new(socket) })
    }
}

/// A socket during the handshake: rustls reads on until it is done, also from a peer that sends a byte now and then.
struct Timely<'a> {
    socket: &'a TcpEnd,
    is_over: &'a dyn Fn() -> bool,
}

impl Timely<'_> {
    fn check(&self) -> io::Result<()> {
        if (self.is_over)() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl Read for Timely<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        (&*self.socket.stream).read(buffer)
    }
}

impl Write for Timely<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.check()?;
        (&*self.socket.stream).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// AES-128-GCM first, where the processor has AES; TLS 1.3 alone.
fn provider() -> CryptoProvider {
    use ring::cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256};
    let mut provider = ring::default_provider();
    let aes = [TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384];
    provider.cipher_suites = if has_aes() {
        [&aes[..], &[TLS13_CHACHA20_POLY1305_SHA256]].concat()
    } else {
        [&[TLS13_CHACHA20_POLY1305_SHA256], &aes[..]].concat()
    };
    provider
}

fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

struct TlsReader {
    socket: TcpEnd,
    tls: Arc<Mutex<rustls::Connection>>,
    /// Records that came and are not opened yet.
    received: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Read for TlsReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            {
                let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    match tls.reader().read(buffer) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        done => return done,
                    }
                    if self.begin == self.end {
                        break;
                    }
                    self.begin += tls.read_tls(&mut &self.received[self.begin..self.end])?;
                    tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                }
            }
            // The lock is free while this waits, so that the other half can write.
            self.begin = 0;
            self.end = (&*self.socket.stream).read(&mut self.received)?;
            if self.end == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

struct TlsWriter {
    socket: TcpEnd,
    tls: Arc<Mutex<rustls::Connection>>,
    sealed: Vec<u8>,
}

impl Write for TlsWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.sealed.clear();
        let taken = {
            let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = tls.writer().write(data)?;
            while tls.wants_write() {
                tls.write_tls(&mut self.sealed)?;
            }
            taken
        };
        (&*self.socket.stream).write_all(&self.sealed)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
