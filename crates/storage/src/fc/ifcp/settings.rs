//! Settings of a gateway.

use wire::ifcp::AddressMode;

const NS_PER_S: u64 = 1_000_000_000;

/// A gateway's time base (RFC 4172, 8.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// The time is unknown: there are no sessions.
    Unsynchronized,
    /// The time is that of the time server.
    Synchronized {
        /// Time since 1900 at the gateway's time 0, ns. Range: 2^64 ns, until 2484.
        epoch_ns: u64,
    },
}

/// Settings of a gateway. Their mode cannot be changed later (RFC 4172, 4.4).
#[derive(Clone, Debug)]
pub struct Settings {
    /// Treatment of addresses, the same at all gateways.
    pub mode: AddressMode,
    /// Time base at the start.
    pub clock: Clock,
    /// Longest time of a frame between two gateways, ns (IP_TOV): half of R_A_TOV (RFC 4172, 8.2.1).
    pub ip_tov_ns: u64,
    /// Time between two tests of liveness that peers are to send, s; 0 = none. A session ends after twice this time
    /// without a message.
    pub liveness_s: u16,
    /// Time after which a connection, a CBIND or an UNBIND without an answer has failed, ns.
    pub setup_timeout_ns: u64,
    /// Time between two attempts to reach a peer that is down, ns.
    pub reconnect_ns: u64,
    /// Sessions at once.
    pub sessions_max: usize,
    /// Connections to one peer at once, bound or not.
    pub connections_per_peer: usize,
    /// Connections without a session that the gateway keeps for later sessions with one peer.
    pub unbound_max: usize,
    /// Bytes waiting for a connection at which its local port is to send no more.
    pub full_bytes: usize,
    /// Bytes waiting for a connection at which its local port may send again.
    pub resume_bytes: usize,
    /// Bytes waiting for a connection beyond which frames are dropped: a port has then sent more than its credits.
    pub queue_bytes_max: usize,
    /// Events that wait to be polled; beyond, they are counted alone.
    pub events_max: usize,
}

/// A setting that no gateway can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidSettings {
    /// The mode is none of RFC 4172.
    #[error("the address mode {0} is unknown: translation or transparent would be right")]
    Mode(u8),
    /// A time is 0.
    #[error("ip_tov_ns, setup_timeout_ns and reconnect_ns are at least 1")]
    NoTime,
    /// The bounds of the queue are out of order.
    #[error("resume_bytes is at most full_bytes, and full_bytes at most queue_bytes_max")]
    Bounds,
}

impl Settings {
    /// Usual settings: what hosts see of a dead peer comes within R_A_TOV's usual 10 s, of which silence takes 6 s and
    /// a last attempt to connect 3 s.
    pub fn new(mode: AddressMode, clock: Clock) -> Settings {
        Settings {
            mode,
            clock,
            ip_tov_ns: 5 * NS_PER_S,
            liveness_s: 3,
            setup_timeout_ns: 3 * NS_PER_S,
            reconnect_ns: NS_PER_S,
            sessions_max: 4096,
            connections_per_peer: 4096,
            unbound_max: 4,
            full_bytes: 1 << 20,
            resume_bytes: 1 << 19,
            queue_bytes_max: 1 << 22,
            events_max: 1024,
        }
    }

    /// Checks the settings against each other.
    pub(super) fn validate(&self) -> Result<(), InvalidSettings> {
        if let AddressMode::Other(code) = self.mode {
            return Err(InvalidSettings::Mode(code));
        }
        if self.ip_tov_ns == 0 || self.setup_timeout_ns == 0 || self.reconnect_ns == 0 {
            return Err(InvalidSettings::NoTime);
        }
        if self.resume_bytes > self.full_bytes || self.full_bytes > self.queue_bytes_max {
            return Err(InvalidSettings::Bounds);
        }
        Ok(())
    }
}
