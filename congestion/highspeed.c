/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * HighSpeed TCP: Reno whose increase and decrease depend on the window.
 *
 * Idea. Reno needs a loss rate of 2e-10 for 10 Gbit/s over 100 ms: one loss in more than an hour. Ask instead for a
 * window of 83000 segments at a loss rate of 1e-7, keep Reno up to 38 segments (a loss rate of 1e-3), so that nobody is
 * hurt on ordinary paths, and join the two by a straight line of log loss rate over log window. Every window then has
 * its loss rate p(w); a decrease b(w) that falls from 1/2 to 1/10 is chosen, and the increase a(w) follows.
 *
 * Equations (RFC 3649, 5; w = cwnd, segments; for w > 38):
 *	p(w) = 0.078 / w^1.2							the response function
 *	b(w) = 1/2 - 0.4 log(w / 38) / log(83000 / 38)				share given up at a loss
 *	a(w) = max(w^2 p(w) 2 b(w) / (2 - b(w)), 1)				segments gained per RTT
 *	slow start, w < ssthresh:	w += acked
 *	avoidance, w >= ssthresh:	w += acked a(w) / w
 *	loss:				ssthresh = max(w (1 - b(w)), 2)
 * Up to 38 segments a = 1 and b = 1/2: Reno. At equilibrium under loss p: w = 0.12 / p^0.835. For instance
 *	w	118	1058	10661	83000
 *	a(w)	2.0	8.0	30.1	70.8
 *	b(w)	0.44	0.33	0.21	0.10
 *
 * Parameters
 *	variant		published: a(w) and b(w) as above. linux: those of the appendix's next row, see below
 * Low_Window = 38, Low_P = 1e-3, High_Window = 83000, High_P = 1e-7 and High_Decrease = 0.1 are the RFC's. 1.2 and
 * 0.078 are how it rounds the line through (38, 1e-3) and (83000, 1e-7), whose slope is 1.198; its appendix B writes 1
 * / 12.8. The rounding is kept, since the table of the appendix has it; without, a(83000) were 72.5.
 *
 * How. Nothing is looked up: a(w) and b(w) are computed by binary logarithm and exponential whenever the window has
 * changed, to six digits. The RFC's table follows from them, row for row.
 *
 * linux, Linux's tcp_highspeed, differs from the RFC:
 *	- a and b are those of the next row at or above w, so that a is up to one segment higher than a(w): 2 from 39
 *	  segments on, where a(w) is 1.0. b is rounded down to 1/256;
 *	- a = 72 and b = 24/256 from 84036 segments on. In published p(w) goes on, as the RFC tabulates it, down to a
 *	  loss rate of 1e-10; b stays what it is at 100000 segments, where the appendix ends: it would be 0 at 567000;
 *	- ACKs are counted, not segments: with delayed ACKs w grows half as fast;
 *	- the row is looked up when the window may grow, so that a loss out of slow start is answered by an old row: the
 *	  first, by half of the window.
 * Not here, as in Linux: limited slow start (RFC 3742), which the RFC's author proposes beside it.
 *
 * Checked. The table against Linux's copy of appendix B, all 72 rows of w and b; Low_Window, High_Window, High_P and
 * High_Decrease against ns-2, whose HighSpeed TCP is by the RFC's author; p(w) against the report on FAST (Jin, Wei,
 * Low 2003), which gives it unrounded, 0.0789 / w^1.1976. Not checked against the RFC itself: found to its abstract
 * only.
 *
 * Ranges. Windows: all of u32; at 34 million segments (400 Gbit/s x 1 s) a(w) is 7800, w / a(w) 4342, at 2^32 below
 * 2^14.
 *
 * Source: RFC 3649 (Floyd 2003).
 *
 * Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(variant, 0, 0, 1, 1, "published|linux", "increase and decrease by the RFC's equations, or by its table's next row"));

/* RFC 3649, 5: Reno up to here, and the window and decrease at the other end of the line. */
#define LOW_WINDOW 38
#define HIGH_WINDOW 83000

/* RFC 3649, appendix B: the last window that its program looks at. */
#define LAST_WINDOW 100000

/* Rows of Linux's table, and a power of two that they fit in. */
#define ROWS 72
#define ROWS_MAX 128

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

/* Logarithms, exponentials, b(w) and a(w): 1 is 2^30. */
#define SHIFT CC_LOG2_SHIFT
#define ONE (1ull << SHIFT)

/* Segments of credit, in snd_cwnd_cnt: 1 is 2^16, so that w / a(w), below 2^14, fits into 32 bits. */
#define CREDIT_SHIFT 16

struct highspeed {
	u64 low;	/* log2 LOW_WINDOW, 2^-30; these three are constants that `init` computes */
	u64 range;	/* log2 (HIGH_WINDOW / LOW_WINDOW), 2^-30 */
	u64 last;	/* log2 LAST_WINDOW, 2^-30 */
	u32 cwnd;	/* the window that `per`, or `row`, belongs to; 0 = none yet */
	u32 per;	/* w / a(w): segments acknowledged per segment of growth, 2^-16; below 2^30 */
	u32 row;	/* linux: row of the table, from 0 on */
};

CC_STATE(struct highspeed);

static void highspeed_init(struct cc_sock *sk)
{
	struct highspeed *ca = cc_state(sk);

	ca->low = cc_log2(LOW_WINDOW);
	ca->range = cc_log2(HIGH_WINDOW) - ca->low;
	ca->last = cc_log2(LAST_WINDOW);
}

/* b(w), in 2^-30; `log` = log2 w, for w >= LOW_WINDOW. From 0.09 to 0.5. */
static inline u64 decrease(const struct highspeed *ca, u64 log)
{
	u64 above = cc_min(log, ca->last) - ca->low;

	/* above < 2^34, so that it is shifted by 29 before the division and by 2 after it: 0.4 x 2^30 = 4/5 x 2^29. */
	return ONE / 2 - (above << 29) / (5 * ca->range) * 4;
}

/* w / a(w), in 2^-16, for w > LOW_WINDOW: with a(w) = w^0.8 / 12.8 x 2 b / (2 - b) it is 6.4 w^0.2 (2 - b) / b. */
static inline u32 per_segment(const struct highspeed *ca, u32 w)
{
	u64 log = cc_log2(w);
	u64 b = decrease(ca, log);
	/* Both with 24 bits behind the point. Below 6.4 x 85 for any u32, and below 22: their product is below 2^62. */
	u64 root = cc_exp2(log / 5) * 32 / 5 >> (SHIFT - 24);
	u64 ratio = ((2 * ONE - b) << 24) / b;

	/* At least one segment per RTT: up to 40 segments the rounded p(w) has a little less. */
	return (u32)cc_min(root * ratio >> (48 - CREDIT_SHIFT), (u64)w << CREDIT_SHIFT);
}

/* The window of a row of RFC 3649's appendix B, as far as Linux has it; 2^32 - 1 behind the last. */
static inline u32 window_of(u32 row)
{
	static const u32 windows[ROWS_MAX] = {
		38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076, 2378, 2699, 3039, 3399, 3778, 4177,
		4596, 5036, 5497, 5979, 6483, 7009, 7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082, 12834, 13614,
		14424, 15265, 16137, 17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402, 25618, 26881, 28193,
		29557, 30975, 32450, 33986, 35586, 37253, 38992, 40808, 42707, 44694, 46776, 48961, 51258, 53677,
		56230, 58932, 61799, 64851, 68113, 71617, 75401, 79517, 84035, 89053, [ROWS ... ROWS_MAX - 1] = ~0u,
	};

	return windows[row & (ROWS_MAX - 1)];
}

/* The first row whose window is not below `cwnd`, or the last: a(w) is one more. */
static inline u32 row_of(u32 cwnd)
{
	u32 row = 0;

	for (u32 step = ROWS_MAX / 2; step; step /= 2)
		row += step * (window_of(row + step - 1) < cwnd);
	return (u32)cc_min(row, ROWS - 1);
}

/* Linux: a(w) per ACK, and at most a segment at a time. */
static inline void grow_by_acks(struct cc_sock *sk, u32 a, u32 cwnd)
{
	u64 credit = (u64)cc_snd_cwnd_cnt(sk) + a;

	if (cwnd >= cc_snd_cwnd_clamp(sk))
		return;
	if (credit >= cwnd) {
		credit -= cwnd;
		cc_set_snd_cwnd(sk, cwnd + 1);
	}
	cc_set_snd_cwnd_cnt(sk, (u32)cc_min(credit, ~0u));
}

static u32 highspeed_ssthresh(struct cc_sock *sk)
{
	const struct highspeed *ca = cc_state(sk);
	u64 cwnd = cc_snd_cwnd(sk);
	u64 b = ONE / 2;

	if (cc_param(sk, variant)) {
		b = decrease(ca, cc_log2(window_of(ca->row))) >> (SHIFT - 8);
		return (u32)cc_max(cwnd - (cwnd * b >> 8), MIN_SSTHRESH);
	}

	if (cwnd > LOW_WINDOW)
		b = decrease(ca, cc_log2((u32)cwnd));
	return (u32)cc_max(cwnd * (ONE - b) >> SHIFT, MIN_SSTHRESH);
}

static void highspeed_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct highspeed *ca = cc_state(sk);
	u32 cwnd;

	(void)ack;
	if (!cc_reaches_avoidance(sk, &acked))
		return;
	cwnd = cc_snd_cwnd(sk);
	if (cc_param(sk, variant)) {
		if (cwnd != ca->cwnd)
			ca->row = row_of(cwnd);
		ca->cwnd = cwnd;
		grow_by_acks(sk, ca->row + 1, cwnd);
		return;
	}
	if (cwnd != ca->cwnd) {
		ca->cwnd = cwnd;
		ca->per = cwnd > LOW_WINDOW ? per_segment(ca, cwnd) : cwnd << CREDIT_SHIFT;
	}
	cc_cong_avoid_ai(sk, ca->per, (u64)acked << CREDIT_SHIFT);
}

CC_ALGORITHM(highspeed, "gains more and gives up less, the larger the window: HSTCP", "RFC 3649",
	(init, highspeed_init),
	(ssthresh, highspeed_ssthresh),
	(cong_avoid, highspeed_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
