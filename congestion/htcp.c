/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * H-TCP: growth by the time since the last loss, backoff by what the queue held.
 *
 * Idea. A flow that has lost nothing for long is on a path that holds more than it uses: let its growth per round trip
 * rise with the time since its last loss, whatever its window, so that flows old and new grow alike. For the first
 * second it is Reno, so that it is Reno on any path where Reno does well. At a loss give back just what stood in the
 * queue: RTT_min / RTT_max of the window fills the path without a queue. Where the bandwidth has changed since the loss
 * before, that ratio is of another path: halve the window.
 *
 * Equations (W = cwnd, segments; d = s since the last loss was repaired)
 *	f = 1						d <= delta_l
 *	f = 1 + 10 (d - delta_l) + (d - delta_l)^2 / 4	d > delta_l
 *	f = max(f R, 1), R = RTT_min / 0.1 s, 0.1 to 2	d > delta_l, with rtt_scaling
 *	each ACK: W += acked alpha / W, alpha = 2 (1 - beta) f; no faster than slow start
 *	loss: beta = RTT_min / RTT_max, beta_min to beta_max; ssthresh = max(beta W, 2)
 *	loss: beta = beta_min instead where the throughput since the last loss was another than before that, by more
 *	than a share of throughput_switch; at the loss that follows such a one; and without adaptive_backoff
 * With delta_l = 1 and no scaling f is 11.25 at d = 2 s, 22 at 3 s, 126 at 11 s.
 * Throughput: segments per round of at least RTT_min and about W segments, each round with a weight of 1/4 from the
 * fourth RTT_min of an epoch on. RTT_max follows samples up to 20 ms above it, and forgets 5 % of RTT_max - RTT_min at
 * each loss, since routes change.
 *
 * Parameters
 *	delta_l			s after a loss during which it is Reno; 1
 *	adaptive_backoff	on: backoff by the RTTs; off: always beta_min
 *	beta_min, beta_max	bounds of the share kept; 0.5 and 0.8
 *	throughput_switch	change of throughput that halves the window; 0.2; 0: never
 *	rtt_scaling		on: growth per second, not per round trip, alike for RTTs of 10 to 200 ms; Linux: on
 *
 * If there is a choice this is Linux: 2 (1 - beta) in the first second too, as in the paper (FreeBSD, by the draft,
 * keeps alpha at 1 then); d begins when a loss is repaired, not when it is seen; the 20 ms.
 * And where this differs from Linux, by the paper: f keeps its fraction; the round trip does not scale the first second
 * (there an RTT of 200 ms makes it twice as fast as Reno); the first segment after a loss counts by the new alpha;
 * beta follows the RTTs below 10 ms as well, since they are known to a us, not to a tick; a spurious loss restores
 * RTT_max and throughput as they were before it, not after; an ACK may raise the window by more than one segment, and
 * the one that does counts itself; RTT_min and RTT_max are of single RTTs, and at any time but in a recovery (Linux has
 * them of the smoothed RTT, in congestion avoidance alone, RTT_max from 3 RTT_min after a loss on).
 *
 * Variants. throughput_switch = 0 and rtt_scaling = off are Linux's use_bandwidth_switch = 0 and use_rtt_scaling = 0.
 *
 * Checked. f, beta, alpha and scaling against Y.-T. Li's thesis, 6.1.3, which quotes the paper; 0.5, 0.8, 0.2, 95 %, 20
 * ms and the rounds against tcp_htcp of Linux 2.6.22. Not checked against paper and draft: text not found.
 *
 * Ranges. Windows: u32. Clock: u64 us. alpha: 2^-10 segments per RTT, up to 2^31 (2 million segments); times u32
 * segments acknowledged the credit ends below 2^63 + 2^42. d - delta_l: 2^-10 s, up to 2^22 (4096 s). Throughput: u32
 * segments/s, 34 million at 400 Gbit/s.
 *
 * Source: Leith, Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004;
 * draft-leith-tcp-htcp-06; Linux's tcp_htcp.
 * Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(delta_l, 1000, 0, 100000, 1000, "s", "time after a loss during which it is Reno"),
	(adaptive_backoff, 1, 0, 1, 1, "bool", "keep RTT_min / RTT_max of the window at a loss; off: beta_min"),
	(beta_min, 512, 103, 1014, 1024, "1", "least share of the window kept at a loss"),
	(beta_max, 819, 103, 1014, 1024, "1", "greatest share of the window kept at a loss"),
	(throughput_switch, 200, 0, 1000, 1000, "1", "change of throughput that calls for beta_min; 0: none does"),
	(rtt_scaling, 1, 0, 1, 1, "bool", "growth per second alike for RTTs of 10 to 200 ms"));

/* One share, one segment of alpha, one second of the growth function. */
#define ONE 1024
#define ONE_SHIFT 10

/* Furthest that the growth function is evaluated at, 2^-10 s; 4.2 million segments per RTT there. */
#define MAX_ELAPSED (1ull << 22)

#define MAX_ALPHA (1ull << 31)

/* RTT that scaling makes the others like, and the least and greatest that it does this for, us (draft, Linux). */
#define RTT_REFERENCE_US 100000
#define RTT_SCALED_MIN_US 10000
#define RTT_SCALED_MAX_US 200000

/* A sample further above RTT_max than this is not the queue's, us (Linux). */
#define RTT_MAX_STEP_US 20000

/* Throughput in the first round trips of an epoch is taken as it is (Linux). */
#define FRESH_ROUNDS 3

#define MIN_SSTHRESH 2

struct htcp {
	u64 lossless_since_us;	/* when the last loss was repaired */
	u64 credit;		/* acked alpha, not yet turned into growth; below cwnd << ONE_SHIFT */
	u64 round_start_us;	/* throughput: start of the round */
	u64 undo_since_us;	/* lossless_since_us before the loss under repair */
	u32 alpha;		/* growth per RTT, 2^-10 segments */
	u32 beta;		/* share kept at the last loss, of ONE */
	u32 min_rtt_us;		/* 0 = none yet */
	u32 max_rtt_us;
	u32 undo_max_rtt_us;
	u32 round_acked;	/* throughput: segments acknowledged in the round */
	u32 throughput;		/* smoothed, segments/s */
	u32 most;		/* greatest of the epoch */
	u32 last_most;		/* greatest of the epoch before */
	u32 undo_last_most;
	u8 steady;		/* the loss before did not call for beta_min */
	u8 undo_steady;
	u8 repairing;		/* a loss is under repair, and may yet be undone */
};

CC_STATE(struct htcp);

static inline void update_alpha(struct cc_sock *sk, struct htcp *ca)
{
	u64 elapsed_us = cc_now_us(sk) - ca->lossless_since_us;
	u64 delta_l_us = (u64)cc_param(sk, delta_l) * 1000;
	u64 f = ONE;

	if (elapsed_us > delta_l_us) {
		/* Bounded first: 2^42 us x 2^10 fits in 64 bits. */
		u64 t = (cc_min(elapsed_us - delta_l_us, 1ull << 42) << ONE_SHIFT) / 1000000;

		t = cc_min(t, MAX_ELAPSED);
		f = ONE + 10 * t + (t * t >> (ONE_SHIFT + 2));
		if (cc_param(sk, rtt_scaling) && ca->min_rtt_us) {
			u64 rtt = cc_min(cc_max(ca->min_rtt_us, RTT_SCALED_MIN_US), RTT_SCALED_MAX_US);

			f = cc_max(f * rtt / RTT_REFERENCE_US, ONE);
		}
	}
	ca->alpha = (u32)cc_min(f * (2 * (ONE - ca->beta)) >> ONE_SHIFT, MAX_ALPHA);
}

static void htcp_init(struct cc_sock *sk)
{
	struct htcp *ca = cc_state(sk);

	ca->lossless_since_us = cc_now_us(sk);
	ca->round_start_us = cc_now_us(sk);
	ca->beta = (u32)cc_param(sk, beta_min);
	update_alpha(sk, ca);
}

/* The path is not the one that the RTTs are of: its throughput has changed. */
static inline int has_changed(struct cc_sock *sk, struct htcp *ca)
{
	u64 change = ca->most > ca->last_most ? ca->most - ca->last_most : ca->last_most - ca->most;
	u64 share = (u64)cc_param(sk, throughput_switch);

	return share && change * 1000 > share * ca->last_most;
}

static inline u32 backoff(struct cc_sock *sk, struct htcp *ca)
{
	u64 least = (u64)cc_param(sk, beta_min);
	u64 ratio = cc_div((u64)ca->min_rtt_us * ONE, ca->max_rtt_us);
	int changed = has_changed(sk, ca);
	int was_steady = ca->steady;

	ca->steady = !changed;
	if (changed || !was_steady || !cc_param(sk, adaptive_backoff))
		return (u32)least;
	return (u32)cc_max(cc_min(ratio, (u64)cc_param(sk, beta_max)), least);
}

static u32 htcp_ssthresh(struct cc_sock *sk)
{
	struct htcp *ca = cc_state(sk);
	u64 cwnd = cc_snd_cwnd(sk);

	ca->undo_since_us = ca->lossless_since_us;
	ca->undo_max_rtt_us = ca->max_rtt_us;
	ca->undo_last_most = ca->last_most;
	ca->undo_steady = ca->steady;
	ca->repairing = 1;

	ca->beta = backoff(sk, ca);
	ca->last_most = ca->most;
	if (ca->max_rtt_us > ca->min_rtt_us)
		ca->max_rtt_us = ca->min_rtt_us + (u32)((u64)(ca->max_rtt_us - ca->min_rtt_us) * 95 / 100);
	ca->credit = 0;
	ca->lossless_since_us = cc_now_us(sk);
	update_alpha(sk, ca);
	return (u32)cc_max(cwnd * ca->beta / ONE, MIN_SSTHRESH);
}

static void htcp_set_state(struct cc_sock *sk, u8 state)
{
	struct htcp *ca = cc_state(sk);

	if (state != CC_OPEN || !ca->repairing)
		return;
	ca->repairing = 0;
	ca->lossless_since_us = cc_now_us(sk);
	update_alpha(sk, ca);
}

static u32 htcp_undo_cwnd(struct cc_sock *sk)
{
	struct htcp *ca = cc_state(sk);

	if (ca->repairing) {
		ca->repairing = 0;
		ca->lossless_since_us = ca->undo_since_us;
		ca->max_rtt_us = ca->undo_max_rtt_us;
		ca->last_most = ca->undo_last_most;
		ca->steady = ca->undo_steady;
		update_alpha(sk, ca);
	}
	return cc_undo_cwnd(sk);
}

static inline void measure_rtt(struct cc_sock *sk, struct htcp *ca, u32 rtt_us)
{
	if (!ca->min_rtt_us || rtt_us < ca->min_rtt_us)
		ca->min_rtt_us = rtt_us;
	if (cc_ca_state(sk) != CC_OPEN)
		return;
	ca->max_rtt_us = (u32)cc_max(ca->max_rtt_us, ca->min_rtt_us);
	if (rtt_us > ca->max_rtt_us && rtt_us - ca->max_rtt_us <= RTT_MAX_STEP_US)
		ca->max_rtt_us = rtt_us;
}

static inline void measure_throughput(struct cc_sock *sk, struct htcp *ca, u32 acked)
{
	u64 now = cc_now_us(sk);
	u64 took = now - ca->round_start_us;
	u64 round = cc_snd_cwnd(sk) - cc_min(cc_max(ca->alpha >> ONE_SHIFT, 1), cc_snd_cwnd(sk));
	u32 rate;

	/* Segments delivered in recovery say nothing of the path. */
	if (cc_ca_state(sk) > CC_DISORDER) {
		ca->round_acked = 0;
		ca->round_start_us = now;
		return;
	}
	ca->round_acked = (u32)cc_min((u64)ca->round_acked + acked, ~0u);
	if (ca->round_acked < round || !ca->min_rtt_us || took < ca->min_rtt_us)
		return;
	rate = (u32)cc_min((u64)ca->round_acked * 1000000 / took, ~0u);
	if (now - ca->lossless_since_us <= (u64)FRESH_ROUNDS * ca->min_rtt_us) {
		ca->throughput = rate;
		ca->most = rate;
	} else {
		ca->throughput = (u32)((3 * (u64)ca->throughput + rate) / 4);
		ca->most = (u32)cc_max(ca->most, ca->throughput);
	}
	ca->round_acked = 0;
	ca->round_start_us = now;
}

static void htcp_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	struct htcp *ca = cc_state(sk);
	s32 rtt = cc_sample_rtt_us(sample);

	if (rtt > 0)
		measure_rtt(sk, ca, (u32)rtt);
	measure_throughput(sk, ca, cc_sample_pkts_acked(sample));
}

static void htcp_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct htcp *ca = cc_state(sk);
	u64 per_segment, grown;

	(void)ack;
	if (!cc_reaches_avoidance(sk, &acked))
		return;
	per_segment = (u64)cc_snd_cwnd(sk) << ONE_SHIFT;
	ca->credit += (u64)acked * ca->alpha;
	if (ca->credit < per_segment)
		return;
	grown = cc_div(ca->credit, per_segment);
	ca->credit -= grown * per_segment;
	cc_set_snd_cwnd(sk, (u32)cc_min(cc_snd_cwnd(sk) + cc_min(grown, acked), cc_snd_cwnd_clamp(sk)));
	update_alpha(sk, ca);
}

CC_ALGORITHM(htcp, "growth by the time since the last loss, backoff by what the queue held",
	"Leith, Shorten, PFLDnet 2004; draft-leith-tcp-htcp-06",
	(init, htcp_init),
	(ssthresh, htcp_ssthresh),
	(cong_avoid, htcp_cong_avoid),
	(set_state, htcp_set_state),
	(pkts_acked, htcp_pkts_acked),
	(undo_cwnd, htcp_undo_cwnd));
