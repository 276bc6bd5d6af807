/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * MulTCP: one connection that counts as several; a congestion control of one's own, as an example.
 *
 * Idea. Storage gateways open several connections, so that a loss costs only one of them. One connection can behave as
 * n together: it gains what n Reno connections gain, and at a loss one of the n halves.
 *
 * Equations (W = cwnd, segments):
 *	slow start, W < ssthresh:	W += acked
 *	avoidance, W >= ssthresh:	W += acked min(n, W) / W		n segments per RTT
 *	loss:				ssthresh = max(W (1 - 1 / (2 n)), 2)
 * At equilibrium under loss p: W = sqrt(n (4 n - 1) / (2 p)), 1.15 n times Reno's for a large n.
 *
 * Source: J. Crowcroft, P. Oechslin, Differentiated end-to-end Internet services using a weighted proportional fair
 * sharing TCP, CCR 28(3), 1998. Its cautious slow start is left out.
 *
 * Kernel: as BPF struct_ops, Linux 5.6 and later; no state of its own.
 */
#include "cc.h"

CC_PARAMS((flows, 6, 1, 1000, 1, "1", "Reno connections that this one counts as"));

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

static u32 multcp_ssthresh(struct cc_sock *sk)
{
	u64 twice = 2 * (u64)cc_param(sk, flows);

	return (u32)cc_max(cc_snd_cwnd(sk) * (twice - 1) / twice, MIN_SSTHRESH);
}

static void multcp_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	if (cc_reaches_avoidance(sk, &acked))
		cc_cong_avoid_ai(sk, cc_snd_cwnd(sk), acked * cc_min((u64)cc_param(sk, flows), cc_snd_cwnd(sk)));
}

CC_ALGORITHM(multcp, "one connection that gains and gives up as several Reno connections do",
	"Crowcroft, Oechslin 1998",
	(ssthresh, multcp_ssthresh),
	(cong_avoid, multcp_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
