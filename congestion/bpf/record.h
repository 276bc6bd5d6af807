/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * With -DCC_RECORD: each hook writes into a ring buffer what the algorithm sees of the sender, before and after its
 * call.
 *
 * Read through cc.h's own accessors, so that a field that env.h took from the wrong place is recorded as the algorithm
 * sees it. The algorithm's code is compiled as without: CC_FENCE_ keeps the compiler from carrying anything over from
 * the recording, and nothing is held between before and after, so that the verifier follows the algorithm once.
 */
#ifndef ELEPHAN_CC_BPF_RECORD_H
#define ELEPHAN_CC_BPF_RECORD_H

#pragma push_macro("cc_sock")
#pragma push_macro("cc_ack_sample")
#pragma push_macro("cc_rate_sample")
#undef cc_sock
#undef cc_ack_sample
#undef cc_rate_sample
#include "../native/sock.h"

#define CC_RINGBUF_ 27		     /* BPF_MAP_TYPE_RINGBUF */
#define CC_RING_BYTES_ (1 << 23)     /* 8,000 calls that nobody has read yet; what does not fit is counted */
#define CC_NO_WAKEUP_ 1		     /* BPF_RB_NO_WAKEUP: the reader looks by itself */

struct {
	u32 (*type)[CC_RINGBUF_];
	u32 (*max_entries)[CC_RING_BYTES_];
} cc_ring CC_SECTION(".maps");

/* Records that found no room. */
u64 cc_missed;

static inline void cc_record_sock_(struct cc_sock *to, const struct tcp_sock *sk)
{
	u64 now_us = cc_now_us(sk);

	to->snd_cwnd = cc_snd_cwnd(sk);
	to->snd_ssthresh = cc_snd_ssthresh(sk);
	to->snd_cwnd_cnt = cc_snd_cwnd_cnt(sk);
	to->snd_cwnd_clamp = cc_snd_cwnd_clamp(sk);
	to->prior_cwnd = cc_prior_cwnd(sk);
	to->packets_out = cc_packets_out(sk);
	to->sacked_out = cc_sacked_out(sk);
	to->lost_out = cc_lost_out(sk);
	to->retrans_out = cc_retrans_out(sk);
	to->max_packets_out = cc_max_packets_out(sk);
	to->delivered = cc_delivered(sk);
	to->delivered_ce = cc_delivered_ce(sk);
	to->lost = cc_lost(sk);
	to->app_limited = cc_app_limited(sk);
	to->srtt_us = cc_srtt_us(sk);
	to->min_rtt_us = cc_min_rtt_us(sk);
	to->mss_cache = cc_mss_cache(sk);
	to->snd_una = cc_snd_una(sk);
	to->snd_nxt = cc_snd_nxt(sk);
	to->is_cwnd_limited = cc_cwnd_limited_flag(sk);
	to->ca_state = cc_ca_state(sk);
	to->pacing_status = (u8)cc_pacing_status(sk);
	to->ecn_flags = cc_ecn_flags(sk);
	to->pacing_rate = cc_pacing_rate(sk);
	to->tcp_mstamp_us = now_us;
	to->delivered_mstamp_us = cc_delivered_mstamp_us(sk);
	to->first_tx_mstamp_us = cc_first_tx_mstamp_us(sk);
	/* So that natively now - lsndtime is what cc_idle_us says here. */
	to->lsndtime_us = now_us - cc_idle_us(sk);
	to->next_send_us = cc_next_send_us(sk);
	to->gso_max_bytes = cc_gso_max_bytes(sk);
	for (int i = 0; i < CC_PRIVATE_BYTES / 8; i++)
		to->private[i] = sk->inet_conn.icsk_ca_priv[i];
}

static inline void cc_record_ack_(struct cc_ack_sample *to, const struct ack_sample *sample)
{
	to->pkts_acked = cc_sample_pkts_acked(sample);
	to->rtt_us = cc_sample_rtt_us(sample);
	to->in_flight = cc_sample_in_flight(sample);
}

static inline void cc_record_rate_(struct cc_rate_sample *to, const struct rate_sample *rs)
{
	to->prior_mstamp_us = cc_rs_prior_mstamp_us(rs);
	to->prior_delivered = cc_rs_prior_delivered(rs);
	to->prior_delivered_ce = cc_rs_prior_delivered_ce(rs);
	to->delivered = cc_rs_delivered(rs);
	to->delivered_ce = cc_rs_delivered_ce(rs);
	to->interval_us = cc_rs_interval_us(rs);
	to->snd_interval_us = cc_rs_snd_interval_us(rs);
	to->rcv_interval_us = cc_rs_rcv_interval_us(rs);
	to->rtt_us = cc_rs_rtt_us(rs);
	to->losses = cc_rs_losses(rs);
	to->acked_sacked = cc_rs_acked_sacked(rs);
	to->prior_in_flight = cc_rs_prior_in_flight(rs);
	to->last_end_seq = cc_rs_last_end_seq(rs);
	to->is_app_limited = cc_rs_is_app_limited(rs);
	to->is_retrans = cc_rs_is_retrans(rs);
	to->is_ack_delayed = cc_rs_is_ack_delayed(rs);
}

/* Inlined by force: a function of BPF takes five arguments. */
static inline __attribute__((always_inline)) void
cc_record_(const struct tcp_sock *sk, u32 hook, u32 after, u64 first, u64 second, u64 result,
	const struct ack_sample *ack, const struct rate_sample *rate)
{
	void *(*const reserve)(void *ring, u64 bytes, u64 flags) = (void *(*)(void *, u64, u64))131;
	void (*const submit)(void *record, u64 flags) = (void (*)(void *, u64))132;
	u64 (*const jiffies64)(void) = (u64(*)(void))118;
	struct cc_hook_call *record = reserve(&cc_ring, sizeof(*record), 0);

	if (!record) {
		__sync_fetch_and_add(&cc_missed, 1);
		return;
	}
	*record = (struct cc_hook_call){ .hook = hook, .after = after, .connection = (u64)sk, .result = (u32)result };
	record->ticks = (u32)jiffies64();
	record->args[0] = (u32)first;
	record->args[1] = (u32)second;
	if (ack)
		cc_record_ack_(&record->ack, ack);
	if (rate)
		cc_record_rate_(&record->rate, rate);
	cc_record_sock_(&record->sock, sk);
	submit(record, CC_NO_WAKEUP_);
}

#define CC_FENCE_() __asm__ volatile("" : "+r"(args) : : "memory")
#define CC_RECORD_AS_(hook, after, first, second, result, ack, rate)                                                \
	do {                                                                                                    \
		CC_FENCE_();                                                                                    \
		cc_record_(CC_ARG_SOCK_, hook, after, first, second, result, ack, rate);                           \
		CC_FENCE_();                                                                                    \
	} while (0)

#define CC_BEFORE_(hook, first, second) CC_RECORD_AS_(hook, 0, first, second, 0, 0, 0)
#define CC_BEFORE_ACK_(hook) CC_RECORD_AS_(hook, 0, 0, 0, 0, (const struct ack_sample *)args[1], 0)
#define CC_BEFORE_RATE_(hook) CC_RECORD_AS_(hook, 0, args[1], args[2], 0, 0, (const struct rate_sample *)args[3])
#define CC_AFTER_(hook, result) CC_RECORD_AS_(hook, 1, 0, 0, result, 0, 0)

#pragma pop_macro("cc_sock")
#pragma pop_macro("cc_ack_sample")
#pragma pop_macro("cc_rate_sample")

#endif
