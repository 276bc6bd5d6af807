//! RACK's variables, and the retransmissions that it judges.

use std::collections::VecDeque;

/// A retransmission that awaits its fate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resent {
    pub index: u64,
    pub tx_ns: u64,
}

/// RACK's variables (RFC 8985, 5.2).
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Transmission time of the most recently sent segment delivered, ns.
    pub xmit_ns: u64,
    /// Its end.
    pub end_seq: u64,
    /// Its RTT, ns.
    pub rtt_ns: u64,
    /// Changed since the last detection.
    pub advanced: bool,
    pub dsack_seen: bool,
    /// Multiple of min_rtt / 4.
    pub reo_wnd_steps: u32,
    /// Recoveries for which that is kept.
    pub reo_wnd_persist: u32,
    /// `delivered` when it was last adjusted.
    pub last_delivered: u32,
    /// First original not yet judged.
    pub cursor: u64,
    /// Retransmissions in order of time.
    pub resent: VecDeque<Resent>,
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            xmit_ns: 0,
            end_seq: 0,
            rtt_ns: 0,
            advanced: false,
            dsack_seen: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            last_delivered: 0,
            cursor: 0,
            resent: VecDeque::new(),
        }
    }
}

impl Rack {
    /// Returns whether an ACK that reports no duplicate leaves the reordering window as it is (`rack_adjust_reo_wnd`).
    #[inline]
    pub fn keeps_reo_wnd(&self) -> bool {
        !self.dsack_seen && (self.reo_wnd_steps == 1 || self.reo_wnd_persist != 0)
    }

    /// Returns whether something sent at `tx_ns`, ending at `end`, was sent before the most recent one delivered.
    #[inline]
    pub fn sent_before(&self, tx_ns: u64, end: u64) -> bool {
        self.xmit_ns > tx_ns || (self.xmit_ns == tx_ns && self.end_seq > end)
    }
}
