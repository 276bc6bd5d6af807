/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * LEDBAT++: background traffic that gets out of the way.
 *
 * Idea. Take what others leave. A queue shows as delay above the least RTT; while that is below a target the window
 * grows, never faster than Reno's; above it the window shrinks in proportion to the excess, long before a queue
 * overflows. A flow that fills the queue by loss (Reno, CUBIC) therefore drives it out, and without such a flow it
 * takes the whole line at a bounded delay. Once in a while it all but stops for two round trips, so that every flow on
 * the line sees the path without queue: a latecomer would otherwise take the others' queue for the path.
 *
 * Equations (W = cwnd, segments; base = least RTT of the last minutes; delay = least of the last 4 RTTs - base):
 *	gain = 1 / min(gain_limit, ceil(2 target / base))			(4.2)
 *	slow start: W += acked gain						(4.1)
 *	the first slow start ends when delay > slow_start_exit target		(4.1)
 *	per RTT, delay <= target: W += gain					(4.3)
 *	per RTT, delay > target:  W += max(gain - decrease W (delay / target - 1), -W / 2), W at least 2	(4.3)
 *	slowdown: ssthresh = W, W = 2 for 2 RTTs, then slow start to ssthresh; the first one 2 RTTs after the first slow
 *	start, each later one slowdown_interval times as long after the last one's end as that took	(4.4)
 *	loss: ssthresh = W / 2, at least 2					(RFC 6817, 2.4.2)
 * With one slowdown in 1 + slowdown_interval such times, at most a tenth of the line is given up for them.
 *
 * Parameters. target: 60 ms (4.5; RFC 6817 has 100). gain_limit: 16 (4.2). decrease: 1 (4.3). slow_start_exit: 3/4
 * (4.1). slowdown_interval: 9 (4.4), 0 = no slowdowns. base_history: 10 minutes, a minimum for each (RFC 6817, 4.2).
 *
 * Readings of the draft, and differences from it:
 *	- delay is that of the round trip, as the draft has it (4.5): a queue on the way back counts too;
 *	- the changes per RTT are made ACK by ACK, each its share; the bound of W / 2 is on the decrease, before the gain,
 *	  which is at most one segment;
 *	- slow start after a slowdown has the gain too ("the slow start algorithm" of 4.4 is that of 4.1); it takes longer
 *	  then, and so does the time to the next: the share of the line is the same;
 *	- 2 RTTs are counted in flights: until all that was in flight is acknowledged, and once more;
 *	- a loss during a slowdown halves the window to which it returns;
 *	- the window is at most 2 before the first RTT of data (4.1), whatever the initial window;
 *	- a slowdown never begins within slow start after a time-out.
 *
 * Checked. gain, its limit, the change per RTT, target, slow_start_exit, slowdown_interval and the 2 RTTs against
 * implementations that quote the draft by section (Apple's, Freenet's). Not checked against the draft itself, which has
 * come to -06: found to its title only.
 *
 * Ranges. Windows: u32, tried to 34 million segments (400 Gbit/s x 1 s); W gain_limit bounded at 2^32. Delays: u32 us.
 * Decrease: acked (2^26) x share (2^9, in 2^-10) fits in 64 bits with room. Clock: u64 us. State: 88 bytes.
 *
 * Source: draft-irtf-iccrg-ledbat-plus-plus-01, whose sections are meant above; RFC 6817 for base delay and filter.
 *
 * Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(target, 60000, 1000, 1000000, 1, "us", "queueing delay at which growth ends"),
	(gain_limit, 16, 1, 64, 1, "1", "growth is never slower than Reno's divided by this"),
	(decrease, 1000, 1, 10000, 1000, "1", "share of the window given up per RTT and per target of excess delay"),
	(slow_start_exit, 750, 10, 10000, 1000, "1", "share of the target at which the first slow start ends"),
	(slowdown_interval, 9, 0, 1000, 1, "1", "time between slowdowns, in durations of the last one; 0: none"),
	(base_history, 10, 1, 10, 1, "min", "how long the least RTT is remembered"));

/* Draft, 4.4: W during a slowdown, and for how many RTTs; also the least window and the first (4.1). */
#define MIN_WINDOW 2
#define FROZEN_ROUNDS 2

/* Draft, 4.4: the first slowdown comes so many RTTs after the first slow start. */
#define FIRST_SLOWDOWN_RTTS 2

/* RFC 6817, 4.2: a minimum per minute; 2.4.2: delay is the least of so many samples. */
#define HISTORY 10
#define MINUTE_US 60000000
#define FILTER 4

/* Decrease: 2^-10 segments, at most half a segment per one acknowledged. */
#define SHARE_SHIFT 10
#define MAX_SHARE (1u << (SHARE_SHIFT - 1))

#define UNKNOWN (~0u)

enum {
	FIRST_START = 0,	/* slow start, not yet ended */
	NORMAL = 1,		/* increase and decrease */
	FROZEN = 2,		/* slowdown: the window is 2 */
	RAMP = 3,		/* slowdown: slow start back to where it was */
};

struct ledbat {
	u64 slowdown_us;	/* NORMAL: when the next slowdown is due; FROZEN, RAMP: when this one began */
	u64 minute_us;		/* start of the minute of base[0] */
	u32 base[HISTORY];	/* least RTT of each minute, the present one first, us */
	u32 recent[FILTER];	/* last RTTs, us */
	u32 round_end_seq;	/* FROZEN: the flight ends when this is acknowledged */
	u32 resume;		/* FROZEN: window to go back to */
	u32 debt;		/* decrease not yet taken off, 2^-10 segments; below 1 segment */
	u8 phase;
	u8 rounds;		/* FROZEN: flights since it began */
};

CC_STATE(struct ledbat);
_Static_assert(sizeof(struct ledbat) == 88, "as the header says");

static void ledbat_init(struct cc_sock *sk)
{
	struct ledbat *ca = cc_state(sk);

	for (int i = 0; i < HISTORY; i++)
		ca->base[i] = UNKNOWN;
	for (int i = 0; i < FILTER; i++)
		ca->recent[i] = UNKNOWN;
	/* The handshake's RTT is the first of the path. */
	ca->base[0] = cc_min_rtt_us(sk);
	ca->minute_us = cc_now_us(sk);
	ca->slowdown_us = 0;
	ca->debt = 0;
	ca->resume = 0;
	ca->phase = FIRST_START;
	if (cc_snd_cwnd(sk) > MIN_WINDOW)
		cc_set_snd_cwnd(sk, MIN_WINDOW);
}

static inline u32 base_us(struct cc_sock *sk, const struct ledbat *ca)
{
	u32 minutes = (u32)cc_param(sk, base_history);
	u32 least = UNKNOWN;

	for (u32 i = 0; i < HISTORY; i++)
		if (i < minutes)
			least = (u32)cc_min(least, ca->base[i]);
	return least;
}

/* Queueing delay, us; 0 while nothing is known. */
static inline u32 delay_us(struct cc_sock *sk, const struct ledbat *ca)
{
	u32 base = base_us(sk, ca), now = UNKNOWN;

	for (int i = 0; i < FILTER; i++)
		now = (u32)cc_min(now, ca->recent[i]);
	return now != UNKNOWN && now > base ? now - base : 0;
}

/* 1 / gain. Without an RTT the most careful. */
static inline u32 gain_divisor(struct cc_sock *sk, const struct ledbat *ca)
{
	u64 limit = (u64)cc_param(sk, gain_limit);
	u64 base = cc_max(base_us(sk, ca), 1);

	if (base == UNKNOWN)
		return (u32)limit;
	return (u32)cc_min(limit, cc_div(2 * (u64)cc_param(sk, target) + base - 1, base));
}

static void ledbat_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	struct ledbat *ca = cc_state(sk);
	s32 rtt = cc_sample_rtt_us(sample);
	u64 now = cc_now_us(sk);
	u32 rtt_us;

	if (rtt < 0)
		return;
	rtt_us = (u32)cc_max((u32)rtt, 1);
	/* Moved, not indexed: the kernel's verifier knows no index into a sender's state. */
	for (int i = FILTER - 1; i > 0; i--)
		ca->recent[i] = ca->recent[i - 1];
	ca->recent[0] = rtt_us;
	if (now - ca->minute_us >= MINUTE_US) {
		ca->minute_us = now;
		for (int i = HISTORY - 1; i > 0; i--)
			ca->base[i] = ca->base[i - 1];
		ca->base[0] = rtt_us;
	}
	ca->base[0] = (u32)cc_min(ca->base[0], rtt_us);
}

/* The first slow start is over, for whatever reason: the first slowdown follows soon. */
static inline void end_first_start(struct cc_sock *sk, struct ledbat *ca)
{
	ca->phase = NORMAL;
	ca->slowdown_us = cc_now_us(sk) + FIRST_SLOWDOWN_RTTS * (u64)(cc_srtt_us(sk) >> 3);
}

static u32 ledbat_ssthresh(struct cc_sock *sk)
{
	struct ledbat *ca = cc_state(sk);

	if (ca->phase == FIRST_START)
		end_first_start(sk, ca);
	else if (ca->phase == FROZEN)
		ca->resume = (u32)cc_max(ca->resume / 2, MIN_WINDOW);
	ca->debt = 0;
	return (u32)cc_max(cc_snd_cwnd(sk) / 2, MIN_WINDOW);
}

static inline void begin_slowdown(struct cc_sock *sk, struct ledbat *ca)
{
	ca->phase = FROZEN;
	ca->rounds = 0;
	ca->slowdown_us = cc_now_us(sk);
	ca->round_end_seq = cc_snd_nxt(sk);
	ca->resume = (u32)cc_max(cc_snd_cwnd(sk), MIN_WINDOW);
	ca->debt = 0;
	cc_set_snd_ssthresh(sk, ca->resume);
}

/* Returns whether the window stays frozen. */
static inline int still_frozen(struct cc_sock *sk, struct ledbat *ca)
{
	if (!cc_before(cc_snd_una(sk), ca->round_end_seq)) {
		ca->round_end_seq = cc_snd_nxt(sk);
		ca->rounds++;
	}
	if (ca->rounds < FROZEN_ROUNDS)
		return 1;
	ca->phase = RAMP;
	cc_set_snd_ssthresh(sk, ca->resume);
	cc_set_snd_cwnd_cnt(sk, 0);
	return 0;
}

static inline void slow_start(struct cc_sock *sk, struct ledbat *ca, u32 acked)
{
	if (!cc_is_cwnd_limited(sk))
		return;
	cc_cong_avoid_ai(sk, gain_divisor(sk, ca), acked);
	if (cc_snd_cwnd(sk) > cc_snd_ssthresh(sk))
		cc_set_snd_cwnd(sk, cc_snd_ssthresh(sk));
}

/* Reduction of the window by `acked` segments at this delay, 2^-10 segments. */
static inline u64 decrease_by(struct cc_sock *sk, u32 delay, u32 acked)
{
	u64 target = (u64)cc_param(sk, target);
	/* 2^32 us x 10^4 x 2^10 = 2^55. */
	u64 share = cc_div(((delay - target) * (u64)cc_param(sk, decrease)) << SHARE_SHIFT, 1000 * target);

	return acked * cc_min(share, MAX_SHARE);
}

static inline void follow_delay(struct cc_sock *sk, struct ledbat *ca, u32 acked)
{
	u32 delay = delay_us(sk, ca);
	u64 cwnd, off;

	if (cc_is_cwnd_limited(sk)) {
		u64 per = (u64)cc_snd_cwnd(sk) * gain_divisor(sk, ca);

		cc_cong_avoid_ai(sk, (u32)cc_min(per, ~0u), acked);
	}
	if (delay <= (u64)cc_param(sk, target))
		return;
	off = ca->debt + decrease_by(sk, delay, acked);
	ca->debt = (u32)(off & ((1u << SHARE_SHIFT) - 1));
	off >>= SHARE_SHIFT;
	cwnd = cc_snd_cwnd(sk);
	cwnd = cwnd > off + MIN_WINDOW ? cwnd - off : cc_min(cwnd, MIN_WINDOW);
	cc_set_snd_cwnd(sk, (u32)cwnd);
	/* Else a window that has come down would look like slow start. */
	if (cwnd < cc_snd_ssthresh(sk))
		cc_set_snd_ssthresh(sk, (u32)cc_max(cwnd, MIN_WINDOW));
}

static void ledbat_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct ledbat *ca = cc_state(sk);

	(void)ack;
	if (ca->phase == FIRST_START &&
	    (u64)delay_us(sk, ca) * 1000 > (u64)cc_param(sk, slow_start_exit) * (u64)cc_param(sk, target)) {
		cc_set_snd_ssthresh(sk, (u32)cc_max(cc_snd_cwnd(sk), MIN_WINDOW));
		end_first_start(sk, ca);
	}
	if (ca->phase == FROZEN && still_frozen(sk, ca)) {
		cc_set_snd_cwnd(sk, (u32)cc_min(MIN_WINDOW, cc_snd_cwnd_clamp(sk)));
		return;
	}
	if (cc_in_slow_start(sk)) {
		slow_start(sk, ca, acked);
		return;
	}
	if (ca->phase == FIRST_START) {
		end_first_start(sk, ca);
	} else if (ca->phase == RAMP) {
		u64 now = cc_now_us(sk);

		ca->phase = NORMAL;
		/* Bounded, for the product: a slowdown of 2^40 us is 12 days. */
		ca->slowdown_us = now + (u64)cc_param(sk, slowdown_interval) * cc_min(now - ca->slowdown_us, 1ull << 40);
	}
	if (cc_param(sk, slowdown_interval) && cc_now_us(sk) >= ca->slowdown_us) {
		begin_slowdown(sk, ca);
		cc_set_snd_cwnd(sk, (u32)cc_min(MIN_WINDOW, cc_snd_cwnd_clamp(sk)));
		return;
	}
	follow_delay(sk, ca, acked);
}

CC_ALGORITHM(ledbat_plus_plus, "keeps the queue below a target delay and yields to all others: for background traffic",
	"draft-irtf-iccrg-ledbat-plus-plus; RFC 6817",
	(init, ledbat_init),
	(ssthresh, ledbat_ssthresh),
	(cong_avoid, ledbat_cong_avoid),
	(pkts_acked, ledbat_pkts_acked),
	(undo_cwnd, cc_undo_cwnd));
