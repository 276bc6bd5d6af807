/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Scalable TCP: a congestion control of one's own, as an example.
 *
 * Idea. Reno regains what it gave up at a loss at one segment per round trip: minutes on a long fat path. Let the window
 * grow by a fixed share per round trip instead, and recovery takes the same number of round trips at any rate.
 *
 * Equations (W = cwnd, segments):
 *	slow start, W < ssthresh:	W += acked
 *	avoidance, W >= ssthresh:	W += acked / min(W, growth)	below `growth` segments this is Reno
 *	loss:				ssthresh = max(W (1 - reduction), 2)
 * At equilibrium under loss p: W = 1 / (growth reduction p), 0.08 / p with the defaults.
 *
 * Source: T. Kelly, Scalable TCP: improving performance in highspeed wide area networks, CCR 33(2), 2003.
 */
#include "cc.h"

/* A share of 1 as an integer; W x 1e6 ends at 1.8e13 segments. */
#define SHARE 1000000

CC_PARAMS(
	(growth, 100, 10, 10000, 1, "1", "segments that must be acknowledged for the window to grow by one"),
	(reduction, 125000, 1000, 900000, SHARE, "1", "share of the window given up at a loss"));

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

static u32 scalable_ssthresh(struct cc_sock *sk)
{
	u64 kept = SHARE - (u64)cc_param(sk, reduction);

	return (u32)cc_max(cc_snd_cwnd(sk) * kept / SHARE, MIN_SSTHRESH);
}

static void scalable_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	if (cc_reaches_avoidance(sk, &acked))
		cc_cong_avoid_ai(sk, (u32)cc_min(cc_snd_cwnd(sk), (u64)cc_param(sk, growth)), acked);
}

CC_ALGORITHM(scalable, "grows by a fixed share of the window per round trip", "Kelly 2003",
	(ssthresh, scalable_ssthresh),
	(cong_avoid, scalable_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
