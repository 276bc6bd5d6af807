//! TLS 1.3 between two ends that know each other's certificate: exactly that one is right, whatever it says.

use crate::error::QuicError;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ring, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// Protocol name in the handshake (ALPN, RFC 7301).
const ALPN: &[u8] = b"elephan-copy/1";
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
    Ok(quinn::ServerConfig::with_crypto(Arc::new(tls)))
}

/// Configuration of the end that knows the other's certificate, DER.
pub(crate) fn client(certificate: &[u8]) -> Result<quinn::ClientConfig, QuicError> {
    let wrong = |e: &dyn std::fmt::Display| QuicError::Certificate(e.to_string());
    let provider = provider();
    let pinned = Pinned { certificate: certificate.to_vec(), provider: provider.clone() };
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

/// Takes one certificate only; its owner still has to prove that they have the key.
#[derive(Debug)]
struct Pinned {
    certificate: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if end_entity.as_ref() == self.certificate {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(rustls::CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("QUIC has TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
