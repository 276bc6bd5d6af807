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
 *	loss:		ssthresh = W / 2 as in Reno, while the loss is repaired; then W = ssthresh = B RTTmin, at least 2
 *	time-out:	ssthresh = B RTTmin, at least 2
 *	while there is no sample, W / 2 stays
 * With queueing delay q a loss gives up the share r = q / (RTTmin + q) of W instead of a half: next to nothing on a
 * path with room. Under random loss p then W = sqrt((2 - r) / (2 r p)), as far as the filters keep up.
 *
 * Parameters
 *	gain		weight of a new sample in each of the two filters
 *	min_interval	least length of a sample; us
 *	tick		unit in which RTTs (rounded up) and intervals are counted; us: Linux's 1 / HZ, 4000 at HZ = 250
 *
 * If the papers and Linux differ, this is Linux:
 *	- two filters in a row with weight 1/8 (the paper: one with 1/10), no sample shorter than 50 ms, RTTmin forgotten
 *	  at a time-out;
 *	- the window is B RTTmin when the repair ends, not when the loss is found, and rises where B RTTmin is above W: a
 *	  loss soon after another finds a window below what the path carried, and each such loss would take more of it.
 *	  The papers leave W where it is then, and let slow start lift it to ssthresh = B RTTmin.
 *	- time is counted in ticks of the clock, RTTs rounded up: a 20.3 ms path is 24 ms at HZ = 250, and each loss makes
 *	  its window 18 % larger.
 * And where this differs from Linux: the tick is 1 ms, whatever the kernel's HZ, unless it is set; B RTTmin is formed
 * in 64 bits (Linux's wraps at 4.3 GB); what arrives is counted by TCP's own count of delivered segments, SACKed ones
 * included, where Linux adds up ACKs and takes each duplicate for a segment; a loss before the first sample halves the
 * window, where Linux falls to 2 segments.
 * Linux 2.6, and ns-2 with it, set the window to B RTTmin when the loss is found; and their recovery went on at the old
 * rate meanwhile, so that the samples of B saw no loss.
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
	(min_interval, 50000, 1000, 1000000, 1, "us", "least length of a sample of the rate"),
	(tick, 1000, 1, 100000, 1, "us", "unit of RTTs, rounded up, and of intervals: Linux's 1 / HZ"));

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

/* A time as Linux has it, the ticks that have passed, in us. */
static inline u64 ticks(struct cc_sock *sk, u64 us)
{
	u64 tick = (u64)cc_param(sk, tick);

	return cc_div(us, tick) * tick;
}

static void westwood_init(struct cc_sock *sk)
{
	struct westwood *ca = cc_state(sk);

	ca->interval_start_us = ticks(sk, cc_now_us(sk));
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
	u64 now = ticks(sk, cc_now_us(sk));
	u64 length = now - ca->interval_start_us;
	u64 rate;

	if (rtt > 0) {
		ca->rtt_us = (u32)cc_min(ticks(sk, (u64)rtt + (u64)cc_param(sk, tick) - 1), MAX_RTT_US);
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

/* B RTTmin: what the path has been carrying; 0 without a sample. */
static inline u32 carried(const struct westwood *ca)
{
	if (!ca->rate || ca->rtt_min_us == NO_RTT)
		return 0;
	return (u32)cc_min(cc_max((ca->rate * ca->rtt_min_us) >> RATE_SHIFT, MIN_SSTHRESH), CC_INFINITE_SSTHRESH);
}

static u32 westwood_ssthresh(struct cc_sock *sk)
{
	return (u32)cc_max(cc_snd_cwnd(sk) / 2, MIN_SSTHRESH);
}

static void westwood_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	cc_reno_cong_avoid(sk, acked);
}

static void westwood_cwnd_event(struct cc_sock *sk, u32 event)
{
	struct westwood *ca = cc_state(sk);
	u32 window;

	if (event != CC_EVENT_COMPLETE_CWR && event != CC_EVENT_LOSS)
		return;
	window = carried(ca);
	if (window)
		cc_set_snd_ssthresh(sk, window);
	if (window && event == CC_EVENT_COMPLETE_CWR)
		cc_set_snd_cwnd(sk, (u32)cc_min(window, cc_snd_cwnd_clamp(sk)));
	/* The path may have become longer: that is one reason for a time-out. */
	if (event == CC_EVENT_LOSS)
		ca->rtt_min_us = NO_RTT;
}

CC_ALGORITHM(westwood, "Reno that after a loss keeps the window that the path has been carrying",
	"Westwood+: Mascolo et al. 2001, Grieco and Mascolo 2004",
	(init, westwood_init),
	(ssthresh, westwood_ssthresh),
	(cong_avoid, westwood_cong_avoid),
	(cwnd_event, westwood_cwnd_event),
	(pkts_acked, westwood_pkts_acked),
	(undo_cwnd, cc_undo_cwnd));
