/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * FAST TCP: a fixed number of segments queued per flow, approached in steps as large as the distance.
 *
 * Idea. As Vegas, take the least RTT for the propagation delay and what the RTT exceeds it by for queue. Vegas then
 * moves one segment per round, however far it is from where it wants to be; FAST moves by a share of the distance, so
 * that the window converges exponentially also on a path of 100,000 segments, and rests there: no sawtooth.
 *
 * Equations (Jin, Wei, Low; W = cwnd, segments):
 *	W = min(2 W, (1 - gamma) W + gamma (baseRTT / RTT W + alpha))
 * which is W + gamma (alpha - queued), with queued = W (RTT - baseRTT) / RTT the flow's own segments in queues. Here:
 *	baseRTT = least RTT seen, RTT = mean RTT of a round
 *	one round measures, the next one moves: W reaches its new value evenly over the ACKs of a round; a decrease at once
 *	slow start:	W += acked, until alpha are queued (by the least RTT of a round)
 *	loss:		ssthresh = max(W (1 - reduction), 2)
 * At equilibrium each flow has alpha segments queued, whatever its RTT: W = rate x baseRTT + alpha; N flows need N
 * alpha segments of buffer, and share alike. With less buffer, or under random loss p, growth by gamma alpha per two
 * RTTs meets the reduction: W = sqrt(3 gamma alpha / (4 p)) at a reduction of 1/2.
 *
 * Parameters
 *	alpha		segments that a flow keeps queued. The papers fit it to the rate; 100 are 12 ms at 100 Mbit/s
 *	gamma		share of the distance covered per update; 1/2 is the papers'
 *	reduction	share of the window given up at a loss; 1/2 is Reno's
 *
 * There is no public Linux source to compare with: FAST was a patch for 2.4 kernels and then a product. Where the
 * papers leave a choice, this is what was chosen:
 *	- they update "periodically"; here every other round, since RTTs of the round in which the window moves were taken
 *	  before the move. Measured late by a round, the equation would oscillate for gamma near 1;
 *	- their RTT is an exponential average with weight min(3 / W, 1/4) per ACK, 95 % of it from the last round; here the
 *	  plain mean of the round;
 *	- alpha is constant, as in their prototype; the alternative, alpha in proportion to W while nothing is queued, is
 *	  not built. After a loss on a very long path growth is therefore slow: gamma alpha per two RTTs;
 *	- loss is answered as Reno does, by half; they say that FAST answers it, not by how much;
 *	- the window does not grow while the application is the limit.
 *
 * A flow that starts on a full path takes the others' queue for part of its path, and gets more than its share (alpha
 * segments on top of theirs). A path that becomes longer looks like a queue for good.
 *
 * Not checked against the papers: text not found, but for a summary without equations.
 *
 * Ranges. Windows: u32, tried to 34 million segments; a round is told by sequence numbers, which can be compared while
 * less than 2^31 bytes are in flight (RFC 7323 allows 2^30). RTT: 1 us .. 2^31 us. What is queued and the window's
 * fraction are in 1/1024 segments: 2^42, times gamma in 1/1000: 2^52.
 *
 * Source: C. Jin, D. X. Wei, S. H. Low, "FAST TCP: motivation, architecture, algorithms, performance", INFOCOM 2004;
 * the same with S. Hegde, IEEE/ACM ToN 14(6), 2006. Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(alpha, 100, 1, 1000000, 1, "segments", "what the flow keeps queued"),
	(gamma, 500, 1, 1000, 1000, "1", "share of the distance covered per update, every other RTT"),
	(reduction, 500000, 1000, 900000, 1000000, "1", "share of the window given up at a loss (1/2: Reno)"));

/* One, as gamma and reduction count it. */
#define GAMMA_ONE 1000
#define SHARE 1000000

/* Fraction of a segment: 2^-10, so that a small gamma arrives, too. */
#define FRACTION_SHIFT 10

/* No RTT yet. */
#define NO_RTT ~0u

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_WINDOW 2

struct fast {
	u64 rtt_sum_us;		/* RTTs of the round: 2^31 us x 2^32 of them */
	u32 samples;		/* how many */
	u32 base_rtt_us;	/* least RTT seen */
	u32 round_rtt_us;	/* least RTT of the round */
	u32 round_end_seq;	/* the round ends when more than this is acknowledged */
	u32 from;		/* window at the last update, */
	u32 to;			/* and where it goes */
	u32 fraction;		/* of a segment that `to` is short of the equation, 2^-10 */
	u8 moving;		/* the round moves the window; otherwise it measures */
	u8 active;		/* not in loss recovery */
};

CC_STATE(struct fast);

static inline void new_round(struct cc_sock *sk, struct fast *ca)
{
	ca->round_end_seq = cc_snd_nxt(sk);
	ca->round_rtt_us = NO_RTT;
	ca->rtt_sum_us = 0;
	ca->samples = 0;
}

/* Nothing under way: at the start, and whenever something else has set the window. */
static inline void restart(struct cc_sock *sk, struct fast *ca)
{
	ca->moving = 0;
	ca->fraction = 0;
	new_round(sk, ca);
}

static void fast_init(struct cc_sock *sk)
{
	struct fast *ca = cc_state(sk);

	ca->base_rtt_us = NO_RTT;
	ca->active = 1;
	restart(sk, ca);
}

static u32 fast_ssthresh(struct cc_sock *sk)
{
	u64 kept = SHARE - (u64)cc_param(sk, reduction);

	return (u32)cc_max(cc_snd_cwnd(sk) * kept / SHARE, MIN_WINDOW);
}

static void fast_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	struct fast *ca = cc_state(sk);
	s32 rtt = cc_sample_rtt_us(sample);
	u32 rtt_us;

	if (rtt < 0 || ca->samples == ~0u)
		return;
	rtt_us = (u32)cc_max((u32)rtt, 1);
	ca->base_rtt_us = (u32)cc_min(ca->base_rtt_us, rtt_us);
	ca->round_rtt_us = (u32)cc_min(ca->round_rtt_us, rtt_us);
	ca->rtt_sum_us += rtt_us;
	ca->samples++;
}

/* Of a window of `cwnd` segments, those in queues, in 2^-10: cwnd (rtt - base) / rtt, exact. base <= rtt, rtt >= 1. */
static inline u64 queued(u64 cwnd, u64 base, u64 rtt)
{
	u64 product = cwnd * (rtt - base);
	u64 whole = cc_div(product, rtt);

	return (whole << FRACTION_SHIFT) + cc_div((product - whole * rtt) << FRACTION_SHIFT, rtt);
}

/* The equation; sets out for the new window. */
static inline void update(struct cc_sock *sk, struct fast *ca)
{
	u64 cwnd = cc_snd_cwnd(sk);
	u64 gamma = (u64)cc_param(sk, gamma);
	u64 alpha = (u64)cc_param(sk, alpha) << FRACTION_SHIFT;
	u64 in_queue = queued(cwnd, ca->base_rtt_us, cc_div(ca->rtt_sum_us, ca->samples));
	u64 wanted = (cwnd << FRACTION_SHIFT) + ca->fraction;

	if (alpha >= in_queue) {
		if (!cc_is_cwnd_limited(sk))
			return;
		wanted = cc_min(wanted + (alpha - in_queue) * gamma / GAMMA_ONE, cwnd << (FRACTION_SHIFT + 1));
	} else {
		/* At most gamma W, so that it stays above 0. */
		wanted -= (in_queue - alpha) * gamma / GAMMA_ONE;
	}
	ca->fraction = (u32)wanted & ((1u << FRACTION_SHIFT) - 1);
	wanted = cc_min(cc_max(wanted >> FRACTION_SHIFT, MIN_WINDOW), cc_snd_cwnd_clamp(sk));
	ca->from = (u32)cwnd;
	ca->to = (u32)wanted;
	ca->moving = 1;
	if (wanted < cwnd) {
		cc_set_snd_cwnd(sk, (u32)wanted);
		/* Not into slow start. */
		if (cc_snd_ssthresh(sk) > wanted)
			cc_set_snd_ssthresh(sk, (u32)cc_max(wanted, MIN_WINDOW));
	}
}

static inline void end_round(struct cc_sock *sk, struct fast *ca)
{
	int measured = ca->samples && !ca->moving;

	ca->moving = 0;
	if (measured && cc_in_slow_start(sk)) {
		u64 alpha = (u64)cc_param(sk, alpha) << FRACTION_SHIFT;

		/* By the least RTT of the round: the mean has the bursts of slow start in it, half a window at worst. */
		measured = queued(cc_snd_cwnd(sk), ca->base_rtt_us, ca->round_rtt_us) >= alpha;
		if (measured)
			cc_set_snd_ssthresh(sk, (u32)cc_max(cc_snd_cwnd(sk), MIN_WINDOW));
	}
	if (measured)
		update(sk, ca);
	new_round(sk, ca);
}

static void fast_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct fast *ca = cc_state(sk);

	if (!ca->active) {
		cc_reno_cong_avoid(sk, acked);
		return;
	}
	if (cc_after(ack, ca->round_end_seq))
		end_round(sk, ca);
	if (!cc_is_cwnd_limited(sk))
		return;
	if (cc_in_slow_start(sk)) {
		cc_slow_start(sk, acked);
	} else if (ca->moving && ca->to > cc_snd_cwnd(sk)) {
		/* All of the way within one window of ACKs; what rounding adds is taken off. */
		u64 way = ca->to > ca->from ? ca->to - ca->from : 0;

		cc_cong_avoid_ai(sk, ca->from, acked * way);
		cc_set_snd_cwnd(sk, (u32)cc_min(cc_snd_cwnd(sk), ca->to));
	}
}

/* Recovery sets the window; what it measured says nothing about the window after it. */
static void fast_set_state(struct cc_sock *sk, u8 state)
{
	struct fast *ca = cc_state(sk);

	if (state >= CC_CWR) {
		ca->active = 0;
	} else if (!ca->active) {
		ca->active = 1;
		restart(sk, ca);
	}
}

/* After idle the round that was under way means nothing; the least RTT is kept. */
static void fast_cwnd_event(struct cc_sock *sk, u32 event)
{
	if (event == CC_EVENT_TX_START || event == CC_EVENT_CWND_RESTART)
		restart(sk, cc_state(sk));
}

CC_ALGORITHM(fast, "keeps alpha segments queued per flow, approached exponentially",
	"Jin, Wei, Low 2004",
	(init, fast_init),
	(ssthresh, fast_ssthresh),
	(cong_avoid, fast_cong_avoid),
	(set_state, fast_set_state),
	(cwnd_event, fast_cwnd_event),
	(pkts_acked, fast_pkts_acked),
	(undo_cwnd, cc_undo_cwnd));
