/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * BIC: binary search for the window that the path holds.
 *
 * Idea. A loss at W_max says that the path holds less than that, the window kept after it that it holds as much: the
 * answer lies between the two. Go half of the remaining distance per round trip, so that the steps shrink towards
 * W_max; far from it no more than a bound, so that flows of unlike round trips still share. Beyond W_max the answer is
 * unknown again: look for it with growing steps, as slowly at first as the search ended.
 *
 * Equations (W = cwnd, D = the distance |W_max - W|, segments; growth per round trip; B = 4)
 *					published	linux, linux-2.6.22
 *	W <= low_window:		1		1		Reno
 *	W < W_max, far:			max_increment	max_increment	additive increase
 *	W < W_max, nearer:		D / 2		D / B		binary search
 *	W < W_max, the last steps:	min_increment	B / smooth_part
 *	W >= W_max, the first steps:	min_increment	B / smooth_part	max probing
 *	W >= W_max, beyond:		D		D / (B - 1)	as in slow start
 *	W >= W_max, far beyond:		max_increment	max_increment	additive increase again
 *	W_max unknown:			max_increment	W / 20, if that is more: the start, and after a time-out
 *	and never less than min_increment, nor more than in slow start
 *	loss, W > low_window:		ssthresh = max(beta W, 2); W_max = W
 *	loss, W <= low_window:		ssthresh = max(W / 2, 2); W_max = W
 *	loss below the last W_max:	W_max = W (1 + beta) / 2 (fast convergence)
 * Far is where the next line's step exceeds max_increment; the last and first steps are where it is below
 * min_increment, in Linux from 2 B below W_max to B above it.
 * From a loss at W to W again, published, where (1 - beta) W > 2 max_increment: (1 - beta) W / max_increment - 2 round
 * trips of additive increase, 2 ln(max_increment / min_increment) of binary search, 2 for the last steps. Linux:
 * (1 - beta) W / max_increment - B, B ln(max_increment / 2) and 2 smooth_part.
 *
 * Parameters
 *	variant		published: the authors'. linux: today's module. linux-2.6.22: that of ns-2's TCP-Linux
 *	beta		share of the window kept at a loss; published 0.875, linux 819/1024 = 0.8 (7/8 at first)
 *	low_window	up to this window it is Reno; 14 in all
 *	max_increment	S_max, segments per round trip; published 32, linux 16
 *	min_increment	S_min, segments per round trip; the paper's 0.01. Linux has none: in linux it is felt where
 *			smooth_part is above 400
 *	smooth_part	linux: round trips for the last B segments; its 20 is ln(1 / S_min) / ln(B / (B - 1)) + B
 *	delayed_ack	linux, on: growth times the segments per ACK, 15/16 of the estimate and 1/16 of the last, 2 at
 *			first, and D / B rounded down. off: what the constants say, D / B with its fraction
 *	fast_convergence	on: a flow that lost below its last W_max aims lower and gives room to others
 *
 * Note on delayed_ack. Linux 2.6 counts ACKs, so that the estimate makes segments of them. Today's counts segments and
 * still multiplies. The estimate's 1/16 is a whole number, rounded down: with an ACK for each segment it goes from 32
 * to 31 sixteenths, and stays there. Where max_increment is 16, linux therefore grows by 32 segments per round trip
 * with an ACK for one or two segments, by more if ACKs come for many at once; ns-2's TCP-Linux with an ACK for each by
 * 30 to 31, a segment per W / 31 + 1 ACKs. In linux, not in linux-2.6.22, the first duplicate ACK of an episode counts
 * as an ACK for nothing, and takes a sixteenth off. linux with delayed_ack = off grows by max_increment.
 *
 * If the paper and Linux differ, each variant is its own; a time-out, of which the paper says nothing, forgets W_max in
 * all. And where linux differs from Linux: the first threshold is infinite, as in Linux today; it once was 100
 * segments. In linux the segments acknowledged per segment of growth are a whole number, rounded down, as there: at
 * windows of few times max_increment growth is up to twice that. In published nothing is rounded.
 *
 * Checked. linux and linux-2.6.22 against both sources. published against the summary of the paper that Wikipedia gives
 * ("BIC TCP": growth, fast convergence) and against what Linux's source says of the paper; not checked against the
 * paper itself: text not found.
 *
 * Ranges. Windows: u32. Growth: u64, 1/1000 segments; a distance of 2^32 segments is 2^42 of them. Credit: below 2^42,
 * and an ACK adds at most 2^32 x 10^8 to it.
 *
 * Source: Xu, Harfoush, Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks", INFOCOM 2004;
 * Linux's tcp_bic, its default from 2.6.8 to 2.6.18; the same in ns-2.35, of Linux 2.6.22.
 * Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(variant, 0, 0, 2, 1, "published|linux|linux-2.6.22", "growth and constants: the authors', or Linux's"),
	(beta, CC_BY_VARIANT, 512, 1014, 1024, "1", "share of the window kept at a loss: published 0.875, linux 0.8"),
	(low_window, 14, 0, 1000000, 1, "segments", "Reno up to this window"),
	(max_increment, CC_BY_VARIANT, 1, 100000, 1, "segments", "most growth per RTT (S_max): published 32, linux 16"),
	(min_increment, 10, 1, 1000, 1000, "segments", "least growth per RTT (S_min)"),
	(smooth_part, 20, 1, 10000, 1, "RTTs", "linux: time for the last 4 segments before W_max, and the first after"),
	(delayed_ack, 1, 0, 1, 1, "bool", "linux: growth times the segments per ACK, as estimated; D / 4 rounded down"),
	(fast_convergence, 1, 0, 1, 1, "bool", "give room to new flows"));

/* The last of the variants. */
#define LINUX_2_6_22 2

/* One share, as beta counts it; what the variants keep. */
#define ONE 1024
#define BETA_PUBLISHED 896
#define BETA_LINUX 819

#define MAX_INCREMENT_PUBLISHED 32
#define MAX_INCREMENT_LINUX 16

/* One segment of growth per RTT. */
#define SEGMENT 1000ull

/* Linux's search goes 1/B of the distance per RTT (BICTCP_B). */
#define B 4

/* No W_max known: at least one segment per so many acknowledged, 5 % per RTT (Linux, bictcp_update). */
#define UNKNOWN_MAX_PER 20

/* Segments per ACK, in 1/16 (Linux, ACK_RATIO_SHIFT), at first; and what has changed in so long is looked at, us. */
#define RATIO_SHIFT 4
#define RATIO_FIRST (2u << RATIO_SHIFT)
#define REFRESH_US 31250

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

struct bic {
	u64 credit;		/* published: segments acknowledged times growth, below cwnd x SEGMENT */
	u64 evaluated_us;	/* linux: when `per` was computed */
	u32 w_max;		/* window at the last loss, after fast convergence; 0 = unknown */
	u32 per;		/* linux: segments acknowledged per segment of growth, at evaluated_cwnd */
	u32 evaluated_cwnd;	/* linux: window that `per` is for; 0 = none */
	u32 ratio;		/* linux: segments per ACK, 1/16 */
};

CC_STATE(struct bic);

static inline u64 beta(struct cc_sock *sk)
{
	if (cc_param(sk, beta) != CC_BY_VARIANT)
		return (u64)cc_param(sk, beta);
	return cc_param(sk, variant) ? BETA_LINUX : BETA_PUBLISHED;
}

static inline u64 max_increment(struct cc_sock *sk)
{
	if (cc_param(sk, max_increment) != CC_BY_VARIANT)
		return (u64)cc_param(sk, max_increment);
	return cc_param(sk, variant) ? MAX_INCREMENT_LINUX : MAX_INCREMENT_PUBLISHED;
}

/* Nothing is known of the path: at the start, and after a time-out. */
static inline void forget(struct bic *ca)
{
	ca->w_max = 0;
	ca->evaluated_cwnd = 0;
	ca->ratio = RATIO_FIRST;
}

static void bic_init(struct cc_sock *sk)
{
	forget(cc_state(sk));
}

static u32 bic_ssthresh(struct cc_sock *sk)
{
	struct bic *ca = cc_state(sk);
	u64 cwnd = cc_snd_cwnd(sk);
	u64 kept = beta(sk);

	ca->evaluated_cwnd = 0;
	ca->credit = 0;
	if (cwnd < ca->w_max && cc_param(sk, fast_convergence))
		ca->w_max = (u32)(cwnd * (ONE + kept) / (2 * ONE));
	else
		ca->w_max = (u32)cwnd;
	if (cwnd <= (u64)cc_param(sk, low_window))
		return (u32)cc_max(cwnd / 2, MIN_SSTHRESH);
	return (u32)cc_max(cwnd * kept / ONE, MIN_SSTHRESH);
}

static inline u64 bounded(struct cc_sock *sk, u64 step)
{
	return cc_max(cc_min(step, max_increment(sk) * SEGMENT), (u64)cc_param(sk, min_increment));
}

/* The paper's growth per RTT above the low window, 1/1000 segments; with the part of a segment that `credit` is. */
static inline u64 published_growth(struct cc_sock *sk, const struct bic *ca, u64 cwnd)
{
	u64 window = cwnd * SEGMENT + cc_div(ca->credit, cwnd);
	u64 w_max = ca->w_max * SEGMENT;

	if (!w_max)
		return max_increment(sk) * SEGMENT;
	return bounded(sk, window < w_max ? (w_max - window) / 2 : window - w_max);
}

static inline void grow_published(struct cc_sock *sk, struct bic *ca, u32 acked)
{
	u64 cwnd = cc_snd_cwnd(sk);
	u64 grown;

	ca->credit += acked * published_growth(sk, ca, cwnd);
	grown = cc_div(ca->credit, cwnd * SEGMENT);
	if (!grown)
		return;
	ca->credit -= grown * cwnd * SEGMENT;
	cc_set_snd_cwnd(sk, (u32)cc_min(cwnd + cc_min(grown, acked), cc_snd_cwnd_clamp(sk)));
}

/* Linux's growth per RTT above the low window, 1/1000 segments. */
static inline u64 linux_growth(struct cc_sock *sk, u64 cwnd, u64 w_max)
{
	u64 smooth = B * SEGMENT / (u64)cc_param(sk, smooth_part);
	u64 step;

	if (cwnd < w_max) {
		u64 distance = w_max - cwnd;

		step = cc_param(sk, delayed_ack) ? distance / B * SEGMENT : distance * SEGMENT / B;
		if (distance < 2 * B)
			step = smooth;
	} else {
		u64 distance = cwnd - w_max;

		step = distance < B ? smooth : distance * SEGMENT / (B - 1);
	}
	return bounded(sk, step);
}

static inline void evaluate(struct cc_sock *sk, struct bic *ca, u32 cwnd)
{
	u64 per = cwnd;

	ca->evaluated_cwnd = cwnd;
	ca->evaluated_us = cc_now_us(sk);
	if (cwnd > (u64)cc_param(sk, low_window)) {
		per = cwnd * SEGMENT / linux_growth(sk, cwnd, ca->w_max);
		if (!ca->w_max)
			per = cc_min(per, UNKNOWN_MAX_PER);
		if (cc_param(sk, delayed_ack))
			per = cc_div(per << RATIO_SHIFT, ca->ratio);
	}
	ca->per = (u32)cc_max(cc_min(per, ~0u), 1);
}

static void bic_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct bic *ca = cc_state(sk);
	u32 cwnd;

	(void)ack;
	if (cc_param(sk, variant) == LINUX_2_6_22 ? !cc_reaches_avoidance_2_6(sk) : !cc_reaches_avoidance(sk, &acked))
		return;
	cwnd = cc_snd_cwnd(sk);
	if (!cc_param(sk, variant)) {
		if (cwnd <= (u64)cc_param(sk, low_window))
			cc_cong_avoid_ai(sk, cwnd, acked);
		else
			grow_published(sk, ca, acked);
		return;
	}
	if (ca->evaluated_cwnd != cwnd || cc_now_us(sk) - ca->evaluated_us > REFRESH_US)
		evaluate(sk, ca, cwnd);
	if (cc_param(sk, variant) == LINUX_2_6_22)
		cc_grow_by_acks(sk, ca->per);
	else
		cc_cong_avoid_ai(sk, ca->per, acked);
}

static void bic_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	struct bic *ca = cc_state(sk);
	u32 acked = cc_sample_pkts_acked(sample);

	/* Today's Linux lets a duplicate ACK, which acknowledges nothing, count: each takes 1/16 off one segment per ACK. */
	if (cc_ca_state(sk) == CC_OPEN && (acked || cc_param(sk, variant) != LINUX_2_6_22))
		ca->ratio += acked - (ca->ratio >> RATIO_SHIFT);
}

static void bic_set_state(struct cc_sock *sk, u8 state)
{
	if (state == CC_LOSS)
		forget(cc_state(sk));
}

CC_ALGORITHM(bic, "binary search for the window at which the last loss came", "Xu, Harfoush, Rhee, INFOCOM 2004",
	(init, bic_init),
	(ssthresh, bic_ssthresh),
	(cong_avoid, bic_cong_avoid),
	(set_state, bic_set_state),
	(pkts_acked, bic_pkts_acked),
	(undo_cwnd, cc_undo_cwnd));
