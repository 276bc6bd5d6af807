//! State gathered while one ACK is processed.

use crate::scoreboard::{tag, Entry, SentRate};

/// Properties of an ACK, with Linux's values: `cong_control` gets them.
pub(crate) mod flag {
    pub const DATA: u32 = 0x01;
    pub const WIN_UPDATE: u32 = 0x02;
    pub const DATA_ACKED: u32 = 0x04;
    pub const RETRANS_DATA_ACKED: u32 = 0x08;
    pub const DATA_SACKED: u32 = 0x20;
    pub const ECE: u32 = 0x40;
    pub const LOST_RETRANS: u32 = 0x80;
    pub const ORIG_SACK_ACKED: u32 = 0x200;
    pub const SND_UNA_ADVANCED: u32 = 0x400;
    pub const DSACKING_ACK: u32 = 0x800;
    pub const SET_XMIT_TIMER: u32 = 0x1000;
    pub const ACK_MAYBE_DELAYED: u32 = 0x10000;
    pub const DSACK_TLP: u32 = 0x20000;
    /// Not a duplicate ACK.
    pub const NOT_DUP: u32 = DATA | WIN_UPDATE | DATA_ACKED;
    /// The recovery state machine has to run.
    pub const CA_ALERT: u32 = DATA_SACKED | ECE | DSACKING_ACK;
    /// Data was delivered.
    pub const FORWARD_PROGRESS: u32 = DATA_ACKED | DATA_SACKED;
}

/// State gathered while one ACK is processed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckState {
    pub flag: u32,
    pub prior_una: u64,
    pub prior_fack: u64,
    pub prior_in_flight: u32,
    pub prior_delivered: u32,
    pub prior_delivered_ce: u32,
    pub prior_lost: u32,
    /// Timestamp echoed, ms; 0 = none.
    pub ecr: u32,
    /// Lowest never retransmitted byte that was delivered after higher ones.
    pub reord: u64,
    /// Transmission times of the first and last newly SACKed originals, ns; 0 = none.
    pub first_sackt: u64,
    pub last_sackt: u64,
    /// RTT of the newest segment delivered, us; -1 = unknown.
    pub ca_rtt_us: i64,
    pub newest: Newest,
}

/// The most recently sent of the segments that an ACK delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newest {
    pub valid: bool,
    pub entry: Entry,
    pub rate: SentRate,
}

impl Newest {
    /// A segment has been delivered.
    #[inline]
    pub fn delivered(&mut self, entry: &Entry, rate: SentRate) {
        if entry.flags & tag::RATED != 0 {
            return;
        }
        let best = &self.entry;
        if !self.valid || entry.tx_ns > best.tx_ns || (entry.tx_ns == best.tx_ns && entry.end() > best.end()) {
            self.valid = true;
            self.entry = *entry;
            self.rate = rate;
        }
    }
}
