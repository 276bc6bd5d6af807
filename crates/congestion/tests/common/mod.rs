//! A sender reduced to what congestion control sees: rounds of ACKs over a path of one RTT, losses on demand.
#![allow(dead_code, reason = "each test file uses its own part")]

use congestion::{find, AckSample, CaState, Controller};
use std::collections::BTreeMap;

pub const MSS: u32 = 1448;

pub struct Flow {
    pub control: Controller,
    pub now_us: u64,
    /// Segments that one ACK acknowledges: 2 is a receiver with delayed ACKs.
    pub per_ack: u32,
    una: u32,
}

pub fn parameters(values: &[(&str, i64)]) -> BTreeMap<String, i64> {
    values.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
}

impl Flow {
    pub fn new(algorithm: &str, values: &[(&str, i64)], cwnd: u32) -> Flow {
        let algorithm = find(algorithm).expect("a built-in algorithm");
        let mut control = Controller::new(&algorithm, &parameters(values)).expect("parameters in range");
        control.sock_mut().snd_cwnd = cwnd;
        control.sock_mut().tcp_mstamp_us = 1_000_000;
        let mut flow = Flow { control, now_us: 1_000_000, per_ack: 1, una: 1 };
        flow.send_all();
        flow.control.init();
        flow
    }

    pub fn cwnd(&self) -> u32 {
        self.control.sock().snd_cwnd
    }

    pub fn ssthresh(&self) -> u32 {
        self.control.sock().snd_ssthresh
    }

    /// The window is full, and is what limits the sender.
    fn send_all(&mut self) {
        let sock = self.control.sock_mut();
        sock.packets_out = sock.snd_cwnd;
        sock.max_packets_out = sock.max_packets_out.max(sock.snd_cwnd);
        sock.is_cwnd_limited = 1;
        sock.snd_una = self.una;
        sock.snd_nxt = self.una.wrapping_add(sock.snd_cwnd.wrapping_mul(MSS));
    }

    /// One ACK for `acked` segments, at `now_us`, after `rtt_us`.
    pub fn ack(&mut self, acked: u32, rtt_us: i32) {
        self.una = self.una.wrapping_add(acked.wrapping_mul(MSS));
        let in_flight = self.control.sock().packets_out;
        let sock = self.control.sock_mut();
        sock.tcp_mstamp_us = self.now_us;
        sock.snd_una = self.una;
        sock.delivered = sock.delivered.wrapping_add(acked);
        self.control.pkts_acked(&AckSample { pkts_acked: acked, rtt_us, in_flight });
        self.control.cong_avoid(self.una, acked);
        self.send_all();
    }

    /// One RTT: every segment of the window acknowledged, `spread_us` from the first ACK to the last.
    pub fn round_spread(&mut self, rtt_us: u64, spread_us: u64) {
        let (start, window) = (self.now_us, self.cwnd());
        let mut left = window;
        while left > 0 {
            let acked = left.min(self.per_ack);
            left -= acked;
            self.now_us = start + rtt_us - spread_us + spread_us * u64::from(window - left) / u64::from(window);
            self.ack(acked, rtt_us as i32);
        }
        self.now_us = start + rtt_us;
    }

    /// One RTT with ACKs evenly over it, as a full path sends them.
    pub fn round(&mut self, rtt_us: u64) {
        self.round_spread(rtt_us, rtt_us);
    }

    /// Rounds until `us` have passed.
    pub fn run_for(&mut self, us: u64, rtt_us: u64) {
        let end = self.now_us + us;
        while self.now_us < end {
            self.round(rtt_us);
        }
    }

    /// A loss repaired by fast recovery within one RTT; the window afterwards is the new threshold.
    pub fn lose(&mut self, rtt_us: u64) {
        self.control.sock_mut().tcp_mstamp_us = self.now_us;
        let threshold = self.reduce(CaState::Recovery);
        self.now_us += rtt_us;
        let sock = self.control.sock_mut();
        sock.tcp_mstamp_us = self.now_us;
        sock.snd_cwnd = threshold;
        self.control.set_state(CaState::Open);
        self.send_all();
    }

    /// A retransmission time-out: the window is 1 segment.
    pub fn time_out(&mut self, rto_us: u64) {
        self.now_us += rto_us;
        self.control.sock_mut().tcp_mstamp_us = self.now_us;
        self.reduce(CaState::Loss);
        self.control.sock_mut().snd_cwnd = 1;
        self.send_all();
    }

    fn reduce(&mut self, state: CaState) -> u32 {
        self.control.sock_mut().prior_cwnd = self.cwnd();
        let threshold = self.control.ssthresh();
        self.control.sock_mut().snd_ssthresh = threshold;
        self.control.sock_mut().snd_cwnd_cnt = 0;
        self.control.set_state(state);
        threshold
    }
}

/// `a` is within `percent` of `b`.
#[track_caller]
pub fn near(a: f64, b: f64, percent: f64) {
    assert!((a - b).abs() <= b.abs() * percent / 100.0, "{a} is not within {percent} % of {b}");
}
