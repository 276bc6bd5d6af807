//! Faults of a specification, each in one line.

use crate::error::{CopyError, ErrorKind};
use crate::links::STREAMS_MAX;
use copy::{unhex, EndSpec, Role, Side, TransportSpec, CHUNK_MAX};

/// Checks what serde cannot, and returns the token.
///
/// # Errors
/// `Input`, with key, value and what would be right.
pub(crate) fn check(spec: &EndSpec) -> Result<[u8; 32], CopyError> {
    let wrong = |text: String| Err(CopyError { kind: ErrorKind::Input, text });
    let Some(token) = unhex(&spec.token).and_then(|token| <[u8; 32]>::try_from(token).ok()) else {
        return wrong("token: 64 hex digits are needed".into());
    };
    if spec.copy.len() != 32 || !spec.copy.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return wrong(format!("copy = {:?}: 32 hex digits are needed", spec.copy));
    }
    if !(1..=STREAMS_MAX).contains(&spec.streams) {
        return wrong(format!("streams = {}: 1 to {STREAMS_MAX} are possible", spec.streams));
    }
    if let Some(chunk) = spec.options.chunk_bytes {
        if !chunk.is_power_of_two() || chunk < 4096 || u64::from(chunk) > CHUNK_MAX {
            return wrong(format!("options.chunk_bytes = {chunk}: a power of two, 4096 to {CHUNK_MAX}, is needed"));
        }
    }
    for (name, seconds) in [("connect_s", spec.connect_s), ("silence_s", spec.silence_s)] {
        if !(seconds > 0.0 && seconds <= 1e6) {
            return wrong(format!("{name} = {seconds}: more than 0, at most 10^6 s"));
        }
    }
    if spec.role == Role::Send && spec.sources.is_empty() {
        return wrong("sources: the end that sends needs at least one".into());
    }
    if spec.role == Role::Receive && spec.destination.is_none() {
        return wrong("destination: the end that receives needs one".into());
    }
    if spec.side == Side::Connect && (spec.peer.is_none() || spec.port == 0) {
        return wrong("peer, port: the end that connects needs both".into());
    }
    if spec.tls.is_none() && matches!(spec.transport, TransportSpec::Quic { .. }) {
        return wrong("tls: QUIC is always encrypted and needs keys".into());
    }
    Ok(token)
}
