/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Linux's module, MODULE, and its calls from the sender that both builds see (sock.h). */
#include "kernel.h"
#include "theirs.h"

#include "linux_functions.h"
#ifdef MODULE
#include MODULE
#else
static struct tcp_congestion_ops reno = {
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.name = "reno",
};
int linux_register(void)
{
	return tcp_register_congestion_control(&reno);
}
#endif

unsigned long jiffies;
struct tcp_congestion_ops *linux_ops;
static struct tcp_sock tp;
struct tcp_sock *linux_sock = &tp;

void theirs_start(void)
{
	linux_register();
	memset(&tp, 0, sizeof(tp));
}

/* What TCP writes, then the call, then what a control writes. */
u32 theirs_call(const struct cc_hook_call *call, struct cc_sock *own)
{
	const struct cc_sock *s = own;
	struct sock *sk = &tp.inet_conn.sk;
	struct ack_sample ack = { call->ack.pkts_acked, call->ack.rtt_us, call->ack.in_flight };
	const struct cc_rate_sample *r = &call->rate;
	struct rate_sample rate = {
		.prior_mstamp = r->prior_mstamp_us,
		.prior_delivered = r->prior_delivered,
		.prior_delivered_ce = r->prior_delivered_ce,
		.delivered = r->delivered,
		.delivered_ce = r->delivered_ce,
		.interval_us = r->interval_us,
		.snd_interval_us = r->snd_interval_us,
		.rcv_interval_us = r->rcv_interval_us,
		.rtt_us = r->rtt_us,
		.losses = r->losses,
		.acked_sacked = r->acked_sacked,
		.prior_in_flight = r->prior_in_flight,
		.last_end_seq = r->last_end_seq,
		.is_app_limited = r->is_app_limited,
		.is_retrans = r->is_retrans,
		.is_ack_delayed = r->is_ack_delayed,
	};
	u32 result = 0;

	tp.snd_cwnd = s->snd_cwnd;
	tp.snd_ssthresh = s->snd_ssthresh;
	tp.snd_cwnd_cnt = s->snd_cwnd_cnt;
	/* A module may lower it (highspeed), and ours cannot: it stays as the module left it. */
	if (call->hook == CC_HOOK_INIT)
		tp.snd_cwnd_clamp = s->snd_cwnd_clamp;
	tp.prior_cwnd = s->prior_cwnd;
	tp.packets_out = s->packets_out;
	tp.sacked_out = s->sacked_out;
	tp.lost_out = s->lost_out;
	tp.retrans_out = s->retrans_out;
	tp.max_packets_out = s->max_packets_out;
	tp.delivered = s->delivered;
	tp.delivered_ce = s->delivered_ce;
	tp.lost = s->lost;
	tp.app_limited = s->app_limited;
	tp.srtt_us = s->srtt_us;
	tp.rtt_min_us = s->min_rtt_us;
	tp.mss_cache = s->mss_cache;
	tp.snd_una = s->snd_una;
	tp.snd_nxt = s->snd_nxt;
	tp.is_cwnd_limited = s->is_cwnd_limited;
	tp.inet_conn.icsk_ca_state = s->ca_state;
	sk->sk_pacing_status = s->pacing_status;
	sk->sk_pacing_rate = s->pacing_rate;
	sk->sk_max_pacing_rate = ~0ul;
	sk->sk_pacing_shift = 10;
	sk->sk_gso_max_size = s->gso_max_bytes ? s->gso_max_bytes : s->mss_cache;
	tp.tcp_mstamp = s->tcp_mstamp_us;
	tp.tcp_clock_cache = s->tcp_mstamp_us * 1000;
	tp.delivered_mstamp = s->delivered_mstamp_us;
	tp.first_tx_mstamp = s->first_tx_mstamp_us;
	tp.tcp_wstamp_ns = s->next_send_us * 1000;
	tp.lsndtime = (u32)(s->lsndtime_us / (1000000 / HZ));
	jiffies = s->tcp_mstamp_us / (1000000 / HZ);

	switch (call->hook) {
	case CC_HOOK_INIT:
		memset(tp.inet_conn.icsk_ca_priv, 0, sizeof(tp.inet_conn.icsk_ca_priv));
		if (linux_ops->init)
			linux_ops->init(sk);
		break;
	case CC_HOOK_SSTHRESH:
		result = linux_ops->ssthresh(sk);
		break;
	case CC_HOOK_CONG_AVOID:
		if (linux_ops->cong_avoid)
			linux_ops->cong_avoid(sk, call->args[0], call->args[1]);
		break;
	case CC_HOOK_SET_STATE:
		if (linux_ops->set_state)
			linux_ops->set_state(sk, (u8)call->args[0]);
		break;
	case CC_HOOK_CWND_EVENT:
		if (linux_ops->cwnd_event)
			linux_ops->cwnd_event(sk, call->args[0]);
		break;
	case CC_HOOK_IN_ACK_EVENT:
		if (linux_ops->in_ack_event)
			linux_ops->in_ack_event(sk, call->args[0]);
		break;
	case CC_HOOK_PKTS_ACKED:
		if (linux_ops->pkts_acked)
			linux_ops->pkts_acked(sk, &ack);
		break;
	case CC_HOOK_MIN_TSO_SEGS:
		result = linux_ops->min_tso_segs ? linux_ops->min_tso_segs(sk) : 0;
		break;
	case CC_HOOK_CONG_CONTROL:
		if (linux_ops->cong_control)
			linux_ops->cong_control(sk, &rate);
		break;
	case CC_HOOK_UNDO_CWND:
		result = linux_ops->undo_cwnd(sk);
		break;
	case CC_HOOK_RELEASE:
		if (linux_ops->release)
			linux_ops->release(sk);
		break;
	}
	own->snd_cwnd = tp.snd_cwnd;
	own->snd_ssthresh = tp.snd_ssthresh;
	own->snd_cwnd_cnt = tp.snd_cwnd_cnt;
	own->app_limited = tp.app_limited;
	own->pacing_status = (u8)sk->sk_pacing_status;
	own->pacing_rate = sk->sk_pacing_rate;
	return result;
}
