//! Configuration of an initiator.

use crate::iscsi::chap::{Credentials, ENTROPY_BYTES};
use crate::iscsi::settings::Settings;
use units::Span;

/// The choice of a connection for a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Allegiance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The one with the fewest commands under way, the lowest number first.
    LeastOutstanding,
}

/// Configuration of an initiator.
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// Its iSCSI name.
    pub name: String,
    /// Its part of the session's identity.
    pub isid: [u8; 6],
    /// The target; none: a discovery session.
    pub target: Option<String>,
    /// Settings to negotiate.
    pub settings: Settings,
    /// Shown to a target that asks; the target's part, if there is one, is asked of it.
    pub chap: Option<Credentials>,
    /// For CHAP towards the target; unpredictable.
    pub entropy: [u8; ENTROPY_BYTES],
    /// Connections of the session.
    pub connections: usize,
    /// Their choice for a command.
    pub allegiance: Allegiance,
    /// Attempts to log in, one after the other, before all commands fail.
    pub attempts: u32,
    /// A connection that is not in full feature phase by then is lost.
    pub login_timeout: Span,
    /// Silence after which the target is pinged.
    pub ping_after: Span,
    /// Silence after a ping that means the connection is lost.
    pub ping_timeout: Span,
}

impl InitiatorConfig {
    /// An initiator with a name and what is usual.
    pub fn new(name: &str, target: Option<&str>) -> InitiatorConfig {
        InitiatorConfig {
            name: name.to_owned(),
            // "Random" format (RFC 7143, 11.12.5), and as good as any where there is one session.
            isid: [0x80, 0, 0, 1, 0, 0],
            target: target.map(str::to_owned),
            settings: Settings::default(),
            chap: None,
            entropy: [0; ENTROPY_BYTES],
            connections: 1,
            allegiance: Allegiance::default(),
            attempts: 5,
            login_timeout: Span::from_secs(15),
            ping_after: Span::from_secs(15),
            ping_timeout: Span::from_secs(15),
        }
    }
}
