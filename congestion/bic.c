/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * BIC: binary search for the window that the path holds.
 *
 * Idea. A loss at W_max says that the path holds less than that, the window kept after it that it holds as much: the
 * answer lies between the two. Go a fixed part of the remaining distance per round trip, so that the steps shrink
 * towards W_max; far from it no more than a bound, so that flows of unlike round trips still share. Beyond W_max the
 * answer is unknown again: look for it with growing steps, as slowly at first as the search ended.
 *
 * Equations (W = cwnd, D = the distance |W_max - W|, segments; growth per round trip; B = 4)
 *	W <= low_window:			1		Reno
 *	W < W_max, D > B max_increment:		max_increment	additive increase
 *	W < W_max, 2 B <= D:			D / B		binary search: D is 0.78 of itself an RTT later
 *	W < W_max, D < 2 B:			B / smooth_part	the last steps
 *	W >= W_max, D < B:			B / smooth_part	max probing: the first steps
 *	W >= W_max, beyond:			D / (B - 1)	growing as in slow start
 *	W >= W_max, D > (B - 1) max_increment:	max_increment	additive increase again
 *	W_max unknown:				W / 20		if that is more: the start, and after a time-out
 *	and never less than min_increment, nor more than in slow start
 *	loss, W > low_window:			ssthresh = max(beta W, 2); W_max = W
 *	loss, W <= low_window:			ssthresh = max(W / 2, 2); W_max = W
 *	loss below the last W_max:		W_max = W (1 + beta) / 2 (fast convergence)
 * From a loss at W to W again, where (1 - beta) W > B max_increment: (1 - beta) W / max_increment - B round trips of
 * additive increase, B ln(max_increment / 2) of binary search, 2 smooth_part for the last steps.
 *
 * Parameters
 *	beta		share of the window kept at a loss; the paper 0.875, Linux 819/1024 = 0.8 (7/8 at first)
 *	low_window	up to this window it is Reno; the paper's and Linux's 14
 *	smooth_part	round trips for the last B segments; Linux's 20 is ln(1 / S_min) / ln(B / (B - 1)) + B for the
 *			paper's S_min of 0.01
 *	max_increment	S_max, segments per round trip; the paper 32, Linux 16
 *	min_increment	S_min, segments per round trip: a floor, felt where smooth_part is above 400
 *	fast_convergence	on: a flow that lost below its last W_max aims lower and gives room to others
 *
 * If the paper and Linux differ, this is Linux: B = 4, where the paper halves the distance; the last steps at a
 * fixed pace from 2 B on, where the paper's shrink to S_min and end; max probing in proportion to the distance
 * covered, where the paper's step doubles; a time-out forgets W_max.
 * And where this differs from Linux: D / B and B / smooth_part keep their fractions. Segments are counted; Linux counts
 * ACKs and multiplies by an estimate of the segments in each, except up to low_window, where it grows half as fast
 * under delayed ACKs. The first threshold is infinite, as in Linux today; it once was 100 segments.
 * In both the segments acknowledged per segment of growth are a whole number, rounded down: at windows of few times
 * max_increment growth is up to twice that.
 *
 * Ranges. Windows: u32. Growth: u64, 1/1000 segments; a distance of 2^32 segments is 2^42 of them.
 *
 * Source: Xu, Harfoush, Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks", INFOCOM 2004;
 * constants of Linux's tcp_bic, its default from 2.6.8 to 2.6.18.
 * Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(beta, 819, 512, 1014, 1024, "1", "share of the window kept at a loss"),
	(low_window, 14, 0, 1000000, 1, "segments", "Reno up to this window"),
	(smooth_part, 20, 1, 10000, 1, "RTTs", "time for the last 4 segments before W_max, and the first after it"),
	(max_increment, 16, 1, 100000, 1, "segments", "most growth per RTT (S_max)"),
	(min_increment, 10, 1, 1000, 1000, "segments", "least growth per RTT (S_min)"),
	(fast_convergence, 1, 0, 1, 1, "bool", "give room to new flows"));

/* One share, as beta counts it. */
#define ONE 1024

/* One segment of growth per RTT. */
#define SEGMENT 1000ull

/* The search goes 1/B of the distance per RTT (Linux, BICTCP_B). */
#define B 4

/* No W_max known: at least one segment per so many acknowledged, 5 % per RTT (Linux, bictcp_update). */
#define UNKNOWN_MAX_PER 20

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

struct bic {
	u32 w_max;		/* window at the last loss, after fast convergence; 0 = unknown */
	u32 per;		/* segments acknowledged per segment of growth, at evaluated_cwnd */
	u32 evaluated_cwnd;	/* window that `per` is for; 0 = none */
};

CC_STATE(struct bic);

static u32 bic_ssthresh(struct cc_sock *sk)
{
	struct bic *ca = cc_state(sk);
	u64 cwnd = cc_snd_cwnd(sk);
	u64 beta = (u64)cc_param(sk, beta);

	ca->evaluated_cwnd = 0;
	if (cwnd < ca->w_max && cc_param(sk, fast_convergence))
		ca->w_max = (u32)(cwnd * (ONE + beta) / (2 * ONE));
	else
		ca->w_max = (u32)cwnd;
	if (cwnd <= (u64)cc_param(sk, low_window))
		return (u32)cc_max(cwnd / 2, MIN_SSTHRESH);
	return (u32)cc_max(cwnd * beta / ONE, MIN_SSTHRESH);
}

/* Growth per RTT above the low window, 1/1000 segments. */
static inline u64 growth(struct cc_sock *sk, u64 cwnd, u64 w_max)
{
	u64 most = (u64)cc_param(sk, max_increment) * SEGMENT;
	u64 smooth = B * SEGMENT / (u64)cc_param(sk, smooth_part);
	u64 step;

	if (cwnd < w_max) {
		u64 distance = w_max - cwnd;

		step = distance < 2 * B ? smooth : distance * SEGMENT / B;
	} else {
		u64 distance = cwnd - w_max;

		step = distance < B ? smooth : distance * SEGMENT / (B - 1);
	}
	return cc_max(cc_min(step, most), (u64)cc_param(sk, min_increment));
}

static inline void evaluate(struct cc_sock *sk, struct bic *ca, u32 cwnd)
{
	u64 per = cwnd;

	ca->evaluated_cwnd = cwnd;
	if (cwnd > (u64)cc_param(sk, low_window)) {
		per = cwnd * SEGMENT / growth(sk, cwnd, ca->w_max);
		if (!ca->w_max)
			per = cc_min(per, UNKNOWN_MAX_PER);
	}
	ca->per = (u32)cc_min(per, ~0u);
}

static void bic_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct bic *ca = cc_state(sk);
	u32 cwnd;

	(void)ack;
	if (!cc_reaches_avoidance(sk, &acked))
		return;
	cwnd = cc_snd_cwnd(sk);
	if (ca->evaluated_cwnd != cwnd)
		evaluate(sk, ca, cwnd);
	cc_cong_avoid_ai(sk, ca->per, acked);
}

/* After a time-out nothing is known of the path. */
static void bic_set_state(struct cc_sock *sk, u8 state)
{
	struct bic *ca = cc_state(sk);

	if (state != CC_LOSS)
		return;
	ca->w_max = 0;
	ca->evaluated_cwnd = 0;
}

CC_ALGORITHM(bic, "binary search for the window at which the last loss came", "Xu, Harfoush, Rhee, INFOCOM 2004",
	(ssthresh, bic_ssthresh),
	(cong_avoid, bic_cong_avoid),
	(set_state, bic_set_state),
	(undo_cwnd, cc_undo_cwnd));
