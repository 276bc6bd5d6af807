/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Illinois: loss says when to reduce; delay says how fast to grow, and how much to reduce.
 *
 * Idea. Keep Reno's frame, so that loss alone limits the window and the path stays full. But while there is no queue
 * grow ten segments per RTT and reduce by an eighth, since a loss then is not congestion; and as the queue nears its
 * end grow by less than a third of one and reduce by half. The window over time is concave: most of the time it is near
 * its most.
 *
 * Equations (Liu, Basar, Srikant; W = cwnd, segments; once per RTT):
 *	baseRTT, maxRTT = least and largest RTT seen; da = mean RTT of the round - baseRTT; dm = maxRTT - baseRTT
 *	d1 = eta1 dm, d2 = eta2 dm, d3 = eta3 dm
 *	alpha(da) = alpha_max				da <= d1
 *		  = k1 / (k2 + da)			otherwise, from alpha_max at d1 to alpha_min at dm
 *	beta(da)  = beta_min				da <= d2
 *		  = beta_max				da >= d3
 *		  = k3 + k4 da				otherwise, in a straight line
 *	W < win_thresh:	alpha = 1, beta = 1/2 (beta_max)
 *	slow start:	W += acked
 *	avoidance:	W += alpha acked / W
 *	loss:		ssthresh = max(W (1 - beta), 2)
 *	time-out:	the same; then alpha = 1, beta = beta_max until a round has been measured
 * Once above d1, alpha comes back to alpha_max only after theta rounds at or below d1 in a row: one lucky round is no
 * sign. Under random loss p on a path with room W = sqrt((2 - beta) alpha / (2 beta p)), 8.7 / sqrt(p): 7 times Reno's.
 *
 * Parameters
 *	alpha_min, alpha_max	segments per RTT with the fullest and the emptiest queue
 *	beta_min, beta_max	share of the window given up, likewise
 *	eta1, eta2, eta3	shares of dm: alpha_max up to the first, beta_min up to the second, beta_max from the third on
 *	theta			rounds without a queue before alpha is alpha_max again
 *	win_thresh		Reno below this window; segments
 *
 * Variants
 *	published	as above
 *	linux-2.6.22	as Linux was when ns-2 2.35 took it: a loss keeps beta W in place of giving it up, an eighth
 *			without a queue (mended in 2.6.24); the theta rounds need not be in a row; growth drops the
 *			remainder of each segment grown. For comparison with ns-2 alone
 *
 * If the paper and Linux differ, this is Linux: a flow starts with alpha_max; RTTs are averaged over one round; dm is
 * never forgotten, so that one long RTT (a reroute, a receiver that slept) makes all later queues look short. And
 * where this differs from Linux: alpha_min is 0.3 as in the paper (Linux: 38/128, and so on in 1/128 and 1/64); growth
 * keeps its remainder (Linux drops it with each segment grown: at alpha = 10 and W = 15 a third); each segment counts
 * once (Linux counts what pkts_acked said last, or 1); the theta rounds are in a row (Linux adds up all that are low
 * since alpha_max was left); RTTs beyond 3.3 s are used as they are. Variant linux-2.6.22 has the remainder and the
 * rounds as Linux has, not its fractions.
 *
 * Ranges. Windows: u32, tried to 34 million segments; a round is told by sequence numbers, which can be compared while
 * less than 2^31 bytes are in flight (RFC 7323 allows 2^30). RTT: 0 .. 2^31 us. alpha in 1/1000: up to 2^20, times an
 * RTT 2^51, times a segment count 2^45.
 *
 * Source: S. Liu, T. Basar, R. Srikant, "TCP-Illinois: a loss- and delay-based congestion control algorithm for
 * high-speed networks", Performance Evaluation 65(6-7), 2008 (VALUETOOLS 2006); Linux's tcp_illinois. Kernel: as BPF
 * struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(variant, 0, 0, 1, 1, "published|linux-2.6.22", "linux-2.6.22: a loss keeps beta of the window, as in ns-2"),
	(alpha_min, 300, 1, 1000000, 1000, "segments", "growth per RTT when the queue is at its longest"),
	(alpha_max, 10000, 1, 1000000, 1000, "segments", "growth per RTT while there is no queue"),
	(beta_min, 125, 1, 900, 1000, "1", "share of the window given up when there is no queue"),
	(beta_max, 500, 1, 900, 1000, "1", "share of the window given up when the queue is long"),
	(eta1, 10, 0, 1000, 1000, "1", "share of the longest queue up to which growth is alpha_max"),
	(eta2, 100, 0, 1000, 1000, "1", "share of the longest queue up to which the reduction is beta_min"),
	(eta3, 800, 0, 1000, 1000, "1", "share of the longest queue from which on it is beta_max"),
	(theta, 5, 1, 255, 1, "RTTs", "without a queue before growth is alpha_max again"),
	(win_thresh, 15, 2, 1000000, 1, "segments", "Reno below this window"));

/* One, as alpha, beta and eta count it. */
#define ONE 1000

/* No RTT yet. */
#define NO_RTT ~0u

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

struct illinois {
	u64 rtt_sum_us;		/* RTTs of the round: 2^31 us x 2^32 of them */
	u64 credit;		/* alpha x segments acknowledged that are not yet growth, 1/1000; below cwnd x 1000 */
	u32 samples;		/* RTTs of the round */
	u32 base_rtt_us;	/* least RTT seen */
	u32 max_rtt_us;		/* largest RTT seen */
	u32 round_end_seq;	/* the round ends when more than this is acknowledged */
	u32 alpha;		/* segments per RTT, 1/1000 */
	u32 beta;		/* share given up, 1/1000 */
	u8 above;		/* a round's mean has been above d1 */
	u8 low_rounds;		/* rounds at or below d1 since */
};

CC_STATE(struct illinois);

static inline void new_round(struct cc_sock *sk, struct illinois *ca)
{
	ca->round_end_seq = cc_snd_nxt(sk);
	ca->rtt_sum_us = 0;
	ca->samples = 0;
}

static void illinois_init(struct cc_sock *sk)
{
	struct illinois *ca = cc_state(sk);

	ca->base_rtt_us = NO_RTT;
	ca->max_rtt_us = 0;
	ca->alpha = (u32)cc_param(sk, alpha_max);
	ca->beta = (u32)cc_param(sk, beta_max);
	ca->above = 0;
	ca->low_rounds = 0;
	ca->credit = 0;
	new_round(sk, ca);
}

static void illinois_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	struct illinois *ca = cc_state(sk);
	s32 rtt = cc_sample_rtt_us(sample);

	if (rtt < 0 || ca->samples == ~0u)
		return;
	ca->base_rtt_us = (u32)cc_min(ca->base_rtt_us, (u32)rtt);
	ca->max_rtt_us = (u32)cc_max(ca->max_rtt_us, (u32)rtt);
	ca->rtt_sum_us += (u32)rtt;
	ca->samples++;
}

/* alpha(da), 1/1000. With x = da - d1 and m = dm - d1, k1 / (k2 + da) is m max / (m + x (max - min) / min). */
static inline u32 alpha_of(struct cc_sock *sk, struct illinois *ca, u64 da, u64 dm)
{
	u64 most = (u64)cc_param(sk, alpha_max);
	u64 least = cc_min((u64)cc_param(sk, alpha_min), most);
	u64 d1 = dm * (u64)cc_param(sk, eta1) / ONE;
	u64 m = dm - d1;

	if (da <= d1) {
		if (!ca->above)
			return (u32)most;
		if (++ca->low_rounds < (u32)cc_param(sk, theta))
			return ca->alpha;
		ca->low_rounds = 0;
		ca->above = 0;
		return (u32)most;
	}
	ca->above = 1;
	if (!cc_param(sk, variant))
		ca->low_rounds = 0;
	return (u32)cc_div(m * most, m + cc_div((da - d1) * (most - least), least));
}

/* beta(da), 1/1000. k3 + k4 da is the mean of beta_min and beta_max, weighted by the distances to d3 and d2. */
static inline u32 beta_of(struct cc_sock *sk, u64 da, u64 dm)
{
	u64 least = (u64)cc_param(sk, beta_min);
	u64 most = (u64)cc_param(sk, beta_max);
	u64 d2 = dm * (u64)cc_param(sk, eta2) / ONE;
	u64 d3 = dm * (u64)cc_param(sk, eta3) / ONE;

	if (da <= d2)
		return (u32)least;
	if (da >= d3)
		return (u32)most;
	return (u32)cc_div(least * (d3 - da) + most * (da - d2), d3 - d2);
}

static inline void be_reno(struct cc_sock *sk, struct illinois *ca)
{
	ca->alpha = ONE;
	ca->beta = (u32)cc_param(sk, beta_max);
}

static inline void end_round(struct cc_sock *sk, struct illinois *ca)
{
	if (cc_snd_cwnd(sk) < (u64)cc_param(sk, win_thresh)) {
		be_reno(sk, ca);
	} else if (ca->samples) {
		u64 dm = ca->max_rtt_us - ca->base_rtt_us;
		u64 da = cc_div(ca->rtt_sum_us, ca->samples) - ca->base_rtt_us;

		ca->alpha = alpha_of(sk, ca, da, dm);
		ca->beta = beta_of(sk, da, dm);
	}
	new_round(sk, ca);
}

static u32 illinois_ssthresh(struct cc_sock *sk)
{
	u64 cwnd = cc_snd_cwnd(sk);
	u64 share = cwnd * cc_state(sk)->beta / ONE;

	return (u32)cc_max(cc_param(sk, variant) ? share : cwnd - share, MIN_SSTHRESH);
}

static void illinois_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct illinois *ca = cc_state(sk);
	u64 cwnd, more;

	if (cc_after(ack, ca->round_end_seq))
		end_round(sk, ca);
	if (!cc_reaches_avoidance(sk, &acked))
		return;
	cwnd = cc_snd_cwnd(sk);
	ca->credit += (u64)acked * ca->alpha;
	more = cc_div(ca->credit, cwnd * ONE);
	ca->credit -= more * cwnd * ONE;
	if (more && cc_param(sk, variant))
		ca->credit = 0;
	/* Never faster than slow start. */
	more = cc_min(more, acked);
	cc_set_snd_cwnd(sk, (u32)cc_max(cwnd, cc_min(cwnd + more, cc_snd_cwnd_clamp(sk))));
}

static void illinois_set_state(struct cc_sock *sk, u8 state)
{
	struct illinois *ca = cc_state(sk);

	if (state >= CC_CWR)
		ca->credit = 0;
	if (state == CC_LOSS) {
		be_reno(sk, ca);
		ca->above = 0;
		ca->low_rounds = 0;
		new_round(sk, ca);
	}
}

CC_ALGORITHM(illinois, "Reno whose growth and reduction follow the length of the queue",
	"Liu, Basar, Srikant 2008",
	(init, illinois_init),
	(ssthresh, illinois_ssthresh),
	(cong_avoid, illinois_cong_avoid),
	(set_state, illinois_set_state),
	(pkts_acked, illinois_pkts_acked),
	(undo_cwnd, cc_undo_cwnd));
