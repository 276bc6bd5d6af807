//! Specification of one end: JSON from the front, the same for an agent and for the front's own process.

use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One end of a copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndSpec {
    /// Role of this end.
    pub role: Role,
    /// Side of this end: each of the two can be the one that listens.
    pub side: Side,
    /// Transport of the streams.
    pub transport: TransportSpec,
    /// Data streams at the beginning, 1 to 256; one more connection carries messages.
    pub streams: u32,
    /// Own address; absent: all (listen), or as the route says (connect).
    #[serde(default)]
    pub local: Option<IpAddr>,
    /// The other end's address: where to connect, or from whom alone connections are taken.
    #[serde(default)]
    pub peer: Option<IpAddr>,
    /// Listen: range of ports, of which the first free one is taken; absent: the kernel chooses.
    #[serde(default)]
    pub ports: Option<(u16, u16)>,
    /// Connect: the port of the event `listening`.
    #[serde(default)]
    pub port: u16,
    /// Secret of this copy, 64 hex digits: the first bytes of each connection, after TLS. Connections that lack it are
    /// closed and counted (`Event::Refused`).
    pub token: String,
    /// Keys of TLS 1.3; absent: plaintext, which the user asked for.
    #[serde(default)]
    pub tls: Option<TlsSpec>,
    /// Name of this copy at both ends, 32 hex digits: the same for each attempt of the same command. Journals go by it.
    pub copy: String,
    /// Send: what is copied; a folder whose path ends in a slash stands for what is in it (as with rsync). Receive: the
    /// same, if both ends are on one host.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Receive: where to. A folder, a file or a block device.
    #[serde(default)]
    pub destination: Option<String>,
    /// Comparing and making of files; the same at both ends.
    #[serde(default)]
    pub options: CopyOptions,
    /// Most that all streams together send, bit/s of data; absent: as much as goes.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Time for the other end to come, and for the first connection, s.
    #[serde(default = "connect_s")]
    pub connect_s: f64,
    /// Time without any byte from the other end after which it counts as lost, s.
    #[serde(default = "silence_s")]
    pub silence_s: f64,
    /// Between two events `progress`, ms.
    #[serde(default = "progress_ms")]
    pub progress_ms: u64,
}

fn connect_s() -> f64 {
    10.0
}

fn silence_s() -> f64 {
    20.0
}

fn progress_ms() -> u64 {
    500
}

/// Roles of ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads and sends.
    Send,
    /// Receives, checks and writes.
    Receive,
}

/// Sides of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Waits for the other end.
    Listen,
    /// Goes to the other end.
    Connect,
}

/// Transport of the streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TransportSpec {
    /// TCP of the kernel: one connection per stream. Absent settings are the host's.
    Tcp {
        /// Name in the kernel: built in, or registered for this copy (`elephan_...`).
        #[serde(default)]
        congestion_control: Option<String>,
        /// SO_SNDBUF, bytes.
        #[serde(default)]
        send_buffer_bytes: Option<u64>,
        /// SO_RCVBUF, bytes.
        #[serde(default)]
        receive_buffer_bytes: Option<u64>,
        /// TCP_MAXSEG, bytes.
        #[serde(default)]
        max_segment_bytes: Option<u32>,
    },
    /// QUIC (RFC 9000): one connection per stream, under a control of `congestion/`. It is always encrypted.
    Quic {
        /// Name of a built-in control of elephan; absent: cubic.
        #[serde(default)]
        congestion_control: Option<String>,
        /// C source of the user's own control, as text; instead of the name.
        #[serde(default)]
        source: Option<String>,
        /// Its parameters, integers as it scales them.
        #[serde(default)]
        parameters: BTreeMap<String, i64>,
        /// Flow control window of a connection, bytes; absent: 64 MiB.
        #[serde(default)]
        window_bytes: Option<u64>,
    },
}

/// Keys of TLS 1.3. The front draws them and hands them over inside SSH.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// Certificate of the end that listens, DER, hex digits: the other end takes no other.
    pub certificate: String,
    /// Its private key (PKCS #8 DER, hex digits); at the end that listens alone.
    #[serde(default)]
    pub key: Option<String>,
}

/// Comparing and making files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CopyOptions {
    /// Files of the destination that are there: which of them are not sent whole.
    pub delta: DeltaMode,
    /// Owners and groups by number, where this end may set them.
    pub owners: bool,
    /// Extended attributes and ACLs.
    pub xattrs: bool,
    /// Holes stay holes.
    pub sparse: bool,
    /// Entries of the destination that the sources do not have are removed at the end, if nothing failed.
    pub mirror: bool,
    /// `mirror`: most entries that are removed, everything below a removed folder included; with more, none is.
    /// Absent: as many as the sources have entries, so that at least half of the tree stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_removals: Option<u64>,
    /// Folder of an older version, absolute, at the receiver: a file that is the same there becomes a hard link to it,
    /// and one that differs starts from it.
    pub link_to: Option<String>,
    /// Unchanged means the same bytes, not the same size and time.
    pub checksum: bool,
    /// Receiver: each file is read back from its disk and hashed before it gets its name.
    pub verify_read: bool,
    /// Names that are left out: glob patterns of a component, or of a path where they have a slash.
    pub exclude: Vec<String>,
    /// `mirror`: names at the destination that are not removed, patterns as `exclude` has them. Entries of the sources
    /// with such names are copied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// Other file systems below a source are left out.
    pub one_file_system: bool,
    /// Bytes of a chunk, a power of two, 4 KiB to 16 MiB; absent: by the size of each file.
    pub chunk_bytes: Option<u32>,
}

impl Default for CopyOptions {
    fn default() -> CopyOptions {
        CopyOptions {
            delta: DeltaMode::Chunks,
            owners: true,
            xattrs: true,
            sparse: true,
            mirror: false,
            max_removals: None,
            link_to: None,
            checksum: false,
            verify_read: false,
            exclude: vec![],
            protect: vec![],
            one_file_system: false,
            chunk_bytes: None,
        }
    }
}

/// Use of what the destination has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaMode {
    /// Only chunks that differ are sent.
    Chunks,
    /// A file that differs is sent whole.
    Whole,
}

/// Change of a copy that runs: absent members stay as they are. At the sending end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Steering {
    /// Data streams that may send.
    pub streams: Option<u32>,
    /// Most that they send together, bit/s; 0: no limit.
    pub rate_bps: Option<u64>,
}
