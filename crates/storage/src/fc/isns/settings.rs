//! Settings of a client.

use wire::isns::IpAddress;

/// Source of a gateway's requests (RFC 4171, 5.6.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// Each N_Port for itself, with the ports that its discovery domains allow: the way of RFC 4171 for iFCP.
    Ports,
    /// A control node with an iSCSI name, which sees every port. open-isns 0.101 takes no other: a request whose source
    /// is an N_Port ends that server. Names of nodes are left out, which it refuses.
    ControlNode(String),
}

/// Settings of a client. Times in the units of their names.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the gateway (EID), which no other may have: its host name, say.
    pub entity: String,
    /// Source of requests.
    pub source: Source,
    /// Address at which other gateways connect.
    pub address: IpAddress,
    /// TCP port at which other gateways connect.
    pub port: u16,
    /// TCP port at which the server connects to send inquiries and notifications; 0 = none.
    pub change_port: u16,
    /// Time between the server's inquiries, s; 0 = none.
    pub status_inquiry_s: u32,
    /// Time after which the server forgets a gateway of which it hears nothing, s.
    pub registration_s: u32,
    /// Time between queries without a notification, ms: shorter than [`Settings::registration_s`], which it renews.
    pub refresh_ms: u64,
    /// Time after a notification before the query, ms, so that many notifications make one query.
    pub gather_ms: u64,
    /// Time for a response, ms; the connection is closed after it.
    pub response_ms: u64,
    /// Time before a lost connection is made again, ms, and before a refused request is: the first time. It doubles
    /// until the server answers a whole round of queries.
    pub retry_ms: u64,
    /// Longest of these times, ms.
    pub retry_max_ms: u64,
    /// Most N_Ports of this gateway.
    pub local_ports_max: usize,
    /// Most N_Ports of others.
    pub remote_ports_max: usize,
    /// Most connections from the server.
    pub inbound_max: usize,
}

impl Settings {
    /// Settings of a gateway with a name, at an address; everything else as usual.
    pub fn new(entity: &str, address: IpAddress, port: u16) -> Settings {
        Settings {
            entity: entity.to_string(),
            source: Source::Ports,
            address,
            port,
            change_port: 0,
            status_inquiry_s: 0,
            registration_s: 300,
            refresh_ms: 60_000,
            gather_ms: 100,
            response_ms: 10_000,
            retry_ms: 5_000,
            retry_max_ms: 60_000,
            local_ports_max: 4_096,
            remote_ports_max: 4_096,
            inbound_max: 4,
        }
    }
}
