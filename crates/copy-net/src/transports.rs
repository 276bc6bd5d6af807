//! The transport that a specification asks for.

use crate::error::CopyError;
use crate::quic_streams;
use crate::session::Session;
use crate::tcp::{TcpDialer, TcpPort, TcpSettings};
use crate::tls::TlsKeys;
use crate::transport::{Dialer, Listener};
use copy::{EndSpec, TransportSpec};
use std::net::SocketAddr;
use std::time::Duration;

/// The end that listens.
///
/// # Errors
/// `Port`, `Input`.
pub(crate) fn listener(spec: &EndSpec, session: &Session) -> Result<Box<dyn Listener>, CopyError> {
    let Some(settings) = tcp_settings(spec) else { return quic_streams::listener(spec, session.over_flag()) };
    let keys = spec.tls.as_ref().map(|tls| TlsKeys::new(tls, true)).transpose()?;
    Ok(Box::new(TcpPort::bind(spec.local, spec.ports, &settings, keys, session.over_flag())?))
}

/// The end that connects.
///
/// # Errors
/// `Input`.
pub(crate) fn dialer(spec: &EndSpec, session: &Session) -> Result<Box<dyn Dialer>, CopyError> {
    let Some(settings) = tcp_settings(spec) else { return quic_streams::dialer(spec, session.over_flag()) };
    let keys = spec.tls.as_ref().map(|tls| TlsKeys::new(tls, false)).transpose()?;
    let peer = spec.peer.unwrap_or(std::net::Ipv4Addr::LOCALHOST.into());
    let peer = SocketAddr::new(peer, spec.port);
    Ok(Box::new(TcpDialer { peer, local: spec.local, settings, keys, over: session.over_flag() }))
}

fn tcp_settings(spec: &EndSpec) -> Option<TcpSettings> {
    match &spec.transport {
        TransportSpec::Tcp { congestion_control, send_buffer_bytes, receive_buffer_bytes, max_segment_bytes } => {
            Some(TcpSettings {
                congestion_control: congestion_control.clone(),
                send_buffer_bytes: *send_buffer_bytes,
                receive_buffer_bytes: *receive_buffer_bytes,
                max_segment_bytes: *max_segment_bytes,
                // A disk that syncs for long closes the window, and is no reason to lose a stream.
                silence: Duration::from_secs_f64(spec.silence_s * 6.0),
            })
        }
        TransportSpec::Quic { .. } => None,
    }
}
