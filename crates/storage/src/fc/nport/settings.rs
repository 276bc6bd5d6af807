//! Settings of an N_Port.

use wire::fc::{FrameType, Wwn};

/// Part that a port plays in SCSI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Role {
    /// It sends commands, and logs in to targets.
    pub initiator: bool,
    /// It takes commands.
    pub target: bool,
}

/// Settings of an N_Port. The defaults of times are those of FC-FS-2 and of Linux's libfc.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the port.
    pub port: Wwn,
    /// Name of the node.
    pub node: Wwn,
    /// Symbolic name of the port, at most 255 bytes.
    pub port_symbol: String,
    /// Symbolic name of the node, at most 255 bytes.
    pub node_symbol: String,
    /// Its part in SCSI; neither for a port that only carries a load.
    pub role: Role,
    /// FC-4 type that the port registers, and looks for.
    pub kind: FrameType,
    /// The port asks for a further address of its link (FDISC), not for the first one (FLOGI).
    pub further: bool,
    /// Frames that the port has buffers for.
    pub buffer_credits: u16,
    /// Longest payload that it takes, bytes: 256 to 2112.
    pub receive_bytes: u16,
    /// R_A_TOV, ms, until the fabric says its own.
    pub r_a_tov_ms: u32,
    /// E_D_TOV, ms, until the fabric says its own. A request without an answer is sent again after so long.
    pub e_d_tov_ms: u32,
    /// Attempts of a request before the port holds it for failed.
    pub attempts: u32,
    /// Ports that may be logged in with this one at once.
    pub peers_max: usize,
}

impl Settings {
    /// A port with names and a role; everything else as usual.
    pub fn new(port: Wwn, node: Wwn, role: Role) -> Settings {
        Settings {
            port,
            node,
            port_symbol: "elephan".to_string(),
            node_symbol: "elephan".to_string(),
            role,
            kind: FrameType::FCP,
            further: false,
            buffer_credits: 16,
            receive_bytes: 2048,
            r_a_tov_ms: 10_000,
            e_d_tov_ms: 2_000,
            attempts: 4,
            peers_max: 1024,
        }
    }
}
