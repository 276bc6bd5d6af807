/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Compound TCP: Reno's window, and on top of it one that delay controls.
 *
 * Idea. Reno gains one segment per round trip: far too slow for a long fat path that is empty. So add a second window
 * that grows with a power of the whole while the RTT shows no queue, as HighSpeed TCP would, and that makes way, down
 * to nothing, as soon as segments are queued: a flow is never less than Reno, and more only where there is room.
 *
 * Equations (Tan et al.; W = cwnd = L + D, segments: L the loss window, D the delay window):
 *	slow start:	L += acked, D = 0
 *	each ACK:	L += acked / W
 *	once per RTT:	diff = W (RTT - baseRTT) / RTT		(segments of W that are queued)
 *		diff < gamma:	D += max(alpha W^k - 1, 0)	(spread over the ACKs of the next round)
 *		otherwise:	D = max(D - zeta diff, 0)
 *	loss:		D = max(W (1 - beta) - L / 2, 0), L = L / 2
 *	time-out:	D = 0, ssthresh as after a loss
 *	baseRTT = least RTT seen, RTT = least RTT of the round (at least 3 samples of it)
 * Under random loss p on an empty path D rules: a cycle of 1 / p segments from W (1 - beta) to W gives
 *	W^(2-k) = (2 - k) alpha / (p (1 - (1 - beta)^(2-k))), on average 0.25 / p^0.8 with the defaults
 * and once W fills the path, L grows by what D gives up, until L alone is W: from there on it is Reno.
 *
 * gamma by emulation (adapt_gamma; CTCP-TUBE). With small buffers a fixed gamma is never reached before the loss; with
 * several flows each keeps gamma queued. So look at what Reno alone would have queued when the loss came, by L:
 *	diff_reno = L (RTT - baseRTT) / RTT in the last round before a loss
 *	gamma = (gamma + 3/4 diff_reno) / 2, within gamma_low .. gamma
 *
 * Parameters
 *	alpha, k	growth of D per RTT, alpha W^k; 1/8 and 3/4 match HighSpeed TCP (RFC 3649)
 *	beta		share of the window given up at a loss
 *	gamma		segments queued from which on D makes way
 *	zeta		how much D gives up per segment queued
 *	adapt_gamma	gamma by emulation, at most `gamma`
 *	gamma_low	least gamma then, segments
 *
 * Choices that the sources leave open, or in which they differ:
 *	- adapt_gamma is off: the paper of 2006 has gamma = 30; the draft adapts it;
 *	- the RTT is the least one of the round, as in the port to Linux of 2008 (never part of the kernel); the paper
 *	  has the mean. It is free of delayed ACKs and of the bursts of one's own;
 *	- the port adds the growth of D at once and once per RTT; here it is spread, never faster than slow start;
 *	- W is the window, not what was in flight in the last round; while the application is the limit nothing grows;
 *	- the forgetting factor of gamma is 1/2, the port's;
 *	- L is at least 1 segment; an undone loss brings D back, too.
 *
 * Checked. alpha, k, gamma, zeta, the change of D per RTT and the 3 samples against the port to Linux as ns-2.35 has
 * it. Not checked against the papers and the draft: found to its introduction only.
 *
 * Ranges. Windows: u32, tried to 34 million segments; a round is told by sequence numbers, which can be compared while
 * less than 2^31 bytes are in flight (RFC 7323 allows 2^30). RTT: 1 us .. 2^31 us; W x RTT < 2^63. W^k by logarithm,
 * 1e-8 of it off; W < 2^32, so that W^k alpha is below 2^62 in the units used.
 *
 * Source: K. Tan, J. Song, Q. Zhang, M. Sridharan, "A Compound TCP approach for high-speed and long distance networks",
 * INFOCOM 2006; draft-sridharan-tcpm-ctcp-02; TUBE: K. Tan, J. Song, M. Sridharan, C.-Y. Ho, "CTCP-TUBE: improving
 * TCP-friendliness over low-buffered network links", PFLDnet 2008.
 * Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(alpha, 125, 1, 1000, 1000, "1", "growth of the delay window per RTT: alpha W^k"),
	(k, 750, 100, 950, 1000, "1", "growth of the delay window per RTT: alpha W^k"),
	(beta, 500, 10, 900, 1000, "1", "share of the window given up at a loss"),
	(gamma, 30, 1, 1000000, 1, "segments", "queued segments from which on the delay window makes way"),
	(zeta, 1000, 1, 10000, 1000, "1", "what the delay window gives up per queued segment"),
	(adapt_gamma, 0, 0, 1, 1, "bool", "lower gamma to 3/4 of what Reno would queue (CTCP-TUBE)"),
	(gamma_low, 5, 1, 1000000, 1, "segments", "least gamma that this comes to"));

/* One, as alpha, k, beta and zeta count it. */
#define ONE 1000

/* gamma's part behind the point: 2^-4, so that it can come near its goal by halves. */
#define GAMMA_SHIFT 4

/* alpha W^k, behind the point: 2^-8. */
#define STEP_SHIFT 8

/* RTTs of a round below which all may come from delayed ACKs. */
#define MIN_SAMPLES 3

/* No RTT yet. */
#define NO_RTT ~0u

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_WINDOW 2

struct compound {
	u64 credit;		/* what ACKs have earned of it, in segments acknowledged x step */
	u32 base_rtt_us;	/* least RTT seen */
	u32 round_rtt_us;	/* least RTT of the round */
	u32 round_end_seq;	/* the round ends when more than this is acknowledged */
	u32 samples;		/* RTTs of the round; stops at MIN_SAMPLES */
	u32 dwnd;		/* the delay window, D, below cwnd; the loss window is the rest */
	u32 lost_dwnd;		/* D before the last loss, for the case that it was none */
	u32 step;		/* what D gains over this round, 2^-8 segments: 34 million^0.95 are 2^32 */
	u32 step_window;	/* the window that this belongs to */
	u32 gamma;		/* in 2^-4 segments: at most 2^24 */
	u32 diff_reno;		/* what L has queued, segments; valid with has_diff_reno */
	u8 has_diff_reno;
	u8 active;		/* not in loss recovery */
};

CC_STATE(struct compound);

static inline void new_round(struct cc_sock *sk, struct compound *ca)
{
	ca->round_end_seq = cc_snd_nxt(sk);
	ca->round_rtt_us = NO_RTT;
	ca->samples = 0;
}

/* Earlier samples say nothing about the window from here on. */
static inline void restart(struct cc_sock *sk, struct compound *ca)
{
	ca->step = 0;
	ca->has_diff_reno = 0;
	new_round(sk, ca);
}

static void compound_init(struct cc_sock *sk)
{
	struct compound *ca = cc_state(sk);

	ca->base_rtt_us = NO_RTT;
	ca->gamma = (u32)cc_param(sk, gamma) << GAMMA_SHIFT;
	ca->active = 1;
	restart(sk, ca);
}

/* D after something else has lowered the window: L is at least one segment. */
static inline u32 delay_window(struct cc_sock *sk, struct compound *ca)
{
	ca->dwnd = (u32)cc_min(ca->dwnd, cc_snd_cwnd(sk) - 1);
	return ca->dwnd;
}

/* Half of the way to 3/4 of what Reno would have had in the queue. */
static inline void adapt(struct cc_sock *sk, struct compound *ca)
{
	u64 reno = ((u64)ca->diff_reno << GAMMA_SHIFT) * 3 / 4;
	u64 high = (u64)cc_param(sk, gamma) << GAMMA_SHIFT;
	u64 low = cc_min((u64)cc_param(sk, gamma_low) << GAMMA_SHIFT, high);

	if (!ca->has_diff_reno || !cc_param(sk, adapt_gamma))
		return;
	ca->gamma = (u32)cc_max(cc_min((ca->gamma + reno) / 2, high), low);
	/* One measurement, one adjustment. */
	ca->has_diff_reno = 0;
}

static u32 compound_ssthresh(struct cc_sock *sk)
{
	struct compound *ca = cc_state(sk);
	u64 cwnd = cc_snd_cwnd(sk);
	u64 kept = cwnd * (ONE - (u64)cc_param(sk, beta)) / ONE;
	u64 half = (cwnd - delay_window(sk, ca)) / 2;

	adapt(sk, ca);
	ca->lost_dwnd = ca->dwnd;
	ca->dwnd = (u32)(kept > half ? kept - half : 0);
	ca->step = 0;
	return (u32)cc_max(half + ca->dwnd, MIN_WINDOW);
}

static u32 compound_undo_cwnd(struct cc_sock *sk)
{
	struct compound *ca = cc_state(sk);

	ca->dwnd = ca->lost_dwnd;
	return cc_undo_cwnd(sk);
}

static void compound_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	struct compound *ca = cc_state(sk);
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

/* max(alpha W^k - 1, 0), in 2^-8 segments. */
static inline u32 growth(struct cc_sock *sk, u32 cwnd)
{
	const u64 one = 1ull << STEP_SHIFT;
	u64 power = cc_exp2(cc_log2(cwnd) * (u64)cc_param(sk, k) / ONE);
	/* Below 2^32 x 2^20 x 2^10. */
	u64 grown = ((power >> 10) * (u64)cc_param(sk, alpha) / ONE) >> (CC_LOG2_SHIFT - 10 - STEP_SHIFT);

	return grown > one ? (u32)cc_min(grown - one, ~0u) : 0;
}

/* The decision of the round. */
static inline void decide(struct cc_sock *sk, struct compound *ca)
{
	u64 cwnd = cc_snd_cwnd(sk);
	u64 dwnd = delay_window(sk, ca);
	u64 rtt = ca->round_rtt_us;
	u64 queueing = rtt - ca->base_rtt_us;
	u64 diff = cc_div(cwnd * queueing, rtt);
	u64 less;

	ca->diff_reno = (u32)cc_div((cwnd - dwnd) * queueing, rtt);
	ca->has_diff_reno = 1;
	ca->step = 0;
	if (diff << GAMMA_SHIFT < ca->gamma) {
		if (cc_is_cwnd_limited(sk)) {
			ca->step = growth(sk, (u32)cwnd);
			ca->step_window = (u32)cwnd;
		}
		return;
	}
	less = cc_min(cc_min(diff * (u64)cc_param(sk, zeta) / ONE, dwnd), cwnd > MIN_WINDOW ? cwnd - MIN_WINDOW : 0);
	ca->dwnd = (u32)(dwnd - less);
	cc_set_snd_cwnd(sk, (u32)(cwnd - less));
	/* Not into slow start. */
	if (cc_snd_ssthresh(sk) > cwnd - less)
		cc_set_snd_ssthresh(sk, (u32)cc_max(cwnd - less, MIN_WINDOW));
}

/* D's growth for `acked` segments, of which L has made `taken` segments of window already. */
static inline void grow_delay_window(struct cc_sock *sk, struct compound *ca, u32 acked, u64 taken)
{
	u64 cwnd = cc_snd_cwnd(sk);
	u64 clamp = cc_snd_cwnd_clamp(sk);
	u64 credit = ca->credit + (u64)acked * ca->step;
	u64 per = (u64)ca->step_window << STEP_SHIFT;
	u64 more = cc_div(credit, per);

	ca->credit = credit - more * per;
	/* Never faster than slow start, never beyond the clamp. */
	more = cc_min(more, acked > taken ? acked - taken : 0);
	more = cc_min(more, clamp > cwnd ? clamp - cwnd : 0);
	ca->dwnd += (u32)more;
	cc_set_snd_cwnd(sk, (u32)(cwnd + more));
}

static void compound_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct compound *ca = cc_state(sk);
	u64 before;

	if (ca->active && cc_after(ack, ca->round_end_seq)) {
		if (ca->samples >= MIN_SAMPLES && !cc_in_slow_start(sk))
			decide(sk, ca);
		new_round(sk, ca);
	}
	if (!ca->active || cc_in_slow_start(sk)) {
		cc_reno_cong_avoid(sk, acked);
		return;
	}
	if (!cc_is_cwnd_limited(sk))
		return;
	before = cc_snd_cwnd(sk);
	cc_cong_avoid_ai(sk, (u32)before, acked);
	if (ca->step)
		grow_delay_window(sk, ca, acked, cc_snd_cwnd(sk) > before ? cc_snd_cwnd(sk) - before : 0);
}

static void compound_set_state(struct cc_sock *sk, u8 state)
{
	struct compound *ca = cc_state(sk);

	if (state == CC_LOSS)
		ca->dwnd = 0;
	if (state >= CC_CWR) {
		ca->active = 0;
	} else if (!ca->active) {
		ca->active = 1;
		restart(sk, ca);
	}
}

/* After idle the round that was under way means nothing; the least RTT is kept. */
static void compound_cwnd_event(struct cc_sock *sk, u32 event)
{
	if (event == CC_EVENT_TX_START || event == CC_EVENT_CWND_RESTART)
		restart(sk, cc_state(sk));
}

CC_ALGORITHM(compound, "Reno's window plus one that grows fast while there is no queue, and makes way when there is",
	"Tan, Song, Zhang, Sridharan 2006",
	(init, compound_init),
	(ssthresh, compound_ssthresh),
	(cong_avoid, compound_cong_avoid),
	(set_state, compound_set_state),
	(cwnd_event, compound_cwnd_event),
	(pkts_acked, compound_pkts_acked),
	(undo_cwnd, compound_undo_cwnd));
