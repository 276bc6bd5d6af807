//! TLS 1.3 with certificates of both sides between this gateway and others (RFC 8446).
//!
//! RFC 3723 protects iFCP by IPsec. TLS is elephan's own between its gateways: no other implementation speaks it.

use super::config::TlsConfig;
use bytes::{Buf, BytesMut};
use rustls::client::verify_server_name;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};
use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// Bytes that may wait for TCP beyond those that it holds itself.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes that are read at once, decrypted: one record.
const READ_BYTES: usize = 16 << 10;
/// First byte of a connection, from the side that took it: the other one's certificate is right. In TLS 1.3 that one's
/// handshake ends before its certificate is looked at, and it would hold a peer for reached that refuses it.
const WELCOME: u8 = 1;

/// A gateway's certificate, and the authority of all gateways.
pub(super) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

/// TLS of one connection.
#[derive(Debug)]
pub(super) struct Session {
    connection: Box<Connection>,
    /// Address that the peer's certificate must be for.
    peer: IpAddr,
    /// Something that came may wait to be read, of which no descriptor tells.
    has_input: bool,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file that cannot be read, or is none of such a kind, by its path.
    pub fn open(config: &TlsConfig) -> io::Result<Tls> {
        let provider = Arc::new(default_provider());
        let mut roots = RootCertStore::empty();
        for authority in certificates(&config.authority)? {
            roots.add(authority).map_err(|error| named(&config.authority, error))?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(&config.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&pem(&config.key)?).map_err(|error| named(&config.key, error))?;
        let pair = |error| named(&config.certificate, format!("{error}: is {} its key?", config.key.display()));
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(pair)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| named(&config.authority, error))?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(pair)?;
        Ok(Tls { client: Arc::new(client), server: Arc::new(server) })
    }

    /// TLS of a connection that is made to a peer.
    pub fn client(&self, peer: IpAddr) -> io::Result<Session> {
        let name = ServerName::IpAddress(peer.into());
        let connection = ClientConnection::new(Arc::clone(&self.client), name).map_err(io::Error::other)?;
        Ok(Session::new(connection.into(), peer))
    }

    /// TLS of a connection that a peer made.
    pub fn server(&self, peer: IpAddr) -> io::Result<Session> {
        let connection = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        Ok(Session::new(connection.into(), peer))
    }
}

impl Session {
    fn new(mut connection: Connection, peer: IpAddr) -> Session {
        connection.set_buffer_limit(Some(BUFFER_BYTES));
        Session { connection: Box::new(connection), peer, has_input: false }
    }

    /// True while something that came may wait to be read.
    pub fn has_input(&self) -> bool {
        self.has_input
    }

    /// True while something waits to be written.
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Goes on with the handshake. True when it is done, and the peer is the one that it should be.
    ///
    /// # Errors
    /// The connection ended, or a certificate is not valid.
    pub fn handshake(&mut self, stream: &TcpStream) -> io::Result<bool> {
        while self.connection.is_handshaking() {
            self.flush(stream)?;
            if !self.connection.is_handshaking() || !self.fill(stream)? {
                break;
            }
        }
        self.flush(stream)?;
        if self.connection.is_handshaking() {
            return Ok(false);
        }
        // The authority's signature is checked by the handshake; a client checks the server's address, a server does
        // not check the client's.
        let certificate = self.connection.peer_certificates().and_then(|chain| chain.first());
        let certificate = certificate.ok_or_else(|| refused("it has no certificate"))?;
        let parsed = ParsedCertificate::try_from(certificate).map_err(refused)?;
        verify_server_name(&parsed, &ServerName::IpAddress(self.peer.into())).map_err(refused)?;
        self.has_input = true;
        match *self.connection {
            Connection::Client(_) => self.is_welcome(stream),
            Connection::Server(_) => {
                self.connection.writer().write_all(&[WELCOME])?;
                self.flush(stream)?;
                Ok(true)
            }
        }
    }

    /// Reads the other side's welcome. False when it has not come yet.
    fn is_welcome(&mut self, stream: &TcpStream) -> io::Result<bool> {
        let mut welcome = [0];
        loop {
            match self.connection.reader().read(&mut welcome) {
                Ok(1) if welcome == [WELCOME] => return Ok(true),
                Ok(_) => return Err(refused("the peer is no gateway of elephan's")),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.fill(stream)? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads once into `input`. False when there is nothing now.
    ///
    /// # Errors
    /// The connection is gone, the peer has closed it, or a record is not authentic.
    pub fn read(&mut self, stream: &TcpStream, input: &mut BytesMut) -> io::Result<bool> {
        loop {
            let start = input.len();
            input.resize(start + READ_BYTES, 0);
            let got = self.connection.reader().read(&mut input[start..]);
            input.truncate(start + got.as_ref().copied().unwrap_or(0));
            match got {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the peer closed the connection")),
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.fill(stream)? {
                        self.has_input = false;
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes from `output` as far as there is room. True when all is written.
    pub fn write(&mut self, stream: &TcpStream, output: &mut BytesMut) -> io::Result<bool> {
        loop {
            let taken = self.connection.writer().write(output)?;
            output.advance(taken);
            if !self.flush(stream)? {
                return Ok(false);
            }
            if output.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Takes records from TCP. False when there are none now.
    fn fill(&mut self, mut stream: &TcpStream) -> io::Result<bool> {
        match self.connection.read_tls(&mut stream) {
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the peer closed the connection")),
            Ok(_) => match self.connection.process_new_packets() {
                Ok(_) => Ok(true),
                Err(error) => {
                    // The alert tells the peer why; where it cannot be sent the connection ends all the same.
                    let _ = self.flush(stream);
                    Err(refused(error))
                }
            },
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Hands records to TCP. False when it takes no more now.
    fn flush(&mut self, mut stream: &TcpStream) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn certificates(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem(file)?).collect();
    let found = found.map_err(|error| named(file, error))?;
    if found.is_empty() {
        return Err(named(file, "there is no certificate in it (PEM)"));
    }
    Ok(found)
}

fn pem(file: &Path) -> io::Result<Vec<u8>> {
    user_files::read(file, user_files::PEM_BYTES_MAX).map_err(|error| named(file, error))
}

fn named(file: &Path, error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{}: {error}", file.display()))
}

fn refused(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("TLS: {error}"))
}
