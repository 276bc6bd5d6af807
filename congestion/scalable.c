/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Scalable TCP: the window grows by a share of itself, and so takes as many round trips to recover at any rate.
 *
 * Idea. Reno regains what it gave up at a loss at one segment per round trip: minutes on a long fat path. Let every
 * segment acknowledged add the same, and give up a small share: the time to recover is then a number of round trips
 * that depends neither on the rate nor on the window. Small windows are left to Reno, for fairness on ordinary paths.
 *
 * Equations (Kelly 2003; W = cwnd, segments):
 *	slow start, W < ssthresh:	W += acked
 *	avoidance, W >= ssthresh:	W += a acked				W grows by the share a per RTT
 *	loss:				ssthresh = max(W (1 - b), 2)
 *	while W <= legacy_window:	W += acked / W, ssthresh = max(W / 2, 2)	(Reno)
 * Recovery takes log(1 - b) / log(1 + a) RTTs: 13.4 at a = 0.01, b = 1/8. At equilibrium under loss p: W = a / (b p)
 * when a loss comes, 0.08 / p; the mean is 0.94 of that, and less by the RTT in which each recovery gains nothing. At
 * the loss rates at which that is 16 segments, Reno's window is about the same: hence the legacy window.
 *
 * Parameters
 *	a		segments gained per segment acknowledged; 1 is slow start
 *	b		share of the window given up at a loss
 *	legacy_window	segments; up to this window the algorithm is Reno, 0: never
 * Twice a, or half b, is twice the window under loss, and half the time to recover.
 *
 * Note. Two flows that lose together keep their shares, since each gains and gives up the same share of its window
 * (Chiu and Jain, Comput. Netw. ISDN Syst. 17(1), 1989). An overflow loses about a W segments, what is gained in an
 * RTT.
 *
 * If the paper and Linux differ, this is the paper:
 *	- Linux has no legacy window: it gives up 1/8 at any window, and grows by one segment per min(W, 100) acknowledged
 *	  (once 50, for delayed ACKs): Reno's growth up to 100 segments, with a quarter of Reno's decrease;
 *	- b W is rounded up here, so that a loss always takes a segment; Linux rounds it down (W >> 3).
 *
 * Ranges. Windows: all of u32. Credit for growth, in snd_cwnd_cnt: below 1e6, in 1e-6 segments; up to legacy_window in
 * segments acknowledged. What is left of the one when the other begins is less than a segment.
 *
 * Source: T. Kelly, Scalable TCP: improving performance in highspeed wide area networks, CCR 33(2), 2003.
 *
 * Kernel: as BPF struct_ops, Linux 5.6 and later; no state of its own.
 */
#include "cc.h"

/* A share of 1 as an integer, for a and b. */
#define SHARE 1000000

CC_PARAMS(
	(a, 10000, 100, 1000000, 1000000, "1", "segments gained per segment acknowledged"),
	(b, 125000, 1000, 900000, 1000000, "1", "share of the window given up at a loss"),
	(legacy_window, 16, 0, 1000000, 1, "segments", "Reno up to this window"));

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

static inline int is_legacy(struct cc_sock *sk)
{
	return cc_snd_cwnd(sk) <= (u64)cc_param(sk, legacy_window);
}

static u32 scalable_ssthresh(struct cc_sock *sk)
{
	u64 kept = SHARE - (u64)cc_param(sk, b);

	if (is_legacy(sk))
		kept = SHARE / 2;
	return (u32)cc_max(cc_snd_cwnd(sk) * kept / SHARE, MIN_SSTHRESH);
}

static void scalable_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	if (!cc_reaches_avoidance(sk, &acked))
		return;
	if (is_legacy(sk))
		cc_cong_avoid_ai(sk, cc_snd_cwnd(sk), acked);
	else
		cc_cong_avoid_ai(sk, SHARE, acked * (u64)cc_param(sk, a));
}

CC_ALGORITHM(scalable, "grows by a share of the window per round trip, at any rate", "Kelly, CCR 33(2), 2003",
	(ssthresh, scalable_ssthresh),
	(cong_avoid, scalable_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
