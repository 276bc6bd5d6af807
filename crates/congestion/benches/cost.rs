//! Cost of an ACK in each built-in algorithm: `pkts_acked` and `cong_avoid`, ns per ACK of two segments.
//!
//! The flow is in congestion avoidance, 5,000 segments over 100 ms, and loses one every 2 s.
#![allow(clippy::disallowed_types, reason = "a benchmark reads the clock")]

use congestion::{builtin, AckSample, Algorithm, CaState, Controller};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

const LOSSES: u32 = 200;
const ACKS_PER_LOSS: u32 = 50_000;
const ACK_SPACING_US: u64 = 40;
const RTT_US: i32 = 100_000;

/// The least over many short stretches, each between two losses: what else the machine did is in the others.
fn cost(algorithm: &Algorithm) -> f64 {
    let mut control = Controller::new(algorithm, &BTreeMap::new()).expect("the defaults");
    control.sock_mut().snd_cwnd = 5000;
    control.sock_mut().snd_cwnd_clamp = 1_000_000;
    control.init();
    let mut una = 0_u32;
    let mut least = f64::INFINITY;
    for _ in 0..LOSSES {
        let threshold = control.ssthresh().max(3500);
        control.sock_mut().snd_ssthresh = threshold;
        control.sock_mut().snd_cwnd = threshold;
        control.set_state(CaState::Open);
        let begun = Instant::now();
        for _ in 0..ACKS_PER_LOSS {
            una = una.wrapping_add(2896);
            let sock = control.sock_mut();
            sock.tcp_mstamp_us += ACK_SPACING_US;
            sock.is_cwnd_limited = 1;
            sock.snd_una = una;
            control.pkts_acked(&AckSample { pkts_acked: 2, rtt_us: RTT_US, in_flight: 5000 });
            control.cong_avoid(una, 2);
        }
        least = least.min(begun.elapsed().as_secs_f64() / f64::from(ACKS_PER_LOSS));
        black_box(control.sock().snd_cwnd);
    }
    least * 1e9
}

fn main() {
    for algorithm in builtin() {
        println!("{:<20} {:6.2} ns per ACK", algorithm.name(), cost(algorithm));
    }
}
