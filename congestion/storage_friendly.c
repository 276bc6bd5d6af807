/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Storage-friendly TCP: Reno with a smaller backoff, and on request without congestion avoidance.
 *
 * Idea. Between two storage gateways on a long fat path of known capacity, a lost packet is far more often a line error
 * than congestion. Halving a window of thousands of segments, then regaining one per round trip, costs such a path most
 * of its rate. Two changes, each of its own: give back only an eighth of the window at a loss; and after a loss
 * keep growing as in slow start.
 *
 * Equations (W = cwnd, segments):
 *	slow start, W < ssthresh:	W += acked
 *	avoidance, W >= ssthresh:	W += acked / W		congestion_avoidance on (RFC 5681, 3.1)
 *					W += acked		congestion_avoidance off: W doubles per RTT
 *					W += acked min(1, cap / W)	off, with a cap: at most `cap` segments per RTT
 *	loss:				ssthresh = max(W (1 - reduction), 2)
 * With congestion avoidance on, W = sqrt((2 - r) / (2 r b p)) under loss p with reduction r, b segments per ACK: 2.2
 * times Reno's at r = 1/8. Off and above a cap of c it is sqrt(c) times that.
 *
 * Parameters
 *	reduction		share of the window given up at a loss; 1/8 is the paper's, 1/2 is Reno
 *	congestion_avoidance	on: linear growth above ssthresh; off: exponential, bounded only by the receiver's window
 *	cap			off: most segments that growth above ssthresh adds per RTT; 1 is as with congestion
 *				avoidance on, 0 is the paper's: no bound
 *
 * Note. Off, the algorithm does not share: it overruns any drop-tail queue once per round trip or two, and others on
 * the bottleneck with it. It is meant for a path that one owns, with a receive window no larger than the path holds.
 *
 * Note on the cap, which is not the paper's. It is for where that cannot be promised. An overflow is known of one RTT
 * after it began, and until then the window goes on growing: what it adds per RTT is what it loses at a time. So this
 * is what is bounded, in segments, as RFC 3742 bounds slow start. Growth is by addition then, so that flows with the
 * same cap are sure to drift to equal shares (Chiu and Jain, Comput. Netw. ISDN Syst. 17(1), 1989). Other forms and why
 * not: a ceiling on the window is the flow's `window` already; doubling up to a share of the window at the last loss
 * amounts to a smaller reduction where the share is below 1, and above 1 the window grows by being lost; a bound on the
 * share gained per RTT is Scalable TCP, whose losses grow with the window. What a cap costs and gains is measured in
 * evaluation/papers/dsan/README.md.
 *
 * Ranges. Windows: all of u32. W (1 - r) x 1e6 stays below 2^52, acked x cap below 2^52.
 *
 * Source: modifications of the gateways' TCP by the paper in evaluation/papers/dsan: "1/8 reduction" in place of 1/2,
 * and "congestion avoidance disabled". The paper gives no formula for the rounding: W (1 - r) is rounded down, so that
 * r = 1/2 is Reno to the segment and every loss takes at least one segment.
 *
 * Kernel: as BPF struct_ops, Linux 5.6 and later; no state of its own.
 */
#include "cc.h"

/* A share of 1 as an integer: 1e-6 is the resolution of `reduction`. W x 1e6 ends at 1.8e13 segments. */
#define SHARE 1000000

CC_PARAMS(
	(reduction, 125000, 1000, 900000, 1000000, "1", "share of the window given up at a loss (1/2: Reno)"),
	(congestion_avoidance, 1, 0, 1, 1, "bool", "linear growth above ssthresh; off: growth stays exponential"),
	(cap, 0, 0, 1000000, 1, "segments", "most that growth without avoidance adds per RTT; 0: no bound"));

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

static u32 storage_friendly_ssthresh(struct cc_sock *sk)
{
	u64 kept = SHARE - (u64)cc_param(sk, reduction);

	return (u32)cc_max(cc_snd_cwnd(sk) * kept / SHARE, MIN_SSTHRESH);
}

static void storage_friendly_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	u64 per_rtt = cc_param(sk, congestion_avoidance) ? 1 : (u64)cc_param(sk, cap);
	u64 cwnd = cc_snd_cwnd(sk);

	(void)ack;
	if (!per_rtt) {
		if (cc_is_cwnd_limited_at(sk, 1))
			cc_set_snd_cwnd(sk, (u32)cc_min(cwnd + acked, cc_snd_cwnd_clamp(sk)));
		return;
	}
	if (cc_reaches_avoidance(sk, &acked)) {
		cwnd = cc_snd_cwnd(sk);
		cc_cong_avoid_ai(sk, (u32)cwnd, acked * cc_min(cwnd, per_rtt));
	}
}

CC_ALGORITHM(storage_friendly, "Reno that gives up an eighth at a loss; exponential growth on request",
	"storage-friendly TCP for iFCP gateways (evaluation/papers/dsan)",
	(ssthresh, storage_friendly_ssthresh),
	(cong_avoid, storage_friendly_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
