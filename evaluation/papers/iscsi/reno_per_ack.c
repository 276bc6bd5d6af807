/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Reno that counts ACKs, not what they acknowledge.
 *
 * Idea. RFC 5681 allows two ways to grow by a segment per round trip: per acknowledged byte, which it recommends (3.1,
 * equation 2), and by 1 / cwnd per ACK (equation 3). With a receiver that acknowledges every second segment the second
 * gives half a segment. It is what TCP did when this paper was written; today's Linux counts segments, as
 * congestion/reno.c does.
 *
 * Equations (W = cwnd, segments; per ACK, however much it acknowledges):
 *	slow start, W < ssthresh:	W += 1
 *	avoidance, W >= ssthresh:	W += 1 / W		(1 / b segments per round trip at b segments per ACK)
 *	loss:				ssthresh = max(W / 2, 2)
 *
 * Source. RFC 5681; the difference is that of RFC 3465, 2.1.
 *
 * Kernel: as BPF struct_ops, Linux 5.6 and later; no state of its own.
 */
#include "cc.h"

CC_NO_PARAMS;

static u32 per_ack_ssthresh(struct cc_sock *sk)
{
	return (u32)cc_max(cc_snd_cwnd(sk) / 2, 2);
}

static void per_ack_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	(void)acked;
	cc_reno_cong_avoid(sk, 1);
}

CC_ALGORITHM(reno_per_ack, "Reno, one step per ACK instead of per segment", "RFC 5681, 3.1",
	(ssthresh, per_ack_ssthresh),
	(cong_avoid, per_ack_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
