/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Westwood+: after a loss, the window that the path has been carrying, not half of what was tried.
 *
 * Idea. A loss says that something is wrong, not how much the path carries; the ACKs do say that. So measure the rate
 * at which data arrives, once per RTT, smooth it, and on a loss set the window to rate times least RTT: what fills the
 * path and leaves the queue empty. Where a queue overflowed that is about what Reno does; where a line error ate one
 * packet of a path with room, next to nothing is given up. Growth is Reno's.
 *
 * Equations (Mascolo et al.; W = cwnd, segments; B = estimated rate):
 *	slow start:	W += acked
 *	avoidance:	W += acked / W
 *	each interval of at least an RTT and min_interval:
 *		sample = segments delivered / length of the interval
 *		A = (1 - gain) A + gain sample,  B = (1 - gain) B + gain A;  the first sample is A and B
 *	loss, time-out:	ssthresh = B RTTmin, at least 2, at most W; W / 2 while there is no sample
 * With queueing delay q a loss gives up the share r = q / (RTTmin + q) of W instead of a half: next to nothing on a
 * path with room. Under random loss p then W = sqrt((2 - r) / (2 r p)), as far as the filters keep up.
 *
 * Parameters
 *	gain		weight of a new sample in each of the two filters
 *	min_interval	least length of a sample; us
 *
 * Differences of the papers and Linux:
 *	- the estimate is Linux's: two filters in a row with weight 1/8 (the paper: one with 1/10), no sample shorter
 *	  than 50 ms, RTTmin forgotten at a time-out;
 *	- the reduction is the papers': to B RTTmin as the loss is found. Linux halves the window during recovery, and at its
 *	  end sets it to B RTTmin in one step, up or down; for its recovery in proportion (RFC 6937) that is a detour;
 *	- the window never rises by a reduction: B RTTmin beyond W, as compressed ACKs can give it, counts as W.
 * And where this differs from Linux: time is in us, not in ticks of the clock (a 41 ms path is 44 ms at HZ = 250, and
 * its window 7 % too large; by the median of 20 and 100 ms ours is 0.86 of Linux's at 250 Hz, and the same at 1000); B
 * RTTmin is formed in 64 bits (Linux's wraps at 4.3 GB); what arrives is counted by TCP's own count of delivered
 * segments, SACKed ones included, where Linux adds up ACKs and takes each duplicate for a segment; a loss before the
 * first sample halves the window, where Linux falls to 2 segments.
 *
 * The filters need some 16 RTTs to follow. A loss at the end of slow start finds an estimate of the rate of several
 * doublings ago, and the window falls far below the path; so it does after the application has paused.
 *
 * Ranges. Windows: u32, tried to 34 million segments. Rate: 2^-24 segments per us, below 2^40 (34 million per s: 2^30);
 * RTTmin: up to 2^23 us, 8 s; their product below 2^63. Delivered segments: differences of a count that wraps at 2^32.
 *
 * Source: S. Mascolo, C. Casetti, M. Gerla, M. Y. Sanadidi, R. Wang, "TCP Westwood: bandwidth estimation for enhanced
 * transport over wireless links", MobiCom 2001; L. A. Grieco, S. Mascolo, "Performance evaluation and comparison of
 * Westwood+, New Reno, and Vegas TCP congestion control", CCR 34(2), 2004; Linux's tcp_westwood.
 * Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(gain, 125, 1, 1000, 1000, "1", "weight of a new sample in each of the two filters of the rate"),
	(min_interval, 50000, 1000, 1000000, 1, "us", "least length of a sample of the rate"));

/* One, as gain counts it. */
#define ONE 1000

/* Rate: 2^-24 segments per us, 0.06 segments per s. */
#define RATE_SHIFT 24
#define MAX_RATE (1ull << 40)
#define MAX_RTT_US (1u << 23)

/* No RTT yet. */
#define NO_RTT ~0u

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

struct westwood {
	u64 interval_start_us;
	u64 filtered;		/* A, 2^-24 segments per us */
	u64 rate;		/* B, likewise; 0 = no sample yet */
	u32 delivered;		/* segments delivered when the interval began */
	u32 rtt_us;		/* last RTT; 0 = none yet */
	u32 rtt_min_us;		/* least RTT since the start or the last time-out */
};

CC_STATE(struct westwood);

static void westwood_init(struct cc_sock *sk)
{
	struct westwood *ca = cc_state(sk);

	ca->interval_start_us = cc_now_us(sk);
	ca->delivered = cc_delivered(sk);
	ca->filtered = 0;
	ca->rate = 0;
	ca->rtt_us = 0;
	ca->rtt_min_us = NO_RTT;
}

/* (1 - gain) old + gain sample. */
static inline u64 filter(struct cc_sock *sk, u64 old, u64 sample)
{
	u64 gain = (u64)cc_param(sk, gain);

	return (old * (ONE - gain) + sample * gain) / ONE;
}

static void westwood_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	struct westwood *ca = cc_state(sk);
	s32 rtt = cc_sample_rtt_us(sample);
	u64 now = cc_now_us(sk);
	u64 length = now - ca->interval_start_us;
	u64 rate;

	if (rtt > 0) {
		ca->rtt_us = (u32)cc_min((u32)rtt, MAX_RTT_US);
		ca->rtt_min_us = (u32)cc_min(ca->rtt_min_us, ca->rtt_us);
	}
	if (!ca->rtt_us || length <= cc_max(ca->rtt_us, (u64)cc_param(sk, min_interval)))
		return;
	rate = cc_min(cc_div((u64)(cc_delivered(sk) - ca->delivered) << RATE_SHIFT, length), MAX_RATE);
	ca->filtered = ca->rate ? filter(sk, ca->filtered, rate) : rate;
	ca->rate = ca->rate ? filter(sk, ca->rate, ca->filtered) : rate;
	ca->interval_start_us = now;
	ca->delivered = cc_delivered(sk);
}

static u32 westwood_ssthresh(struct cc_sock *sk)
{
	struct westwood *ca = cc_state(sk);
	u64 cwnd = cc_snd_cwnd(sk);
	u64 carried = cwnd / 2;

	if (ca->rate && ca->rtt_min_us != NO_RTT)
		carried = cc_min((ca->rate * ca->rtt_min_us) >> RATE_SHIFT, cwnd);
	return (u32)cc_max(carried, MIN_SSTHRESH);
}

static void westwood_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	cc_reno_cong_avoid(sk, acked);
}

/* The path may have become longer: that is one reason for a time-out. */
static void westwood_cwnd_event(struct cc_sock *sk, u32 event)
{
	if (event == CC_EVENT_LOSS)
		cc_state(sk)->rtt_min_us = NO_RTT;
}

CC_ALGORITHM(westwood, "Reno that after a loss keeps the window that the path has been carrying",
	"Westwood+: Mascolo et al. 2001, Grieco and Mascolo 2004",
	(init, westwood_init),
	(ssthresh, westwood_ssthresh),
	(cong_avoid, westwood_cong_avoid),
	(cwnd_event, westwood_cwnd_event),
	(pkts_acked, westwood_pkts_acked),
	(undo_cwnd, cc_undo_cwnd));
