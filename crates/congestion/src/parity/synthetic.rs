//! Sequences of calls that reach the ends of every range: what a long fat path gives, and what none would.
//!
//! The order of calls is Linux's; the numbers are drawn so that small, usual and extreme ones meet. A sequence is
//! made natively, call by call, and only what each call was given is handed out.

use super::hook_call::{
    call, HookCall, CONG_AVOID, CONG_CONTROL, CWND_EVENT, HOOKS, HOOK_CALL_BYTES, INIT, IN_ACK_EVENT, MIN_TSO_SEGS,
    PKTS_ACKED, RELEASE, SET_STATE, SSTHRESH, UNDO_CWND,
};
use crate::controller::{Controller, ParamError};
use crate::descriptor::Algorithm;
use crate::sock::{AckSample, CaState, CcSock, RateSample};
use std::collections::BTreeMap;

/// Segments of 400 Gbit/s x 1 s: the widest window that the algorithms state their ranges for.
const WIDEST: u64 = 34_000_000;

/// Calls of one connection.
const CONNECTION: usize = 400;

/// Numbers by splitmix64 (Steele, Lea, Flood, OOPSLA 2014): any seed will do, and the same one gives the same sequence.
struct Draw(u64);

impl Draw {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Up to `most`: one of a few, an end, or of any number of digits.
    fn upto(&mut self, most: u64) -> u64 {
        match self.below(8) {
            0 => self.below(4).min(most),
            1 => most - self.below(3).min(most),
            2 => self.below(most.saturating_add(1)),
            _ => {
                let digits = u64::from(64 - most.leading_zeros());
                (self.bits() >> 1 >> (63 - self.below(digits + 1).min(63))).min(most)
            }
        }
    }

    fn number(&mut self, most: u64) -> u32 {
        self.upto(most.min(u32::MAX.into())) as u32
    }

    fn flag(&mut self) -> u8 {
        (self.bits() & 1) as u8
    }
}

/// `count` calls under `algorithm` with the parameters `values`, as the first halves ([`HookCall::after`] = 0) of a
/// recording. Each call begins where the native build left the one before, but for what TCP changes in between.
///
/// # Errors
/// A parameter that the algorithm does not have, or a value outside its range.
pub fn synthetic(
    algorithm: &Algorithm,
    values: &BTreeMap<String, i64>,
    seed: u64,
    count: usize,
) -> Result<Vec<u8>, ParamError> {
    let mut draw = Draw(seed);
    let mut control = Controller::new(algorithm, values)?;
    let params = control.sock().params;
    let has: Vec<_> = HOOKS.iter().map(|hook| algorithm.hooks().contains(hook)).collect();
    let mut bytes = Vec::with_capacity(count * HOOK_CALL_BYTES);
    let (mut made, mut connection) = (0, 0);
    while made < count {
        connection += 1;
        *control.sock_mut() = fresh(&mut draw, params);
        let mut calls = vec![INIT];
        for _ in 0..CONNECTION {
            if made == count {
                break;
            }
            if calls.is_empty() {
                calls = next_calls(&mut draw);
                between(&mut draw, control.sock_mut());
            }
            let hook = calls.remove(0);
            if !has[hook as usize] {
                continue;
            }
            if hook == INIT {
                control.sock_mut().private = Default::default();
            }
            let one = given(&mut draw, hook, connection, control.sock());
            one.write(&mut bytes);
            made += 1;
            let result = call(&mut control, &one);
            as_tcp_does(&mut draw, control.sock_mut(), &one, result);
        }
    }
    Ok(bytes)
}

fn fresh(draw: &mut Draw, params: [i64; crate::sock::MAX_PARAMS]) -> CcSock {
    let mss_cache = [1448, 536, 88, 8948, 65_483][draw.below(5) as usize];
    CcSock {
        snd_cwnd: draw.number(WIDEST).max(1),
        snd_una: draw.bits() as u32,
        mss_cache,
        gso_max_bytes: if draw.one_in(4) { 0 } else { draw.number(1 << 19) },
        ecn_flags: draw.flag(),
        pacing_status: draw.below(3) as u8,
        pacing_rate: if draw.one_in(2) { u64::MAX } else { draw.upto(u64::MAX) },
        // Up to the age of a kernel that has run for 30 years, us.
        tcp_mstamp_us: draw.upto(1_000_000_000_000_000),
        params,
        ..CcSock::default()
    }
}

/// The calls of one event, in Linux's order.
fn next_calls(draw: &mut Draw) -> Vec<u32> {
    match draw.below(20) {
        0 => vec![SSTHRESH, SET_STATE],
        1 => vec![SET_STATE],
        2 => vec![UNDO_CWND],
        3..=4 => vec![CWND_EVENT],
        5 if draw.one_in(20) => vec![RELEASE, INIT],
        _ => vec![IN_ACK_EVENT, PKTS_ACKED, CONG_AVOID, CONG_CONTROL, MIN_TSO_SEGS],
    }
}

/// Changes the sender as TCP does between two events.
fn between(draw: &mut Draw, sock: &mut CcSock) {
    sock.tcp_mstamp_us += match draw.below(4) {
        0 => draw.below(10),
        1 => draw.below(200_000),
        2 => 0,
        _ => draw.upto(1 << 40),
    };
    let now = sock.tcp_mstamp_us;
    sock.packets_out = if draw.one_in(3) { draw.number(WIDEST) } else { sock.snd_cwnd.min(WIDEST as u32) };
    sock.sacked_out = draw.number(sock.packets_out.into());
    sock.lost_out = draw.number((sock.packets_out - sock.sacked_out).into());
    sock.retrans_out = draw.number(sock.lost_out.into());
    sock.max_packets_out = draw.number(WIDEST);
    sock.is_cwnd_limited = draw.flag();
    sock.snd_una = sock.snd_una.wrapping_add(draw.number(u32::MAX.into()));
    sock.snd_nxt = sock.snd_una.wrapping_add(draw.number(1 << 30));
    sock.delivered = sock.delivered.wrapping_add(draw.number(WIDEST));
    sock.delivered_ce = sock.delivered_ce.wrapping_add(if draw.one_in(4) { draw.number(WIDEST) } else { 0 });
    sock.lost = sock.lost.wrapping_add(draw.number(1000));
    sock.delivered_mstamp_us = now - draw.upto(now);
    sock.first_tx_mstamp_us = now - draw.upto(now);
    sock.lsndtime_us = now - draw.upto(now);
    sock.next_send_us = now.saturating_add(draw.upto(10_000_000)).saturating_sub(draw.upto(10_000_000));
    if draw.one_in(2) {
        // 8 times an RTT of up to 536 s, all that the field holds.
        sock.srtt_us = draw.number(u32::MAX.into());
        sock.min_rtt_us = sock.min_rtt_us.min(draw.number(u32::MAX.into()));
    }
    if draw.one_in(50) {
        sock.min_rtt_us = if draw.one_in(2) { u32::MAX } else { draw.number(u32::MAX.into()) };
    }
    if draw.one_in(10) {
        sock.snd_cwnd_clamp = if draw.one_in(2) { u32::MAX } else { draw.number(WIDEST).max(1) };
        sock.snd_cwnd = sock.snd_cwnd.min(sock.snd_cwnd_clamp);
    }
    if draw.one_in(10) {
        sock.pacing_rate = draw.upto(u64::MAX).max(1);
    }
    if draw.one_in(20) {
        sock.snd_cwnd = draw.number(WIDEST).max(1);
        sock.snd_ssthresh = draw.number(0x7fff_ffff).max(2);
    }
    sock.app_limited = if draw.one_in(3) { draw.number(u32::MAX.into()) } else { 0 };
}

/// One call: the sender and what goes with it.
fn given(draw: &mut Draw, hook: u32, connection: u64, sock: &CcSock) -> HookCall {
    let acked = draw.number(WIDEST).max(1);
    let rtt_us = if draw.one_in(8) { -1 } else { draw.number(i32::MAX as u64) as i32 };
    let args = match hook {
        CONG_AVOID => [sock.snd_una, acked],
        CONG_CONTROL => [sock.snd_una, draw.number(0xffff)],
        SET_STATE => [draw.below(5) as u32, 0],
        CWND_EVENT => [draw.below(6) as u32, 0],
        IN_ACK_EVENT => [draw.below(8) as u32, 0],
        _ => [0, 0],
    };
    let mut ack = AckSample::default();
    if hook == PKTS_ACKED {
        ack = AckSample { pkts_acked: acked, rtt_us, in_flight: draw.number(WIDEST) };
    }
    let mut rate = RateSample::default();
    if hook == CONG_CONTROL {
        rate = RateSample {
            prior_mstamp_us: sock.tcp_mstamp_us - draw.upto(sock.tcp_mstamp_us),
            prior_delivered: sock.delivered.wrapping_sub(draw.number(WIDEST)),
            prior_delivered_ce: sock.delivered_ce.wrapping_sub(draw.number(WIDEST)),
            delivered: if draw.one_in(8) { -1 } else { draw.number(i32::MAX as u64) as i32 },
            delivered_ce: draw.number(WIDEST) as i32,
            interval_us: if draw.one_in(8) { -1 } else { draw.upto(u32::MAX.into()) as i64 },
            snd_interval_us: draw.number(u32::MAX.into()),
            rcv_interval_us: draw.number(u32::MAX.into()),
            rtt_us: rtt_us.into(),
            losses: if draw.one_in(2) { 0 } else { draw.number(WIDEST) as i32 },
            acked_sacked: if draw.one_in(8) { 0 } else { acked },
            prior_in_flight: draw.number(WIDEST),
            last_end_seq: sock.snd_una.wrapping_add(draw.number(1 << 30)),
            is_app_limited: draw.flag(),
            is_retrans: draw.flag(),
            is_ack_delayed: draw.flag(),
            pad: 0,
        };
    }
    HookCall { hook, after: 0, connection, args, result: 0, ticks: 0, rate, ack, pad: 0, sock: sock.clone() }
}

/// Applies a call's result as TCP does.
fn as_tcp_does(draw: &mut Draw, sock: &mut CcSock, one: &HookCall, result: Option<u32>) {
    match (one.hook, result) {
        (SSTHRESH, Some(threshold)) => {
            sock.prior_cwnd = sock.snd_cwnd;
            sock.snd_ssthresh = threshold;
            sock.snd_cwnd = if draw.one_in(4) { 1 } else { threshold.max(1) };
        }
        (UNDO_CWND, Some(window)) => sock.snd_cwnd = window.max(1),
        (SET_STATE, _) => sock.ca_state = (one.args[0] as u8).min(CaState::Loss as u8),
        _ => {}
    }
}
