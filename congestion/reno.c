/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Reno: additive increase, multiplicative decrease. The yardstick for every other algorithm.
 *
 * Idea. Loss is the only sign of congestion. Without it the window probes for more, first by doubling, then by one
 * segment per round trip; with it the window halves, so that flows which share a bottleneck drift to equal shares.
 *
 * Equations (RFC 5681; W = cwnd, segments):
 *	slow start, W < ssthresh:	W += acked			(3.1 eq. 2, bytes counted as in RFC 3465, L unlimited)
 *	avoidance, W >= ssthresh:	W += acked / W			(3.1 eq. 3: one segment per RTT)
 *	loss:				ssthresh = max(W / 2, 2)	(3.1 eq. 4)
 * At equilibrium under loss p: W = sqrt(3 / (2 b p)), b segments per ACK (Mathis et al., CCR 27(3), 1997).
 *
 * Differences from the RFC, all Linux's: ssthresh comes from cwnd, not from the flight size (eq. 4), since the window
 * does not grow while the application is the limit; appropriate byte counting has no limit L of 2 segments per ACK,
 * since PRR and pacing bound the bursts; W / 2 rounds down.
 *
 * Note. What follows a loss (cwnd during recovery, restart at 1 after a time-out) is TCP's business, not the
 * algorithm's.
 *
 * Ranges. Windows: all of u32.
 *
 * Source: RFC 5681 (Allman, Paxson, Blanton 2009), RFC 3465 (Allman 2003).
 *
 * Kernel: as BPF struct_ops, Linux 5.6 and later; no state of its own.
 */
#include "cc.h"

CC_NO_PARAMS;

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

static u32 reno_ssthresh(struct cc_sock *sk)
{
	return (u32)cc_max(cc_snd_cwnd(sk) / 2, MIN_SSTHRESH);
}

static void reno_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	cc_reno_cong_avoid(sk, acked);
}

CC_ALGORITHM(reno, "additive increase, multiplicative decrease: the standard", "RFC 5681, RFC 3465",
	(ssthresh, reno_ssthresh),
	(cong_avoid, reno_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
