//! Calls of an algorithm's hooks, recorded by test algorithms.
use crate::common::*;
use congestion::{CcSock, Controller};
use std::collections::BTreeMap;
use tcp::config::Config;
use tcp::Endpoint;
use units::{Rate, Size, Span, Time};

const MSS: u64 = 1448;

/// Writes each hook as a hexadecimal digit into state 0, the latest lowest; stops when state 1 is set.
const RECORDER: &str = r#"
#include "cc.h"
CC_NO_PARAMS;
struct log { u64 last; u64 at_ssthresh; u64 events[6]; };
CC_STATE(struct log);
static void put(struct cc_sock *sk, u64 digit) { cc_state(sk)->last = cc_state(sk)->last << 4 | digit; }
static u32 my_ssthresh(struct cc_sock *sk) { put(sk, 5); return (u32)cc_max(cc_snd_cwnd(sk) / 2, 2); }
static void my_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked) { (void)ack; (void)acked; put(sk, 3); }
static void my_set_state(struct cc_sock *sk, u8 state)
{
	put(sk, 6);
	if (state == CC_RECOVERY)
		cc_state(sk)->at_ssthresh = cc_state(sk)->last;
}
static void my_in_ack(struct cc_sock *sk, u32 flags) { (void)flags; put(sk, 1); }
static void my_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *s) { (void)s; put(sk, 2); }
static void my_event(struct cc_sock *sk, u32 event) { if (event < 6) cc_state(sk)->events[event] += 1; }
CC_ALGORITHM(recorder, "writes down", "this test", (ssthresh, my_ssthresh), (cong_avoid, my_cong_avoid),
	(set_state, my_set_state), (in_ack_event, my_in_ack), (pkts_acked, my_pkts_acked), (cwnd_event, my_event),
	(undo_cwnd, cc_undo_cwnd));
"#;

/// Keeps the last rate sample in its state and a window of 60.
const RATE: &str = r#"
#include "cc.h"
CC_NO_PARAMS;
struct seen { u64 delivered; u64 interval_us; u64 rtt_us; u64 app_limited; u64 samples; u64 retrans; u64 losses;
	u64 delayed; };
CC_STATE(struct seen);
static u32 my_ssthresh(struct cc_sock *sk) { return cc_snd_ssthresh(sk); }
static void my_cong_control(struct cc_sock *sk, u32 ack, int flag, const struct cc_rate_sample *rs)
{
	struct seen *s = cc_state(sk);

	(void)ack;
	(void)flag;
	cc_set_snd_cwnd(sk, 60);
	s->losses += (u64)cc_rs_losses(rs);
	s->delayed += cc_rs_is_ack_delayed(rs);
	if (cc_rs_interval_us(rs) <= 0)
		return;
	s->delivered = (u64)cc_rs_delivered(rs);
	s->interval_us = (u64)cc_rs_interval_us(rs);
	s->rtt_us = (u64)cc_rs_rtt_us(rs);
	s->app_limited += cc_rs_is_app_limited(rs);
	s->retrans += cc_rs_is_retrans(rs);
	s->samples += 1;
}
CC_ALGORITHM(rate, "keeps the last rate sample", "this test", (ssthresh, my_ssthresh),
	(cong_control, my_cong_control), (undo_cwnd, cc_undo_cwnd));
"#;

fn compiled(name: &str, source: &str) -> Controller {
    let path = std::env::temp_dir().join(format!("elephan-tcp-test-{}-{name}.c", std::process::id()));
    std::fs::write(&path, source).expect("a file in the temporary folder");
    let algorithm = congestion::compile(&path).expect("the algorithm compiles");
    std::fs::remove_file(&path).expect("the file is removed");
    Controller::new(&algorithm, &BTreeMap::new()).expect("no parameters")
}

fn pair(cfg: Config, controller: Controller) -> Pair {
    let mut pair = Pair::new(cfg.clone());
    pair.client = Endpoint::new_client(cfg, controller, Time::ZERO);
    pair
}

fn sock(pair: &Pair) -> &CcSock {
    pair.client.controller().sock()
}

#[test]
fn hooks_come_in_linux_s_order() {
    let cfg = Config { initial_cwnd: 20, initial_ssthresh: Some(20), ..Config::default() };
    let mut pair = pair(cfg, compiled("recorder", RECORDER)).bottleneck(50_000_000, 100).drop_data(&[30]).connect();
    pair.write(200 * MSS);
    pair.run_until_received(200 * MSS, Time::ZERO + Span::from_secs(60));
    let state = sock(&pair).private;
    // The ACK that starts recovery: in_ack_event, pkts_acked, ssthresh, set_state, and no growth.
    assert_eq!(state[1] & 0xffff, 0x1256, "{:x}", state[1]);
    // The last ACKs of the open state: in_ack_event, pkts_acked, cong_avoid.
    pair.run_for(ms(500));
    assert_eq!(sock(&pair).private[0] & 0xffffff, 0x123123, "{:x}", sock(&pair).private[0]);
    let events = &state[2..8];
    assert_eq!(events[0], 1, "TX_START with the first flight only");
    assert_eq!(events[2], 1, "COMPLETE_CWR once");
    assert_eq!(events[3], 0, "no time-out");
}

#[test]
fn the_rate_sample_is_the_rate_of_the_line_or_of_the_window() {
    for (rate_bps, expected_pps) in [(5_000_000u64, 5_000_000.0 / 12_000.0), (1_000_000_000, 600.0)] {
        let cfg = Config { initial_cwnd: 60, receive_window: Size(1 << 24), ..Config::default() };
        let mut pair = pair(cfg, compiled("rate", RATE)).bottleneck(rate_bps, 1_000).connect();
        pair.write(3_000 * MSS);
        pair.run(at_ms(3_000));
        let [delivered, interval_us, rtt_us, app_limited, samples, retrans, losses, ..] = sock(&pair).private;
        let pps = delivered as f64 * 1e6 / interval_us as f64;
        assert!(
            (pps / expected_pps - 1.0).abs() < 0.05,
            "{pps} segments/s at {rate_bps} bit/s, {expected_pps} expected"
        );
        assert!(samples > 100 && rtt_us >= 100_000);
        // The first flight follows a bubble: nothing had been written before it (tcp_sendmsg marks it so).
        assert!(app_limited <= 60, "{app_limited}");
        assert_eq!((retrans, losses), (0, 0));
    }
}

#[test]
fn an_app_limited_bubble_is_reported() {
    let cfg = Config { initial_cwnd: 60, ..Config::default() };
    let mut pair = pair(cfg, compiled("bubble", RATE)).connect();
    for _ in 0..20 {
        pair.write(5 * MSS);
        pair.run_for(ms(100));
    }
    let [_, _, _, app_limited, samples, ..] = sock(&pair).private;
    assert!(samples > 20 && app_limited * 10 >= samples * 8, "{app_limited} of {samples}");
}

#[test]
fn losses_leave_the_window_of_cong_control_alone() {
    let cfg = Config { initial_cwnd: 60, ..Config::default() };
    let mut pair = pair(cfg, compiled("losses", RATE)).drop_data(&[100, 150, 151]).connect();
    pair.write(2_000 * MSS);
    pair.run_until_received(2_000 * MSS, Time::ZERO + Span::from_secs(60));
    assert_eq!(pair.cwnd(), 60);
    assert_eq!(sock(&pair).private[6], 3, "each loss is told once");
}

#[test]
fn only_the_ack_of_a_lone_short_segment_counts_as_delayed() {
    // Linux's tcp_clean_rtx_queue: less than a full segment, nothing else delivered since it was sent.
    let suspected = |bytes: u64| {
        let mut pair = pair(Config { initial_cwnd: 60, ..Config::default() }, compiled("delayed", RATE)).connect();
        for _ in 0..20 {
            pair.write(bytes);
            pair.run_for(ms(400));
        }
        let [_, _, _, _, samples, _, _, delayed, ..] = sock(&pair).private;
        assert!(samples >= 20, "{samples}");
        delayed
    };
    assert_eq!(suspected(MSS), 0);
    assert_eq!(suspected(2 * MSS - 1), 0, "acknowledged together with a full one");
    assert_eq!(suspected(MSS - 1), 20);
}

#[test]
fn an_algorithm_hears_that_its_sender_is_paced() {
    for (cfg, status) in [
        (Config::default(), 0),
        (Config { pacing: true, ..Config::default() }, 1),
        (Config { max_pacing: Some(Rate(10_000_000)), ..Config::default() }, 1),
    ] {
        let mut pair = Pair::with(cfg.clone(), cfg, "cubic", ms(50)).connect();
        pair.write(10 * MSS);
        pair.run(at_ms(300));
        assert_eq!(sock(&pair).pacing_status, status);
    }
}

#[test]
fn a_paced_sender_schedules_the_next_packet() {
    let cfg = Config { receive_window: Size(1 << 24), ..Config::default() };
    let mut pair = Pair::with(cfg.clone(), cfg, "bbr", ms(50)).bottleneck(10_000_000, 100).connect();
    pair.write(3_000 * MSS);
    pair.run(at_ms(3_000));
    let s = sock(&pair);
    // 10 Mbit/s: a packet each 1.2 ms, 1.6 in the slow phase, and two make the least burst.
    let wait = s.next_send_us.saturating_sub(s.tcp_mstamp_us);
    assert!((1..3_300).contains(&wait), "{wait} us");
}
