//! Configuration of a target.

use super::memory::MemoryConfig;
use crate::iscsi::chap::Credentials;
use crate::iscsi::settings::Settings;
use units::Span;

/// Configuration of a target.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// Its iSCSI name.
    pub name: String,
    /// Text for people.
    pub alias: String,
    /// Its addresses, `address:port`, for SendTargets; empty: the address that the connection came to.
    pub portals: Vec<String>,
    /// Settings to negotiate.
    pub settings: Settings,
    /// CHAP credentials; None: no authentication.
    pub chap: Option<Credentials>,
    /// Commands that a session may have under way, 1 to 4096.
    pub window: u32,
    /// Sessions at a time, 1 to 65535.
    pub max_sessions: usize,
    /// Connections in full feature phase at a time; a further login is refused. None: no bound.
    pub max_connections: Option<usize>,
    /// The same from one address ([`super::Target::set_peer`]), so that an initiator leaves room for others.
    pub max_connections_per_address: Option<usize>,
    /// Data of commands under way per connection, bytes; one command may go beyond it alone.
    pub max_data_bytes: u64,
    /// All memory that it takes for its peers.
    pub memory: MemoryConfig,
    /// A connection that does not reach full feature phase by then is closed.
    pub login_timeout: Span,
    /// Silence after which a peer is pinged.
    pub ping_after: Span,
    /// Silence after a ping that ends the connection.
    pub ping_timeout: Span,
}

impl TargetConfig {
    /// A target with a name and what is usual.
    pub fn new(name: &str) -> TargetConfig {
        TargetConfig {
            name: name.to_owned(),
            alias: String::new(),
            portals: Vec::new(),
            settings: Settings::default(),
            chap: None,
            window: 128,
            max_sessions: 256,
            max_connections: None,
            max_connections_per_address: None,
            max_data_bytes: 64 << 20,
            memory: MemoryConfig::UNLIMITED,
            login_timeout: Span::from_secs(15),
            ping_after: Span::from_secs(30),
            ping_timeout: Span::from_secs(30),
        }
    }
}
