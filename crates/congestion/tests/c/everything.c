/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Uses every accessor and every hook of cc.h: what compiles here, in both environments, an algorithm may rely on. */
#include "cc.h"

CC_PARAMS(
	(first_window, 10, 1, 1000, 1, "segments", "window that init sets"),
	(share, -5, -10, 1000, 1000, "1", "a negative default"));

struct everything {
	u64 sum;
	u32 acks;
	u8 state;
};

CC_STATE(struct everything);

static void every_init(struct cc_sock *sk)
{
	struct everything *ca = cc_state(sk);

	ca->acks = 0;
	cc_set_snd_cwnd(sk, (u32)cc_param(sk, first_window));
	cc_set_snd_cwnd_cnt(sk, 0);
	cc_set_snd_ssthresh(sk, CC_INFINITE_SSTHRESH);
	cc_set_pacing_rate(sk, ~0ull);
	cc_set_pacing_status(sk, cc_pacing_status(sk));
	cc_set_ecn_flags(sk, cc_ecn_flags(sk));
	cc_set_app_limited(sk, cc_app_limited(sk));
}

static void every_release(struct cc_sock *sk)
{
	cc_state(sk)->sum = 0;
}

static u32 every_ssthresh(struct cc_sock *sk)
{
	return (u32)cc_max(cc_div(cc_snd_cwnd(sk), cc_lost_out(sk)), 2);
}

static u64 every_field(struct cc_sock *sk)
{
	u64 sum = cc_snd_cwnd(sk);

	sum += cc_snd_ssthresh(sk);
	sum += cc_snd_cwnd_cnt(sk);
	sum += cc_snd_cwnd_clamp(sk);
	sum += cc_prior_cwnd(sk);
	sum += cc_packets_out(sk);
	sum += cc_sacked_out(sk);
	sum += cc_lost_out(sk);
	sum += cc_retrans_out(sk);
	sum += cc_max_packets_out(sk);
	sum += cc_delivered(sk);
	sum += cc_delivered_ce(sk);
	sum += cc_lost(sk);
	sum += cc_app_limited(sk);
	sum += cc_srtt_us(sk);
	sum += cc_min_rtt_us(sk);
	sum += cc_mss_cache(sk);
	sum += cc_after(cc_snd_nxt(sk), cc_snd_una(sk));
	sum += cc_before(cc_snd_nxt(sk), cc_snd_una(sk));
	sum += cc_cwnd_limited_flag(sk);
	sum += cc_ca_state(sk);
	sum += cc_pacing_status(sk);
	sum += cc_ecn_flags(sk);
	sum += cc_pacing_rate(sk);
	sum += cc_now_us(sk);
	sum += cc_delivered_mstamp_us(sk);
	sum += cc_first_tx_mstamp_us(sk);
	sum += cc_idle_us(sk);
	sum += cc_gso_max_bytes(sk);
	sum += cc_next_send_us(sk);
	sum += cc_in_flight(sk);
	sum += (u64)cc_in_slow_start(sk);
	sum += (u64)cc_is_cwnd_limited(sk);
	sum += cc_cbrt(sum);
	sum += cc_exp2(cc_log2((u32)sum | 1));
	return sum;
}

static void every_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	if (cc_in_slow_start(sk))
		acked = cc_slow_start(sk, acked);
	cc_cong_avoid_ai(sk, cc_snd_cwnd(sk), acked + (ack & 1));
}

static void every_set_state(struct cc_sock *sk, u8 state)
{
	cc_state(sk)->state = state == CC_LOSS ? CC_OPEN : state;
}

static void every_cwnd_event(struct cc_sock *sk, u32 event)
{
	if (event == CC_EVENT_TX_START)
		cc_state(sk)->sum += every_field(sk);
}

static void every_in_ack_event(struct cc_sock *sk, u32 flags)
{
	if (flags & (CC_ACK_SLOWPATH | CC_ACK_WIN_UPDATE | CC_ACK_ECE))
		cc_state(sk)->acks++;
}

static void every_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	s32 rtt_us = cc_sample_rtt_us(sample);

	if (rtt_us >= 0)
		cc_state(sk)->sum += (u32)rtt_us + cc_sample_pkts_acked(sample) + cc_sample_in_flight(sample);
}

static u32 every_min_tso_segs(struct cc_sock *sk)
{
	(void)sk;
	return 1;
}

static void every_cong_control(struct cc_sock *sk, u32 ack, int flag, const struct cc_rate_sample *rs)
{
	u64 sum = ack + (u32)flag;

	if (cc_rs_delivered(rs) < 0 || cc_rs_interval_us(rs) < 0 || cc_rs_rtt_us(rs) < -1)
		return;
	sum += cc_rs_prior_mstamp_us(rs) + cc_rs_prior_delivered(rs) + cc_rs_prior_delivered_ce(rs);
	sum += (u32)cc_rs_delivered_ce(rs) + cc_rs_snd_interval_us(rs) + cc_rs_rcv_interval_us(rs);
	sum += (u32)cc_rs_losses(rs) + cc_rs_acked_sacked(rs) + cc_rs_prior_in_flight(rs) + cc_rs_last_end_seq(rs);
	sum += cc_rs_is_app_limited(rs) + cc_rs_is_retrans(rs) + cc_rs_is_ack_delayed(rs);
	cc_state(sk)->sum += sum + (u64)(cc_param(sk, share) < 0);
	cc_set_snd_cwnd(sk, (u32)cc_min(cc_snd_cwnd(sk) + 1, cc_snd_cwnd_clamp(sk)));
}

CC_ALGORITHM(everything, "every accessor, every hook", "crates/congestion/tests",
	(init, every_init),
	(release, every_release),
	(ssthresh, every_ssthresh),
	(cong_avoid, every_cong_avoid),
	(set_state, every_set_state),
	(cwnd_event, every_cwnd_event),
	(in_ack_event, every_in_ack_event),
	(pkts_acked, every_pkts_acked),
	(min_tso_segs, every_min_tso_segs),
	(cong_control, every_cong_control),
	(undo_cwnd, cc_undo_cwnd),
	(flags, CC_NEEDS_ECN));
