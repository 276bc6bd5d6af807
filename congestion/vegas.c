/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Vegas: keeps a few segments queued, and slows down before the queue overflows.
 *
 * Idea. What a window holds beyond rate times propagation delay stands in a queue, and shows as delay. The least RTT
 * ever seen is taken for the propagation delay; the RTT of the last round then tells how many of one's own segments are
 * queued. Keep that number between alpha and beta: enough to use what becomes free, too few to fill a buffer.
 *
 * Equations (Brakmo and Peterson, section IV; W = cwnd, segments; once per RTT):
 *	baseRTT = least RTT ever, RTT = least RTT of the round (at least 3 samples of it)
 *	diff = W (RTT - baseRTT) / baseRTT
 *	slow start:	diff > gamma:	W = min(W, W baseRTT / RTT + 1), slow start ends
 *			otherwise:	W += acked
 *	avoidance:	diff < alpha:	W += 1
 *			diff > beta:	W -= 1, at least 2
 *			otherwise:	W stays
 *	loss:		ssthresh = max(W / 2, 2)
 * At equilibrium a flow alone has alpha to beta segments queued: W = rate x baseRTT + alpha .. beta. Under random loss
 * that comes before the path is full it is Reno, W = sqrt(3 / (2 p)).
 *
 * Parameters
 *	alpha		fewer queued: faster. Segments
 *	beta		more queued: slower. Segments; below alpha the window never rests
 *	gamma		more queued: slow start ends. Segments
 *
 * If the paper and Linux differ, this is Linux:
 *	- diff is W (RTT - baseRTT) / baseRTT, which is the paper's (Expected - Actual) baseRTT times RTT / baseRTT: with a
 *	  queue as long as the path, Linux sees twice what the paper sees;
 *	- alpha 2, beta 4 (the paper tries 1, 3 and 2, 4);
 *	- slow start grows in every round, not in every other one, and ends at the window that the ACKs bore out, not an
 *	  eighth below;
 *	- the round's least RTT is used, not its average: it is free of delayed ACKs;
 *	- a loss halves the window; retransmission is TCP's own, without Vegas's finer timer and its decrease by a quarter;
 *	- with fewer than 3 RTTs in a round, and until recovery is over, growth is Reno's;
 *	- after idle (and whenever nothing was in flight) baseRTT is measured anew, in a queue if there is one.
 * And where this differs from Linux: the window does not grow while the application is the limit (RFC 7661; Linux's
 * Vegas adds a segment per RTT, without end); diff is computed in 64 bits (Linux's product wraps at 2^32: 10,000
 * segments and 0.43 s of queue); an RTT of 0 us counts as 1 (Linux adds 1 to each).
 *
 * In slow start the least RTT of a round is that of packets sent a doubling ago or two: in a large buffer slow start
 * may overshoot to four windows of the path, and what is too much then goes at one segment per RTT. A path that becomes
 * longer looks like a queue: until the next idle time Vegas gives up its rate. Beside a flow that fills the queue it
 * gets little.
 *
 * Ranges. Windows: u32, tried to 34 million segments; a round is told by sequence numbers, which can be compared while
 * less than 2^31 bytes are in flight (RFC 7323 allows 2^30). RTT: 1 us .. 2^31 us; W x RTT < 2^63.
 *
 * Source: L. S. Brakmo and L. L. Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE JSAC
 * 13(8), 1995; Linux's tcp_vegas for what a kernel makes of it.
 * Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(alpha, 2, 1, 1000000, 1, "segments", "fewer of one's own queued: one segment more per RTT"),
	(beta, 4, 1, 1000000, 1, "segments", "more of one's own queued: one segment less per RTT"),
	(gamma, 1, 1, 1000000, 1, "segments", "more of one's own queued: slow start ends"));

/* RTTs of a round below which all may come from delayed ACKs (Linux). */
#define MIN_SAMPLES 3

/* No RTT yet. */
#define NO_RTT ~0u

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_WINDOW 2

struct vegas {
	u32 base_rtt_us;	/* least RTT since the start or the last idle time */
	u32 round_rtt_us;	/* least RTT of the round */
	u32 round_end_seq;	/* the round ends when more than this is acknowledged */
	u32 samples;		/* RTTs of the round; stops at MIN_SAMPLES */
	u8 active;		/* not in or after recovery: the round's RTTs say something */
};

CC_STATE(struct vegas);

static inline void new_round(struct cc_sock *sk, struct vegas *ca)
{
	ca->round_end_seq = cc_snd_nxt(sk);
	ca->round_rtt_us = NO_RTT;
	ca->samples = 0;
}

static void vegas_init(struct cc_sock *sk)
{
	struct vegas *ca = cc_state(sk);

	ca->base_rtt_us = NO_RTT;
	ca->active = 1;
	new_round(sk, ca);
}

static u32 vegas_ssthresh(struct cc_sock *sk)
{
	return (u32)cc_max(cc_snd_cwnd(sk) / 2, MIN_WINDOW);
}

static void vegas_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	struct vegas *ca = cc_state(sk);
	s32 rtt = cc_sample_rtt_us(sample);
	u32 rtt_us;

	if (rtt < 0)
		return;
	rtt_us = (u32)cc_max((u32)rtt, 1);
	ca->base_rtt_us = (u32)cc_min(ca->base_rtt_us, rtt_us);
	ca->round_rtt_us = (u32)cc_min(ca->round_rtt_us, rtt_us);
	if (ca->samples < MIN_SAMPLES)
		ca->samples++;
}

/* The decision of the round. `base` <= `rtt`, both at least 1. */
static inline void adjust(struct cc_sock *sk, u64 base, u64 rtt, u32 acked)
{
	u64 cwnd = cc_snd_cwnd(sk);
	u64 diff = cc_div(cwnd * (rtt - base), base);
	u64 wanted = cwnd;
	u64 threshold;

	if (cc_in_slow_start(sk)) {
		if (diff <= (u64)cc_param(sk, gamma)) {
			if (cc_is_cwnd_limited(sk))
				cc_slow_start(sk, acked);
			return;
		}
		/* One more than what the ACKs bore out: rounding down would leave the path idle for a part of each RTT. */
		wanted = cc_min(cwnd, cc_div(cwnd * base, rtt) + 1);
	} else if (diff > (u64)cc_param(sk, beta)) {
		wanted = cwnd - 1;
	} else if (diff < (u64)cc_param(sk, alpha) && cc_is_cwnd_limited(sk)) {
		wanted = cwnd + 1;
	}
	wanted = cc_min(cc_max(wanted, MIN_WINDOW), cc_snd_cwnd_clamp(sk));
	cc_set_snd_cwnd(sk, (u32)wanted);
	/* No slow start again after a decrease; and a threshold that follows the window up, to three quarters of it, for
	 * the restart after idle (Linux, tcp_current_ssthresh). */
	threshold = cc_max(cc_min(cc_snd_ssthresh(sk), wanted), wanted / 2 + wanted / 4);
	cc_set_snd_ssthresh(sk, (u32)cc_max(threshold, MIN_WINDOW));
}

static void vegas_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct vegas *ca = cc_state(sk);

	if (!ca->active) {
		cc_reno_cong_avoid(sk, acked);
		return;
	}
	if (!cc_after(ack, ca->round_end_seq)) {
		if (cc_in_slow_start(sk) && cc_is_cwnd_limited(sk))
			cc_slow_start(sk, acked);
		return;
	}
	if (ca->samples < MIN_SAMPLES)
		cc_reno_cong_avoid(sk, acked);
	else
		adjust(sk, ca->base_rtt_us, ca->round_rtt_us, acked);
	new_round(sk, ca);
}

/* Samples taken during recovery say nothing about the window after it. */
static void vegas_set_state(struct cc_sock *sk, u8 state)
{
	struct vegas *ca = cc_state(sk);

	ca->active = state == CC_OPEN;
	if (ca->active)
		new_round(sk, ca);
}

static void vegas_cwnd_event(struct cc_sock *sk, u32 event)
{
	if (event == CC_EVENT_TX_START || event == CC_EVENT_CWND_RESTART)
		vegas_init(sk);
}

CC_ALGORITHM(vegas, "keeps two to four segments queued: delay, not loss, sets the window",
	"Brakmo and Peterson 1995, as in Linux",
	(init, vegas_init),
	(ssthresh, vegas_ssthresh),
	(cong_avoid, vegas_cong_avoid),
	(set_state, vegas_set_state),
	(cwnd_event, vegas_cwnd_event),
	(pkts_acked, vegas_pkts_acked),
	(undo_cwnd, cc_undo_cwnd));
