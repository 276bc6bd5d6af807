/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * BBR, version 1: sends at the rate that the path delivers, as Linux's `bbr` does.
 *
 * Idea. Loss is a poor sign of congestion: it comes late where queues are long, and from the line where they are short.
 * So measure the path itself: its bottleneck's rate, the most that was lately delivered per time, and its RTT without
 * queue, the least that was lately seen. Send at that rate, paced, with about two products of both in flight at most,
 * whatever is lost. The rate can be seen only by sending more than it, the RTT only with less in flight than the
 * product: so do one after the other, briefly.
 *
 * Equations (bw: greatest delivery rate of bw_window round trips; rtt: least RTT of min_rtt_window; bdp = bw rtt):
 *	pacing rate = g bw (1 - pacing_margin)		W grows by what is delivered up to  h bdp + aggregate + 3 bursts
 *	startup		g = h = 2/ln 2, until bw has not grown by 1/4 in 3 round trips; rate and W only rise
 *	drain		g = ln 2 / 2, until no more than bdp is in flight
 *	probe_bw	h = 2; g = 5/4, 3/4 and six times 1, an rtt each: 5/4 until as much is in flight, or a loss; 3/4
 *			at most until bdp is in flight; begins anywhere but at 3/4
 *	probe_rtt	when rtt is min_rtt_window old: W = 4 for probe_rtt_time and a round trip
 *	aggregate	most that was acknowledged beyond bw x time within 5 to 10 round trips, at most 100 ms of bw
 *	policer		two intervals of 4 to 16 round trips, each ended by a loss, with a fifth lost and equal rates within
 *			1/8 or 4 kbit/s: their mean is the rate for 48 round trips, without probing
 *	loss		in recovery's first round trip as much is sent as is acknowledged; then W is what it was before
 *
 * Parameters. startup_gain and cwnd_gain in 1/256: 739 is Linux's 2/ln 2. 0: no probe_rtt_time, aggregation, policer.
 *
 * Differences from Linux:
 *	- Linux draws the phase at which probe_bw begins; here it is a hash of the clock, the next byte's number and the
 *	  segments delivered, so that a run repeats: flows on one line still differ in all three;
 *	- `aggregate` has 32 bits, Linux's 16: it wraps beyond 65,535 segments there;
 *	- min_rtt_window and probe_rtt_time are counted in ms, Linux's in ticks;
 *	- products that overflow 64 bits there stop at 268 million segments x gain and 4 Tbit/s here;
 *	- Linux's `bbr` also makes the send buffer 3 windows long (2 for other algorithms) and keeps to
 *	  SO_MAX_PACING_RATE: an algorithm behind cc.h can do neither;
 *	- in the simulator a burst is one segment: nothing is offloaded.
 * And from the draft: the margin, `aggregate` and the policer are Linux's, not draft-00's.
 *
 * Ranges. bw: 2^-24 segments/us in u32: up to 256 per us, 3 Tbit/s at 1500 bytes. bw x rtt: below 2^52 for 400 Gbit/s x
 * 1 s (2^49.0); times gain (2^11) fits. Counters of segments and ms: u32, wrap, compared by difference. State: 104 B.
 *
 * BBRv3 (draft-ietf-ccwg-bbr) is not here: it needs for each packet what was in flight and lost when it was sent, which
 * the kernel's rate samples do not hold, and more state than 104 bytes: the authors' own patch enlarges both.
 *
 * Source: Cardwell, Cheng, Gunn, Hassas Yeganeh, Jacobson, "BBR: congestion-based congestion control", ACM Queue 14(5),
 * 2016; draft-cardwell-iccrg-bbr-congestion-control-00; constants of Linux 6.18.
 *
 * Kernel: as BPF struct_ops, Linux 6.10 and later (cong_control), beside the kernel's own `bbr`. With
 * -DCC_BEFORE_LINUX_6_4 on 6.1 too, but for `app_limited` in PROBE_RTT, which cannot be written there.
 */
#include "cc.h"

CC_PARAMS(
	(startup_gain, 739, 257, 2047, 256, "1", "pacing and window gain of startup; drain paces by its inverse"),
	(cwnd_gain, 512, 256, 2047, 256, "1", "window, in products of bandwidth and RTT"),
	(bw_window, 10, 2, 100, 1, "1", "round trips for which a delivery rate is remembered"),
	(min_rtt_window, 10000, 100, 600000, 1, "ms", "how long the least RTT holds"),
	(probe_rtt_time, 200, 0, 10000, 1, "ms", "how long the window is 4 to see the RTT without queue; 0: never"),
	(pacing_margin, 1, 0, 50, 100, "1", "share of the rate that pacing leaves unused, so that queues drain"),
	(aggregation, 1, 0, 1, 1, "bool", "room in the window for ACKs that come in bursts"),
	(policer, 1, 0, 1, 1, "bool", "look for a policer, and keep to its rate"));

/* bw: 2^-24 segments per us. Gains: 1/256. */
#define BW_SHIFT 24
#define BW_UNIT (1u << BW_SHIFT)
#define GAIN_SHIFT 8
#define ONE (1u << GAIN_SHIFT)

/* Ends of bw x rtt and of bytes per us, so that the next product fits in 64 bits: 2^52 x 2^11, 2^43 x 10^6. */
#define MAX_PRODUCT (1ull << 52)
#define MAX_RATE_PRODUCT (1ull << 43)

#define MIN_WINDOW 4
#define INITIAL_WINDOW 10
#define PHASES 8
/* The pipe is full when bw has not grown by a quarter in 3 round trips. */
#define FULL_GROWTH 320
#define FULL_ROUNDS 3

/* Policer: shares in 1/256. */
#define POLICER_MIN_ROUNDS 4
#define POLICER_MAX_ROUNDS 16
#define POLICER_LOSS 50
#define POLICER_DIFFERENCE 32
#define POLICER_DIFFERENCE_BYTES 500
#define POLICER_HOLDS_ROUNDS 48

/* Aggregation: rounds of each half of its window; an epoch's end; bound on what it adds. */
#define AGGREGATION_ROUNDS 5
#define AGGREGATION_MAX_SEGMENTS (1u << 20)
#define AGGREGATION_MAX_US 100000

/* A burst: 1 ms at the present rate (2^-10 s); below 1.2 Mbit/s one segment suffices; 64 KiB less headers; 7 bits. */
#define BURST_SHIFT 10
#define SLOW_RATE 150000
#define MAX_BURST_BYTES 65215
#define MAX_BURST_SEGMENTS 127

#define NOMINAL_RTT_US 1000 /* before the first sample */
#define UNKNOWN (~0u)

enum { STARTUP = 0, DRAIN = 1, PROBE_BW = 2, PROBE_RTT = 3 };

/* Bits of `is`. */
#define CONSERVING 0x01u	/* first round trip of recovery */
#define ROUND_START 0x02u	/* this ACK begins a round trip */
#define RESTARTED 0x04u		/* sending began anew after idleness */
#define PROBED_ROUND 0x08u	/* probe_rtt: a round trip has passed */
#define SAMPLING 0x10u		/* policer: an interval is open */
#define POLICED 0x20u		/* policer: found */
#define FULL 0x40u		/* the pipe has been filled */
#define SEEN_RTT 0x80u		/* the pacing rate comes from an RTT */

/* A delivery rate and the round trip it is from. */
struct peak {
	u32 round;
	u32 bw;
};

struct bbr {
	u64 phase_us;		/* probe_bw: when the phase began */
	u64 epoch_us;		/* aggregation: when the epoch began */
	struct peak peaks[3];	/* the greatest, and the greatest after each */
	u32 min_rtt_us;		/* UNKNOWN before the first */
	u32 min_rtt_ms;		/* when it was seen */
	u32 probe_end_ms;	/* probe_rtt: when it may end; 0 = the window is not yet reached */
	u32 rounds;		/* round trips */
	u32 round_end;		/* `delivered` at which the next begins */
	u32 saved_cwnd;		/* before recovery or probe_rtt */
	u32 full_bw;		/* bw when it last grew by a quarter */
	u32 policed_bw;		/* policer: rate of the last interval, or of the policer; 0 = none */
	u32 policed_delivered;	/* policer: counters and time at the start of the interval */
	u32 policed_lost;
	u32 policed_ms;
	u32 epoch_acked;	/* aggregation: segments since the epoch began */
	u32 excess[2];		/* aggregation: most of the present and of the other half of the window */
	u8 mode;
	u8 phase;		/* probe_bw: 0 faster, 1 slower, 2 to 7 as fast as bw */
	u8 last_ca_state;
	u8 is;
	u8 full_rounds;		/* round trips without growth */
	u8 policed_rounds;
	u8 excess_rounds;
	u8 excess_half;
};

CC_STATE(struct bbr);
_Static_assert(sizeof(struct bbr) == CC_PRIVATE_BYTES, "as the header says");

static inline u32 now_ms(const struct cc_sock *sk)
{
	return (u32)(cc_now_us(sk) / 1000);
}

static inline void put(struct bbr *ca, u8 bit, int on)
{
	ca->is = (u8)(on ? ca->is | bit : ca->is & ~bit);
}

/* Rate of the path, by the policer if there is one. */
static inline u32 bandwidth(const struct bbr *ca)
{
	return ca->is & POLICED ? ca->policed_bw : ca->peaks[0].bw;
}

static inline u32 pacing_gain(struct cc_sock *sk, const struct bbr *ca)
{
	u32 startup = (u32)cc_param(sk, startup_gain);

	if (ca->mode == STARTUP)
		return startup;
	if (ca->mode == DRAIN)
		return (u32)cc_div(ONE * ONE, startup);
	if (ca->mode == PROBE_RTT || ca->is & POLICED)
		return ONE;
	return ca->phase == 0 ? ONE * 5 / 4 : ca->phase == 1 ? ONE * 3 / 4 : ONE;
}

static inline u32 window_gain(struct cc_sock *sk, const struct bbr *ca)
{
	if (ca->mode == PROBE_BW)
		return (u32)cc_param(sk, cwnd_gain);
	return ca->mode == PROBE_RTT ? ONE : (u32)cc_param(sk, startup_gain);
}

/* Bytes per second. */
static inline u64 bytes_per_second(struct cc_sock *sk, u64 bw, u32 gain, u64 percent)
{
	u64 rate = (bw * cc_mss_cache(sk) * gain) >> GAIN_SHIFT;

	return (cc_min(rate, MAX_RATE_PRODUCT) * (10000 * percent)) >> BW_SHIFT;
}

static inline u64 pacing_rate_of(struct cc_sock *sk, u64 bw, u32 gain)
{
	return cc_max(bytes_per_second(sk, bw, gain, 100 - (u64)cc_param(sk, pacing_margin)), 1);
}

/* No rate is known: a window per RTT, and the window will grow by the startup gain. */
static inline void pace_by_window(struct cc_sock *sk, struct bbr *ca)
{
	u64 rtt_us = NOMINAL_RTT_US;
	u64 bw;

	if (cc_srtt_us(sk)) {
		rtt_us = cc_max(cc_srtt_us(sk) >> 3, 1);
		put(ca, SEEN_RTT, 1);
	}
	bw = cc_min(cc_div((u64)cc_snd_cwnd(sk) << BW_SHIFT, rtt_us), UNKNOWN);
	cc_set_pacing_rate(sk, pacing_rate_of(sk, bw, (u32)cc_param(sk, startup_gain)));
}

/* In startup a low sample, of an application that paused, must not slow it down. */
static inline void pace(struct cc_sock *sk, struct bbr *ca, u32 gain)
{
	u64 rate = pacing_rate_of(sk, bandwidth(ca), gain);

	if (!(ca->is & SEEN_RTT) && cc_srtt_us(sk))
		pace_by_window(sk, ca);
	if (ca->is & FULL || rate > cc_pacing_rate(sk))
		cc_set_pacing_rate(sk, rate);
}

static u32 bbr_min_tso_segs(struct cc_sock *sk)
{
	return cc_pacing_rate(sk) < SLOW_RATE ? 1 : 2;
}

/* Segments that leave at once. */
static inline u32 burst(struct cc_sock *sk)
{
	u64 bytes = cc_min(cc_pacing_rate(sk) >> BURST_SHIFT, cc_min(cc_gso_max_bytes(sk), MAX_BURST_BYTES));
	u64 segments = cc_max(cc_div(bytes, cc_mss_cache(sk)), bbr_min_tso_segs(sk));

	return (u32)cc_min(segments, MAX_BURST_SEGMENTS);
}

/* gain x bw x rtt, segments, rounded up. */
static inline u64 product(const struct bbr *ca, u32 bw, u32 gain)
{
	u64 bdp = cc_min((u64)bw * ca->min_rtt_us, MAX_PRODUCT);

	if (ca->min_rtt_us == UNKNOWN)
		return INITIAL_WINDOW;
	return (((bdp * gain) >> GAIN_SHIFT) + BW_UNIT - 1) >> BW_SHIFT;
}

/*
 * With room for a burst in each of sender's queue, sender's segmentation and receiver's reassembly; even, for delayed
 * ACKs; and 2 more while probing for rate, so that a small product, rounded, still grows.
 */
static inline u64 with_bursts(struct cc_sock *sk, const struct bbr *ca, u64 window)
{
	window = (window + 3 * burst(sk) + 1) & ~1ull;
	return ca->mode == PROBE_BW && ca->phase == 0 ? window + 2 : window;
}

static inline u64 wanted_in_flight(struct cc_sock *sk, const struct bbr *ca, u32 gain)
{
	return with_bursts(sk, ca, product(ca, ca->peaks[0].bw, gain));
}

/* Segments in flight when the next packet leaves, which pacing may have put off. */
static inline u64 in_flight_at_departure(struct cc_sock *sk, const struct bbr *ca, u64 in_flight)
{
	u64 now = cc_now_us(sk);
	u64 wait_us = cc_max(cc_next_send_us(sk), now) - now;
	u64 delivered = (bandwidth(ca) * cc_min(wait_us, UNKNOWN)) >> BW_SHIFT;

	if (pacing_gain(sk, ca) > ONE)
		in_flight += burst(sk);
	return in_flight > delivered ? in_flight - delivered : 0;
}

/*
 * The greatest of the last `window` round trips, in constant space: keep three, each the greatest of those after the
 * one before it. When the first is too old the next takes its place; a quarter of the window without a second, or half
 * of it without a third, is filled with what is there.
 */
static inline void remember(struct bbr *ca, u32 bw, u32 window)
{
	struct peak fresh = { .round = ca->rounds, .bw = bw };
	struct peak *p = ca->peaks;
	u32 age = fresh.round - p[0].round;

	if (bw >= p[0].bw || fresh.round - p[2].round > window) {
		p[0] = p[1] = p[2] = fresh;
		return;
	}
	if (bw >= p[1].bw)
		p[1] = p[2] = fresh;
	else if (bw >= p[2].bw)
		p[2] = fresh;
	if (age > window) {
		p[0] = p[1];
		p[1] = p[2];
		p[2] = fresh;
		if (fresh.round - p[0].round > window) {
			p[0] = p[1];
			p[1] = p[2];
		}
	} else if (p[1].round == p[0].round && age > window / 4) {
		p[1] = p[2] = fresh;
	} else if (p[2].round == p[1].round && age > window / 2) {
		p[2] = fresh;
	}
}

static inline void begin_interval(struct cc_sock *sk, struct bbr *ca)
{
	ca->policed_ms = (u32)(cc_delivered_mstamp_us(sk) / 1000);
	ca->policed_delivered = cc_delivered(sk);
	ca->policed_lost = cc_lost(sk);
	ca->policed_rounds = 0;
}

static inline void forget_policer(struct cc_sock *sk, struct bbr *ca)
{
	ca->policed_bw = 0;
	put(ca, POLICED | SAMPLING, 0);
	begin_interval(sk, ca);
}

static inline void next_phase(struct cc_sock *sk, struct bbr *ca)
{
	ca->phase = (ca->phase + 1) % PHASES;
	ca->phase_us = cc_delivered_mstamp_us(sk);
}

/* Anywhere but at the slow phase, so that flows do not probe in step; see the header for the "random" number. */
static inline void enter_probe_bw(struct cc_sock *sk, struct bbr *ca)
{
	u64 mix = (cc_now_us(sk) << 32 | cc_snd_nxt(sk)) + cc_delivered(sk);

	mix *= 0x9e3779b97f4a7c15; /* 2^64 over the golden ratio: its product's upper half is spread evenly */
	ca->mode = PROBE_BW;
	ca->phase = (u8)(PHASES - 1 - (((mix >> 32) * (PHASES - 1)) >> 32));
	next_phase(sk, ca);
}

/* An interval is over. Two of one rate are a policer's. */
static inline void judge_interval(struct cc_sock *sk, struct bbr *ca, u32 bw)
{
	u32 last = ca->policed_bw;
	u64 apart = bw > last ? bw - last : last - bw;

	if (last && (apart * ONE <= (u64)POLICER_DIFFERENCE * last ||
		     bytes_per_second(sk, apart, ONE, 100 - (u64)cc_param(sk, pacing_margin)) <= POLICER_DIFFERENCE_BYTES)) {
		ca->policed_bw = (u32)(((u64)bw + last) / 2);
		put(ca, POLICED, 1);
		ca->policed_rounds = 0;
		return;
	}
	ca->policed_bw = bw;
	begin_interval(sk, ca);
}

static inline void watch_policer(struct cc_sock *sk, struct bbr *ca, int losses, int app_limited)
{
	u64 delivered, lost;
	u32 ms;

	if (ca->is & POLICED) {
		/* Now and then see whether the path has changed. */
		if (ca->mode == PROBE_BW && ca->is & ROUND_START && ++ca->policed_rounds >= POLICER_HOLDS_ROUNDS) {
			forget_policer(sk, ca);
			enter_probe_bw(sk, ca);
		}
		return;
	}
	if (!cc_param(sk, policer))
		return;
	/* An interval begins with a loss: the policer's bucket is empty. */
	if (!(ca->is & SAMPLING)) {
		if (!losses)
			return;
		begin_interval(sk, ca);
		put(ca, SAMPLING, 1);
	}
	if (app_limited) {
		forget_policer(sk, ca);
		return;
	}
	if (ca->is & ROUND_START)
		ca->policed_rounds++;
	if (ca->policed_rounds < POLICER_MIN_ROUNDS)
		return;
	if (ca->policed_rounds > POLICER_MAX_ROUNDS) {
		forget_policer(sk, ca);
		return;
	}
	/* And ends with one. */
	if (!losses)
		return;
	lost = cc_lost(sk) - ca->policed_lost;
	delivered = cc_delivered(sk) - ca->policed_delivered;
	if (!delivered || lost << GAIN_SHIFT < POLICER_LOSS * delivered)
		return;
	ms = (u32)(cc_delivered_mstamp_us(sk) / 1000) - ca->policed_ms;
	if ((s32)ms < 1)
		return;
	if (ms >= UNKNOWN / 1000) {
		forget_policer(sk, ca);
		return;
	}
	judge_interval(sk, ca, (u32)cc_min(cc_div(delivered << BW_SHIFT, (u64)ms * 1000), UNKNOWN));
}

/* Round trips and delivery rate. */
static inline void update_bandwidth(struct cc_sock *sk, struct bbr *ca, const struct cc_rate_sample *rs)
{
	s32 delivered = cc_rs_delivered(rs);
	s64 interval_us = cc_rs_interval_us(rs);
	u64 bw;

	put(ca, ROUND_START, 0);
	if (delivered < 0 || interval_us <= 0)
		return;
	if (!cc_before(cc_rs_prior_delivered(rs), ca->round_end)) {
		ca->round_end = cc_delivered(sk);
		ca->rounds++;
		put(ca, ROUND_START, 1);
		put(ca, CONSERVING, 0);
	}
	watch_policer(sk, ca, cc_rs_losses(rs) != 0, cc_rs_is_app_limited(rs));
	bw = cc_min(cc_div((u64)(u32)delivered << BW_SHIFT, (u64)interval_us), UNKNOWN);
	/* An application's pause lowers the rate, but never raises it. */
	if (!cc_rs_is_app_limited(rs) || bw >= ca->peaks[0].bw)
		remember(ca, (u32)bw, (u32)cc_param(sk, bw_window));
}

/* Lead of the ACKs over the rate: the line, or the receiver, holds some back and sends them at once. */
static inline void update_aggregation(struct cc_sock *sk, struct bbr *ca, const struct cc_rate_sample *rs)
{
	u32 acked = cc_rs_acked_sacked(rs);
	u64 now = cc_delivered_mstamp_us(sk);
	u64 expected;
	u32 excess;

	if (!cc_param(sk, aggregation) || !acked || cc_rs_delivered(rs) < 0 || cc_rs_interval_us(rs) <= 0)
		return;
	if (ca->is & ROUND_START && ++ca->excess_rounds >= AGGREGATION_ROUNDS) {
		/* [0] is the present half. */
		ca->excess_rounds = 0;
		ca->excess[1] = ca->excess[0];
		ca->excess[0] = 0;
	}
	expected = (bandwidth(ca) * cc_min(now - ca->epoch_us, UNKNOWN)) >> BW_SHIFT;
	if (ca->epoch_acked <= expected || (u64)ca->epoch_acked + acked >= AGGREGATION_MAX_SEGMENTS) {
		ca->epoch_acked = 0;
		ca->epoch_us = now;
		expected = 0;
	}
	ca->epoch_acked = (u32)cc_min((u64)ca->epoch_acked + acked, AGGREGATION_MAX_SEGMENTS - 1);
	excess = (u32)cc_min(ca->epoch_acked > expected ? ca->epoch_acked - expected : 0, cc_snd_cwnd(sk));
	ca->excess[0] = (u32)cc_max(ca->excess[0], excess);
}

static inline void update_phase(struct cc_sock *sk, struct bbr *ca, const struct cc_rate_sample *rs)
{
	int over = cc_delivered_mstamp_us(sk) - ca->phase_us > ca->min_rtt_us;
	u32 gain = pacing_gain(sk, ca);

	if (ca->mode != PROBE_BW)
		return;
	if (gain != ONE) {
		u64 in_flight = in_flight_at_departure(sk, ca, cc_rs_prior_in_flight(rs));

		if (gain > ONE)
			over = over && (cc_rs_losses(rs) || in_flight >= wanted_in_flight(sk, ca, gain));
		else
			over = over || in_flight <= wanted_in_flight(sk, ca, ONE);
	}
	if (over)
		next_phase(sk, ca);
}

/* More than a quarter faster each round trip, or the pipe is full. */
static inline void update_full(struct bbr *ca, const struct cc_rate_sample *rs)
{
	if (ca->is & FULL || !(ca->is & ROUND_START) || cc_rs_is_app_limited(rs))
		return;
	if (ca->peaks[0].bw >= ((u64)ca->full_bw * FULL_GROWTH) >> GAIN_SHIFT) {
		ca->full_bw = ca->peaks[0].bw;
		ca->full_rounds = 0;
		return;
	}
	if (++ca->full_rounds >= FULL_ROUNDS)
		put(ca, FULL, 1);
}

static inline void update_drain(struct cc_sock *sk, struct bbr *ca)
{
	if (ca->mode == STARTUP && ca->is & FULL) {
		ca->mode = DRAIN;
		cc_set_snd_ssthresh(sk, (u32)cc_min(wanted_in_flight(sk, ca, ONE), CC_INFINITE_SSTHRESH));
	}
	if (ca->mode == DRAIN &&
	    in_flight_at_departure(sk, ca, cc_in_flight(sk)) <= wanted_in_flight(sk, ca, ONE))
		enter_probe_bw(sk, ca);
}

/* The window to come back to. */
static inline void save_window(struct cc_sock *sk, struct bbr *ca)
{
	u32 cwnd = cc_snd_cwnd(sk);

	if (ca->last_ca_state < CC_RECOVERY && ca->mode != PROBE_RTT)
		ca->saved_cwnd = cwnd;
	else
		ca->saved_cwnd = (u32)cc_max(ca->saved_cwnd, cwnd);
}

static inline void end_probe_rtt(struct cc_sock *sk, struct bbr *ca)
{
	u32 now = now_ms(sk);

	if (!ca->probe_end_ms || !cc_after(now, ca->probe_end_ms))
		return;
	ca->min_rtt_ms = now;
	cc_set_snd_cwnd(sk, (u32)cc_min(cc_max(cc_snd_cwnd(sk), ca->saved_cwnd), cc_snd_cwnd_clamp(sk)));
	if (ca->is & FULL)
		enter_probe_bw(sk, ca);
	else
		ca->mode = STARTUP;
}

static inline void update_min_rtt(struct cc_sock *sk, struct bbr *ca, const struct cc_rate_sample *rs)
{
	u32 now = now_ms(sk);
	u32 probe_ms = (u32)cc_param(sk, probe_rtt_time);
	int expired = cc_after(now, ca->min_rtt_ms + (u32)cc_param(sk, min_rtt_window));
	s64 rtt_us = cc_rs_rtt_us(rs);

	if (rtt_us >= 0 && (rtt_us < (s64)ca->min_rtt_us || (expired && !cc_rs_is_ack_delayed(rs)))) {
		ca->min_rtt_us = (u32)cc_min((u64)rtt_us, UNKNOWN - 1);
		ca->min_rtt_ms = now;
	}
	if (probe_ms && expired && !(ca->is & RESTARTED) && ca->mode != PROBE_RTT) {
		save_window(sk, ca);
		ca->mode = PROBE_RTT;
		ca->probe_end_ms = 0;
	}
	if (ca->mode == PROBE_RTT) {
		u32 in_flight = cc_in_flight(sk);

		/* So small a window says nothing of the rate. */
		cc_set_app_limited(sk, (u32)cc_max(cc_delivered(sk) + in_flight, 1));
		if (!ca->probe_end_ms && in_flight <= MIN_WINDOW) {
			ca->probe_end_ms = (u32)cc_max(now + probe_ms, 1);
			put(ca, PROBED_ROUND, 0);
			ca->round_end = cc_delivered(sk);
		} else if (ca->probe_end_ms) {
			if (ca->is & ROUND_START)
				put(ca, PROBED_ROUND, 1);
			if (ca->is & PROBED_ROUND)
				end_probe_rtt(sk, ca);
		}
	}
	if (cc_rs_delivered(rs) > 0)
		put(ca, RESTARTED, 0);
}

/* Recovery begins, goes on or ends. Returns whether the window is settled by it. */
static inline int follow_recovery(struct cc_sock *sk, struct bbr *ca, const struct cc_rate_sample *rs, u64 *window)
{
	u64 in_flight = cc_in_flight(sk);
	u32 acked = cc_rs_acked_sacked(rs), losses = cc_rs_losses(rs) > 0 ? (u32)cc_rs_losses(rs) : 0;
	u64 cwnd = cc_snd_cwnd(sk);
	u8 last = ca->last_ca_state, state = cc_ca_state(sk);

	if (losses)
		cwnd = cwnd > losses ? cwnd - losses : 1;
	if (state == CC_RECOVERY && last != CC_RECOVERY) {
		/* From here on one segment for each that arrives, for a round trip. */
		put(ca, CONSERVING, 1);
		ca->round_end = cc_delivered(sk);
		cwnd = in_flight + acked;
	} else if (last >= CC_RECOVERY && state < CC_RECOVERY) {
		cwnd = cc_max(cwnd, ca->saved_cwnd);
		put(ca, CONSERVING, 0);
	}
	ca->last_ca_state = state;
	*window = ca->is & CONSERVING ? cc_max(cwnd, in_flight + acked) : cwnd;
	return (ca->is & CONSERVING) != 0;
}

static inline u64 aggregate(struct cc_sock *sk, const struct bbr *ca)
{
	u64 most = ((u64)bandwidth(ca) * AGGREGATION_MAX_US) >> BW_SHIFT;

	if (!cc_param(sk, aggregation) || !(ca->is & FULL))
		return 0;
	return cc_min(cc_max(ca->excess[0], ca->excess[1]), most);
}

static inline void set_window(struct cc_sock *sk, struct bbr *ca, const struct cc_rate_sample *rs)
{
	u32 acked = cc_rs_acked_sacked(rs);
	u64 cwnd = cc_snd_cwnd(sk);

	if (acked && !follow_recovery(sk, ca, rs, &cwnd)) {
		u64 target = product(ca, bandwidth(ca), window_gain(sk, ca)) + aggregate(sk, ca);

		target = with_bursts(sk, ca, target);
		if (ca->is & FULL)
			cwnd = cc_min(cwnd + acked, target);
		else if (cwnd < target || cc_delivered(sk) < INITIAL_WINDOW)
			cwnd += acked;
		cwnd = cc_max(cwnd, MIN_WINDOW);
	}
	cwnd = cc_min(cwnd, cc_snd_cwnd_clamp(sk));
	if (ca->mode == PROBE_RTT)
		cwnd = cc_min(cwnd, MIN_WINDOW);
	cc_set_snd_cwnd(sk, (u32)cwnd);
}

static void bbr_cong_control(struct cc_sock *sk, u32 ack, int flag, const struct cc_rate_sample *rs)
{
	struct bbr *ca = cc_state(sk);

	(void)ack, (void)flag;
	update_bandwidth(sk, ca, rs);
	update_aggregation(sk, ca, rs);
	update_phase(sk, ca, rs);
	update_full(ca, rs);
	update_drain(sk, ca);
	update_min_rtt(sk, ca, rs);
	pace(sk, ca, pacing_gain(sk, ca));
	set_window(sk, ca, rs);
}

static void bbr_init(struct cc_sock *sk)
{
	struct bbr *ca = cc_state(sk);

	/* All else is zero: startup, nothing known. */
	ca->min_rtt_us = cc_min_rtt_us(sk);
	ca->min_rtt_ms = now_ms(sk);
	ca->round_end = cc_delivered(sk);
	ca->epoch_us = cc_now_us(sk);
	begin_interval(sk, ca);
	cc_set_snd_ssthresh(sk, CC_INFINITE_SSTHRESH);
	pace_by_window(sk, ca);
	if (!cc_pacing_status(sk))
		cc_set_pacing_status(sk, 1);
}

/* Nothing is reduced: the window is remembered, for the end of recovery. */
static u32 bbr_ssthresh(struct cc_sock *sk)
{
	save_window(sk, cc_state(sk));
	return cc_snd_ssthresh(sk);
}

/* The loss was reordering: conclusions from it on a full pipe or a policer were wrong too. */
static u32 bbr_undo_cwnd(struct cc_sock *sk)
{
	struct bbr *ca = cc_state(sk);

	ca->full_bw = 0;
	ca->full_rounds = 0;
	forget_policer(sk, ca);
	return cc_snd_cwnd(sk);
}

static void bbr_set_state(struct cc_sock *sk, u8 state)
{
	struct bbr *ca = cc_state(sk);

	if (state != CC_LOSS)
		return;
	ca->last_ca_state = CC_LOSS;
	ca->full_bw = 0;
	put(ca, ROUND_START, 1); /* a time-out is the end of a round trip */
	watch_policer(sk, ca, 1, 0);
}

/* After idleness: no burst into a path that may have filled; at the rate, no faster. */
static void bbr_cwnd_event(struct cc_sock *sk, u32 event)
{
	struct bbr *ca = cc_state(sk);

	if (event != CC_EVENT_TX_START || !cc_app_limited(sk))
		return;
	put(ca, RESTARTED, 1);
	ca->epoch_us = cc_now_us(sk);
	ca->epoch_acked = 0;
	if (ca->mode == PROBE_BW)
		pace(sk, ca, ONE);
	else if (ca->mode == PROBE_RTT)
		end_probe_rtt(sk, ca);
}

CC_ALGORITHM(bbr, "sends at the rate that the path delivers, whatever is lost: version 1, as Linux's",
	"Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
	(init, bbr_init),
	(ssthresh, bbr_ssthresh),
	(cong_control, bbr_cong_control),
	(min_tso_segs, bbr_min_tso_segs),
	(set_state, bbr_set_state),
	(cwnd_event, bbr_cwnd_event),
	(undo_cwnd, bbr_undo_cwnd));
