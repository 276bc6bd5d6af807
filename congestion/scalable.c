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
 * Variants, and what they make of a, b and the legacy window where no value is given:
 *	published	0.01, 1/8, 16: the paper's
 *	linux		0.01, 1/8, 0: today's Linux; but W += acked / W up to 1 / a segments: never less than Reno
 *	linux-2.6	0.02, 1/8, 0: Linux 2.6, and ns-2's TCP-Linux. 0.02 is for delayed ACKs: ACKs are counted, and
 *			one more than it means to, a segment per min(W, 50) + 1 ACKs: 1.96 % per RTT with an ACK for each.
 *			While a loss is repaired the window goes to W / 2, a segment per two ACKs, as every window did then
 *			that was not told otherwise (tcp_reno_min_cwnd); from there slow start lifts it to W (1 - b)
 *
 * Parameters
 *	variant		see above
 *	a		segments gained per segment acknowledged; 1 is slow start
 *	b		share of the window given up at a loss
 *	legacy_window	segments; up to this window the algorithm is Reno, 0: never
 * Twice a, or half b, is twice the window under loss, and half the time to recover.
 *
 * Note. Two flows that lose together keep their shares, since each gains and gives up the same share of its window
 * (Chiu and Jain, Comput. Netw. ISDN Syst. 17(1), 1989). An overflow loses about a W segments, what is gained in an
 * RTT.
 *
 * If the paper and Linux differ, each variant is its own. Linux's growth up to 1 / a segments is Reno's, with a quarter
 * of Reno's decrease: fairness on ordinary paths, which the legacy window is for, it has not. In published b W is
 * rounded up, so that a loss always takes a segment; Linux rounds it down (W >> 3).
 *
 * Checked. a and b against the report on FAST (Jin, Wei, Low 2003) and Linux's comment, which quote them; linux-2.6
 * against ns-2.35. The legacy window of 16 not checked against the paper: text not found.
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
	(variant, 0, 0, 2, 1, "published|linux|linux-2.6", "growth and constants: the paper's, or Linux's"),
	(a, CC_BY_VARIANT, 100, 1000000, 1000000, "1", "segments gained per segment acknowledged: 0.01, linux-2.6 0.02"),
	(b, 125000, 1000, 900000, 1000000, "1", "share of the window given up at a loss"),
	(legacy_window, CC_BY_VARIANT, 0, 1000000, 1, "segments", "Reno up to this window: published 16, linux 0"));

/* The last of the variants. */
#define LINUX_2_6 2

#define A_KELLY 10000
#define A_LINUX_2_6 20000
#define LEGACY_WINDOW 16

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

static inline u64 gain(struct cc_sock *sk)
{
	if (cc_param(sk, a) != CC_BY_VARIANT)
		return (u64)cc_param(sk, a);
	return cc_param(sk, variant) == LINUX_2_6 ? A_LINUX_2_6 : A_KELLY;
}

static inline int is_legacy(struct cc_sock *sk)
{
	u64 legacy = cc_param(sk, variant) ? 0 : LEGACY_WINDOW;

	if (cc_param(sk, legacy_window) != CC_BY_VARIANT)
		legacy = (u64)cc_param(sk, legacy_window);
	return cc_snd_cwnd(sk) <= legacy;
}

/* W - b W, where the part that goes is rounded down. */
static inline u32 linux_threshold(struct cc_sock *sk, u64 cwnd)
{
	return (u32)cc_max(cwnd - cwnd * (u64)cc_param(sk, b) / SHARE, MIN_SSTHRESH);
}

static u32 scalable_ssthresh(struct cc_sock *sk)
{
	u64 kept = SHARE - (u64)cc_param(sk, b);
	u64 cwnd = cc_snd_cwnd(sk);

	if (is_legacy(sk) || cc_param(sk, variant) == LINUX_2_6)
		return (u32)cc_max(cwnd / 2, MIN_SSTHRESH);
	if (cc_param(sk, variant))
		return linux_threshold(sk, cwnd);
	return (u32)cc_max(cwnd * kept / SHARE, MIN_SSTHRESH);
}

/* Linux 2.6: the repair, or the time-out, halved the window; the threshold is what slow start goes up to now. */
static void scalable_cwnd_event(struct cc_sock *sk, u32 event)
{
	if (cc_param(sk, variant) != LINUX_2_6 || (event != CC_EVENT_COMPLETE_CWR && event != CC_EVENT_LOSS))
		return;
	cc_set_snd_ssthresh(sk, linux_threshold(sk, cc_prior_cwnd(sk)));
}

static void scalable_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	if (cc_param(sk, variant) == LINUX_2_6 ? !cc_reaches_avoidance_2_6(sk) : !cc_reaches_avoidance(sk, &acked))
		return;
	if (is_legacy(sk))
		cc_cong_avoid_ai(sk, cc_snd_cwnd(sk), acked);
	else if (cc_param(sk, variant) == LINUX_2_6)
		cc_grow_by_acks(sk, (u32)cc_min(cc_snd_cwnd(sk), cc_div(SHARE, gain(sk))));
	else if (cc_param(sk, variant))
		cc_cong_avoid_ai(sk, (u32)cc_min(cc_snd_cwnd(sk), cc_div(SHARE, gain(sk))), acked);
	else
		cc_cong_avoid_ai(sk, SHARE, acked * gain(sk));
}

CC_ALGORITHM(scalable, "grows by a share of the window per round trip, at any rate", "Kelly, CCR 33(2), 2003",
	(ssthresh, scalable_ssthresh),
	(cong_avoid, scalable_cong_avoid),
	(cwnd_event, scalable_cwnd_event),
	(undo_cwnd, cc_undo_cwnd));
