//! Settings of a tunnel's end.

use super::flows::Spread;
use wire::fc::Wwn;

/// Settings of one end of a tunnel.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of this end's switch.
    pub own: Wwn,
    /// Number of this end among those of its switch.
    pub entity: u64,
    /// Name of the switch at the other end; nobody else may connect.
    pub peer: Wwn,
    /// Time without a frame after which a keep-alive goes through a connection that this end opens, ms (K_A_TOV). Twice
    /// as long without a sign of the peer ends the connection. 0 = no keep-alives.
    pub keep_alive_ms: u32,
    /// Classes that a connection is for, in the order in which this end opens connections; the last holds for all
    /// further ones. Empty: all classes (RFC 3821, 7.1, usage flags).
    pub usage: Vec<u8>,
    /// A peer that asks for nobody, or for another, is told this end's name before it is cut off (RFC 3821, 8.1.3).
    pub tells_name: bool,
    /// Time for the special frame to come, ms. RFC 3821, 8.1.2.3: not less than 90 s.
    pub special_frame_ms: u32,
    /// Connections at once, those that are being opened included.
    pub connections_max: usize,
    /// Bytes that wait for one connection; beyond, [`super::Tunnel::handle_frame`] gives frames back.
    pub held_bytes_max: usize,
    /// Bytes that wait for [`super::Tunnel::poll_frame`]; beyond, [`super::Tunnel::wants_input`] is false.
    pub received_bytes_max: usize,
    /// Way of frames on connections.
    pub spread: Spread,
    /// Exchanges whose connection is remembered.
    pub flows_max: usize,
    /// Longest way of a frame of classes 2, 3 and 4, ms: half of R_A_TOV.
    pub transit_ms: u32,
    /// Longest way of a frame of class F, ms: half of E_D_TOV.
    pub transit_class_f_ms: u32,
}

impl Settings {
    /// Settings of a tunnel between two switches; everything else as usual.
    pub fn new(own: Wwn, peer: Wwn) -> Settings {
        Settings {
            own,
            entity: 1,
            peer,
            keep_alive_ms: 1_000,
            usage: Vec::new(),
            tells_name: false,
            special_frame_ms: 90_000,
            connections_max: 16,
            held_bytes_max: 1 << 20,
            received_bytes_max: 1 << 20,
            spread: Spread::Exchange,
            flows_max: 1 << 16,
            transit_ms: 5_000,
            transit_class_f_ms: 1_000,
        }
    }
}
