//! TLS 1.3 between two ends that know each other's certificate: exactly that one is right, whatever it says.

use crate::error::QuicError;
use crate::pinned::PinnedCertificate;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::Error;
use std::sync::Arc;

/// Protocol name in the handshake (ALPN, RFC 7301).
const ALPN: &[u8] = b"elephan-copy/1";
/// Connections whose first packet has arrived and that are not accepted yet, and bytes that each may send until then:
/// quinn's own bounds are 65,536 connections and 100 MB.
const INCOMING: usize = 1024;
const INCOMING_BYTES: u64 = 16 << 10;
/// Name in the handshake; the certificate is known by its bytes, not by a name.
pub(crate) const SERVER_NAME: &str = "elephan";

/// AES with 128 bit first: by hardware it costs least.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![
        ring::cipher_suite::TLS13_AES_128_GCM_SHA256,
        ring::cipher_suite::TLS13_AES_256_GCM_SHA384,
        ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    Arc::new(provider)
}

/// Configuration of the end that has the certificate; both in DER.
pub(crate) fn server(certificate: &[u8], key: &[u8]) -> Result<quinn::ServerConfig, QuicError> {
    let wrong = |e: &dyn std::fmt::Display| QuicError::Certificate(e.to_string());
    let key = PrivateKeyDer::try_from(key.to_vec()).map_err(|e| wrong(&e))?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| wrong(&e))?
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(certificate.to_vec())], key)
        .map_err(|e| wrong(&e))?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let tls = QuicServerConfig::try_from(tls).map_err(|e| wrong(&e))?;
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(tls));
    server
        .max_incoming(INCOMING)
        .incoming_buffer_size(INCOMING_BYTES)
        .incoming_buffer_size_total(INCOMING as u64 * INCOMING_BYTES);
    Ok(server)
}

/// Configuration of the end that knows the other's certificate, DER.
pub(crate) fn client(certificate: &[u8]) -> Result<quinn::ClientConfig, QuicError> {
    let wrong = |e: &dyn std::fmt::Display| QuicError::Certificate(e.to_string());
    let provider = provider();
    let pinned = PinnedCertificate {
        certificate: CertificateDer::from(certificate.to_vec()),
        provider: provider.clone(),
        refusal: Error::InvalidCertificate(rustls::CertificateError::ApplicationVerificationFailure),
    };
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| wrong(&e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.resumption = rustls::client::Resumption::disabled();
    let tls = QuicClientConfig::try_from(tls).map_err(|e| wrong(&e))?;
    Ok(quinn::ClientConfig::new(Arc::new(tls)))
}
