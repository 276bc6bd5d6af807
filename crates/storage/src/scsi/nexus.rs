//! The name of an initiator port.

use std::sync::Arc;

/// An initiator port as a logical unit knows it: name and session identifier,
/// `iqn.2026-01.example:host,i,0x0123456789ab`. It outlives sessions, because persistent reservations do.
pub type Nexus = Arc<str>;
