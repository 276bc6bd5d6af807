/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * CUBIC with HyStart: RFC 9438 as Linux does it.
 *
 * Idea. After a loss the window grows by a cubic function of the time since, not of the round trips since: fast back
 * towards the window at which the loss came (W_max), slowly around it, fast again beyond it. Growth per second is then
 * the same for a long path as for a short one. Where Reno would be faster than that, be as fast as Reno.
 *
 * Equations (RFC 9438; W = cwnd, segments; t = s since the epoch began, that is since growth resumed after a loss)
 *	W_cubic(t) = C (t - K)^3 + W_max					(eq. 1)
 *	K = cbrt((W_max - W at the start of the epoch) / C)			(eq. 2)
 *	each ACK: W += acked (W_cubic(t + RTT) - W) / W, W at most 1.5 times per RTT (4.2, 4.4, 4.5)
 *	W_est += acked / W  3 (1 - beta) / (1 + beta); W >= W_est		(eq. 4, the Reno-friendly region)
 *	loss: ssthresh = max(beta W, 2); W_max = W				(eq. 5, 4.6)
 *	loss below the last W_max: W_max = W (1 + beta) / 2			(4.7, fast convergence)
 * HyStart (Ha and Rhee, "Taming the elephants", Comput. Netw. 55(9), 2011) ends slow start before a loss, when
 *	- ACKs closer than hystart_ack_delta have kept coming for half the least RTT since the round began: the packets
 *	  in flight fill the path one way (train); for the whole of it when the sender paces; or
 *	- the least RTT of 8 samples of a round exceeds the least RTT ever by an eighth, within 4 to 16 ms (delay).
 * HyStart++ (RFC 9406) compares that with the round before, and then grows by a quarter of slow start's pace for 5
 * rounds, back to slow start if the RTT falls below what raised the alarm, before it ends slow start. In the first slow
 * start only; without pacing an ACK counts for 8 segments at most (4.2, L).
 *
 * Parameters
 *	beta, C			share of the window kept at a loss; segments/s^3
 *	fast_convergence, tcp_friendliness	4.7; 4.3
 *	hystart			off, classic (as Linux), or ++; the three below are of classic alone
 *	hystart_detect		1 train, 2 delay, 3 both
 *	hystart_low_window, hystart_ack_delta	as above; segments, us
 *	variant, max_increment	2.1: the growth of Linux 2.6.22, before 2.2 took its bound away (version numbers are
 *				those of Linux's module). It counts ACKs, a segment per cnt + 1 of them, and divides cnt
 *				by the segments per ACK: 15/16 of the estimate and 1/16 of the last, 2 at first. The
 *				sixteenth is rounded down, so that with an ACK for each segment it is 31/16. Beyond
 *				W_max at most max_increment segments per 0.1 s by that count, hence linear (less by
 *				RTT_min / RTT when a queue stands): 160 per s with an ACK for two segments, up to 31/16
 *				of it with an ACK for each; likewise 1/50 per RTT while no loss has been seen.
 *				All that 2.1 was: variant = "2.1", beta = "819/1024", hystart = "off"
 *
 * If RFC 9438 and Linux differ, this is Linux:
 *	- constants in 1/1024: beta = 717/1024 (RFC 0.7), C = 410/1024 segments/s^3 (RFC 0.4);
 *	- "RTT" in W_cubic(t + RTT) is the least RTT seen, not the smoothed one;
 *	- W_est starts at the window of the epoch's start, and keeps its slope 8/15 (RFC: 0.53, then 1 above W_max);
 *	- ssthresh comes from cwnd, not from the flight size (4.6);
 *	- a time-out forgets W_max and the least RTT (4.8 keeps W_max); then and at the start, while no W_max is known,
 *	  growth is at least one segment per 20 acknowledged;
 *	- a spurious loss restores cwnd and ssthresh but not W_max, K and the epoch (4.9);
 *	- the curve is evaluated at most once per clock tick, and at least every 31.25 ms.
 * And where this differs from Linux: the tick is 1 ms, whatever the kernel's HZ; the cube root is exact (Linux's is
 * 0.2 % off on average); products that overflow 64 bits there, 347 s from K on, do not here; HyStart++ is not in Linux.
 * Of 2.1 it leaves out what was mended since: idle time counted as part of the epoch.
 *
 * Checked. HyStart++'s seven constants against ns-3, ngtcp2 and Firefox's neqo, which quote RFC 9406, 4.3; beta and C
 * of RFC 9438 against implementations likewise. Not checked against the RFCs themselves: found to their introductions.
 *
 * Ranges. Windows: u32, tried to 34 million segments (400 Gbit/s x 1 s). Time within an epoch: 4096 s; beyond, the
 * function stands still, at more than 2^30 segments. Clock: u64 us.
 *
 * Source: RFC 9438, Linux's tcp_cubic; RFC 9406. Variant 2.1: Linux 2.6.22's, which is that of ns-2's TCP-Linux.
 * Kernel: as BPF struct_ops, Linux 5.6 and later.
 */
#include "cc.h"

CC_PARAMS(
	(beta, 717, 512, 1014, 1024, "1", "share of the window kept at a loss (RFC 9438, 4.6)"),
	(C, 410, 16, 10240, 1024, "segments/s^3", "aggressiveness of the cubic function (RFC 9438, 4.1)"),
	(fast_convergence, 1, 0, 1, 1, "bool", "give room to new flows (RFC 9438, 4.7)"),
	(tcp_friendliness, 1, 0, 1, 1, "bool", "never slower than Reno (RFC 9438, 4.3)"),
	(hystart, 1, 0, 2, 1, "off|classic|++", "leave slow start on signs of a full path (++: RFC 9406)"),
	(hystart_detect, 3, 1, 3, 1, "1", "which signs: 1 ACK train, 2 delay, 3 both"),
	(hystart_low_window, 16, 2, 1000000, 1, "segments", "HyStart acts from this window on"),
	(hystart_ack_delta, 2000, 1, 1000000, 1, "us", "longest gap between the ACKs of a train"),
	(variant, 0, 0, 1, 1, "2.3|2.1", "growth as of this version of Linux's module"),
	(max_increment, 16, 1, 100000, 1, "segments", "variant 2.1: most growth per 0.1 s beyond W_max"));

/* One share, as beta and C count it. */
#define ONE 1024

/* Time of the cubic function: units of 2^-10 s, as Linux's BICTCP_HZ. Then C/1024 t^3 is in segments after >> 40. */
#define TIME_SHIFT 10
#define CURVE_SHIFT (10 + 3 * TIME_SHIFT)

/* Furthest time from K that the function is evaluated at: 2^22 units, 4096 s; C of 10 gives 6.9e11 segments there. */
#define MAX_OFFSET (1ull << 22)

/* Up to here C t^3 fits in 64 bits with C at most 10 x 1024: 2^48 x 10240 = 2.9e18. */
#define EXACT_OFFSET (1ull << 16)

/* Largest W_max - W for K; 2^40 / 16 x 2^26 = 2^62. Beyond 67 million segments K is that of 67 million. */
#define MAX_DEFICIT (1ull << 26)

/* Least and greatest interval between two evaluations, us: Linux's jiffy at HZ = 1000, and its HZ / 32. */
#define TICK_US 1000
#define REFRESH_US 31250

/* No W_max known: at least one segment per so many acknowledged (Linux, bictcp_update); in 2.1 just that. */
#define UNKNOWN_MAX_PER 20
#define UNKNOWN_MAX_PER_2_1 50

/* At most 1.5 times per RTT: one segment per 2 acknowledged (RFC 9438, 4.4). */
#define FASTEST_PER 2

/* 2.1: segments per ACK, in 1/16 (Linux, ACK_RATIO_SHIFT), and at first. */
#define RATIO_SHIFT 4
#define RATIO_FIRST (2u << RATIO_SHIFT)

/* Time that max_increment is for, us (Linux 2.6.22, bictcp_update: S_max RTT / 0.1 s per RTT). */
#define INCREMENT_US 100000

/* Next to no growth at W_max: one segment in 100 windows. */
#define PLATEAU_WINDOWS 100

/* RTTs are not looked at for so long after growth resumed: they still hold the queue before the loss. us. */
#define SETTLE_US 1000000

#define HYSTART_CLASSIC 1
#define HYSTART_PLUS_PLUS 2

/* HyStart's delay sign: samples per round, and the bounds of the eighth of the least RTT, us. */
#define HYSTART_SAMPLES 8
#define HYSTART_DELAY_MIN_US 4000
#define HYSTART_DELAY_MAX_US 16000
#define HYSTART_NO_RTT 0xffffffffu
#define HYSTART_TRAIN 1
#define HYSTART_DELAY 2

/* Most that offloaded bursts may add to a train's length, us. */
#define HYSTART_BURST_MAX_US 1000

/* HyStart++, RFC 9406, 4.3: CSS_GROWTH_DIVISOR, CSS_ROUNDS, and L without pacing. */
#define CONSERVATIVE_PER 4
#define CONSERVATIVE_ROUNDS 5
#define UNPACED_PER_ACK 8

#define MIN_SSTHRESH 2

struct cubic {
	u64 epoch_start_us;	/* when growth resumed; valid with in_epoch */
	u64 evaluated_us;	/* when the function was last evaluated */
	u64 round_start_us;	/* HyStart: start of the round */
	u64 last_ack_us;	/* HyStart: last ACK of the train */
	u32 per;		/* segments acknowledged per segment of growth; in 2.1 ACKs, less one */
	u32 ratio;		/* 2.1: segments per ACK, 1/16 */
	u32 w_max;		/* window at the last loss, after fast convergence; 0 = unknown */
	u32 evaluated_cwnd;	/* window at the last evaluation */
	u32 origin;		/* the function's plateau: max(w_max, window at the start of the epoch) */
	u32 k;			/* time from the start of the epoch to the plateau, 2^-10 s */
	u32 acked;		/* segments (in 2.1 ACKs) that have not yet become growth of w_est */
	u32 w_est;		/* Reno's window since the start of the epoch */
	u32 est_slope;		/* 8 (1 + beta) / (3 (1 - beta)): segments acked per growth of w_est, in windows / 8 */
	u32 delay_min_us;	/* least RTT; 0 = none yet */
	u32 round_end_seq;	/* HyStart: the round ends when this is acknowledged */
	u32 round_rtt_us;	/* HyStart: least RTT of the round */
	u32 last_rtt_us;	/* HyStart++: least RTT of the round before */
	u32 alarm_rtt_us;	/* HyStart++: round_rtt_us that began conservative slow start; 0 = not in it */
	u8 round_samples;	/* HyStart: RTTs of the round, up to HYSTART_SAMPLES */
	u8 slow_rounds;		/* HyStart++: rounds of conservative slow start, up to CONSERVATIVE_ROUNDS */
	u8 found;		/* HyStart has ended slow start */
	u8 in_epoch;
};

CC_STATE(struct cubic);

static inline int detects(struct cc_sock *sk, u32 sign)
{
	return ((u32)cc_param(sk, hystart_detect) & sign) != 0;
}

static inline int is_2_1(struct cc_sock *sk)
{
	return cc_param(sk, variant) != 0;
}

/* HyStart++ has this slow start to itself: only the first of a flow (RFC 9406, 4.3). */
static inline int hystart_plus_plus(struct cc_sock *sk)
{
	return cc_param(sk, hystart) == HYSTART_PLUS_PLUS && cc_snd_ssthresh(sk) == CC_INFINITE_SSTHRESH;
}

static inline void hystart_new_round(struct cc_sock *sk, struct cubic *ca)
{
	ca->round_start_us = cc_now_us(sk);
	ca->last_ack_us = ca->round_start_us;
	ca->round_end_seq = cc_snd_nxt(sk);
	ca->last_rtt_us = ca->round_rtt_us;
	ca->round_rtt_us = HYSTART_NO_RTT;
	ca->round_samples = 0;
}

/* Nothing is known of the path: at the start, and after a time-out. */
static inline void forget(struct cc_sock *sk, struct cubic *ca)
{
	ca->per = 0;
	ca->ratio = RATIO_FIRST;
	ca->w_max = 0;
	ca->evaluated_cwnd = 0;
	ca->evaluated_us = 0;
	ca->origin = 0;
	ca->k = 0;
	ca->acked = 0;
	ca->w_est = 0;
	ca->delay_min_us = 0;
	ca->found = 0;
	ca->in_epoch = 0;
	ca->alarm_rtt_us = 0;
	ca->round_rtt_us = HYSTART_NO_RTT;
	hystart_new_round(sk, ca);
}

static void cubic_init(struct cc_sock *sk)
{
	struct cubic *ca = cc_state(sk);
	u32 beta = (u32)cc_param(sk, beta);

	/* In this order for Linux's value, 15, at its beta. */
	ca->est_slope = 8 * (ONE + beta) / 3 / (ONE - beta);
	forget(sk, ca);
}

static u32 cubic_ssthresh(struct cc_sock *sk)
{
	struct cubic *ca = cc_state(sk);
	u64 cwnd = cc_snd_cwnd(sk);
	u64 beta = (u64)cc_param(sk, beta);

	ca->in_epoch = 0;
	if (cwnd < ca->w_max && cc_param(sk, fast_convergence))
		ca->w_max = (u32)(cwnd * (ONE + beta) / (2 * ONE));
	else
		ca->w_max = (u32)cwnd;
	return (u32)cc_max(cwnd * beta / ONE, MIN_SSTHRESH);
}

/* The first ACK of congestion avoidance since a loss: place the curve. */
static inline void start_epoch(struct cc_sock *sk, struct cubic *ca, u32 cwnd, u32 acked)
{
	ca->in_epoch = 1;
	ca->epoch_start_us = cc_now_us(sk);
	ca->acked = acked;
	ca->w_est = cwnd;
	if (ca->w_max > cwnd) {
		u64 deficit = cc_min(ca->w_max - cwnd, MAX_DEFICIT);

		ca->origin = ca->w_max;
		ca->k = cc_cbrt((1ull << CURVE_SHIFT) / (u64)cc_param(sk, C) * deficit);
	} else {
		ca->origin = cwnd;
		ca->k = 0;
	}
}

/* C |t - K|^3, segments; `offset` = |t - K| in 2^-10 s. */
static inline u64 curve(u64 c, u64 offset)
{
	offset = cc_min(offset, MAX_OFFSET);
	if (offset < EXACT_OFFSET)
		return (c * offset * offset * offset) >> CURVE_SHIFT;
	/* Shifted as it is multiplied: 4e-5 too low at the worst with C = 0.4, 1e-3 with the least C. */
	return (((c * offset >> 10) * offset >> 10) * offset) >> 20;
}

/* A time as the function counts it. Bounded first: 2^42 us x 2^10 fits in 64 bits. */
static inline u64 offset(u64 us)
{
	return (cc_min(us, 1ull << 42) << TIME_SHIFT) / 1000000;
}

/* The window that the function wants at `t`, 2^-10 s into the epoch. */
static inline u64 target(struct cc_sock *sk, struct cubic *ca, u64 t)
{
	u64 c = (u64)cc_param(sk, C);
	u64 delta;

	if (t >= ca->k)
		return ca->origin + curve(c, t - ca->k);
	delta = curve(c, ca->k - t);
	return ca->origin > delta ? ca->origin - delta : 0;
}

static inline void evaluate(struct cc_sock *sk, struct cubic *ca, u32 cwnd)
{
	u64 t = offset(cc_now_us(sk) - ca->epoch_start_us + ca->delay_min_us);
	u64 wanted = target(sk, ca, t);
	u64 per = PLATEAU_WINDOWS * (u64)cwnd;

	if (wanted > cwnd)
		per = cwnd / (wanted - cwnd);
	if (is_2_1(sk)) {
		u64 steepest = (u64)cc_param(sk, max_increment) * ca->delay_min_us;

		if (t >= ca->k)
			per = cc_max(per, cc_div((u64)cwnd * INCREMENT_US, steepest));
		if (!ca->w_max)
			per = UNKNOWN_MAX_PER_2_1;
	} else if (!ca->w_max) {
		/* At the start the curve is too flat for a path of which nothing is known. */
		per = cc_min(per, UNKNOWN_MAX_PER);
	}
	ca->per = (u32)cc_min(per, ~0u);
}

/* Grow W_est as Reno would; when it is above the window, grow as fast as it takes to get there in one RTT. */
static inline void be_friendly(struct cc_sock *sk, struct cubic *ca, u32 cwnd)
{
	u64 per_segment = ((u64)cwnd * ca->est_slope) >> 3;

	if (!cc_param(sk, tcp_friendliness))
		return;
	if (ca->acked > per_segment && per_segment) {
		u64 grown = ca->acked / per_segment;

		ca->acked -= (u32)(grown * per_segment);
		ca->w_est = (u32)cc_min(ca->w_est + grown, ~0u);
	}
	if (ca->w_est > cwnd)
		ca->per = (u32)cc_min(ca->per, cwnd / (ca->w_est - cwnd));
}

static inline void update(struct cc_sock *sk, struct cubic *ca, u32 cwnd, u32 acked)
{
	u64 now = cc_now_us(sk);

	ca->acked = (u32)cc_min((u64)ca->acked + acked, ~0u);
	if (ca->in_epoch) {
		u64 since = now - ca->evaluated_us;

		if (ca->evaluated_cwnd == cwnd && since <= REFRESH_US)
			return;
		if (since < TICK_US)
			goto friendly;
	}
	ca->evaluated_cwnd = cwnd;
	ca->evaluated_us = now;
	if (!ca->in_epoch)
		start_epoch(sk, ca, cwnd, acked);
	evaluate(sk, ca, cwnd);
friendly:
	be_friendly(sk, ca, cwnd);
	ca->per = (u32)cc_max(ca->per, FASTEST_PER);
}

/* Linux 2.6.22, bictcp_update: W_est is of ACKs, and all of it waits for the next evaluation. */
static inline void update_2_1(struct cc_sock *sk, struct cubic *ca, u32 cwnd)
{
	u64 now = cc_now_us(sk);

	ca->acked = (u32)cc_min((u64)ca->acked + 1, ~0u);
	if (ca->evaluated_cwnd == cwnd && now - ca->evaluated_us <= REFRESH_US)
		return;
	ca->evaluated_cwnd = cwnd;
	ca->evaluated_us = now;
	if (!ca->in_epoch)
		start_epoch(sk, ca, cwnd, 1);
	evaluate(sk, ca, cwnd);
	be_friendly(sk, ca, cwnd);
	ca->per = (u32)cc_max(cc_div((u64)ca->per << RATIO_SHIFT, ca->ratio), 1);
}

static void cubic_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	struct cubic *ca = cc_state(sk);

	(void)ack;
	if (hystart_plus_plus(sk)) {
		if (!cc_pacing_status(sk))
			acked = (u32)cc_min(acked, UNPACED_PER_ACK);
		if (ca->alarm_rtt_us && cc_is_cwnd_limited(sk)) {
			cc_cong_avoid_ai(sk, CONSERVATIVE_PER, acked);
			return;
		}
	}
	if (is_2_1(sk)) {
		if (!cc_reaches_avoidance_2_6(sk))
			return;
		update_2_1(sk, ca, cc_snd_cwnd(sk));
		cc_grow_by_acks(sk, ca->per);
		return;
	}
	if (!cc_reaches_avoidance(sk, &acked))
		return;
	update(sk, ca, cc_snd_cwnd(sk), acked);
	cc_cong_avoid_ai(sk, ca->per, acked);
}

static void cubic_set_state(struct cc_sock *sk, u8 state)
{
	if (state == CC_LOSS)
		forget(sk, cc_state(sk));
}

/* RFC 9438, 4.2: time in which the application sent nothing is not part of the epoch. */
static void cubic_cwnd_event(struct cc_sock *sk, u32 event)
{
	struct cubic *ca = cc_state(sk);
	u64 now = cc_now_us(sk);

	if (event != CC_EVENT_TX_START || !ca->in_epoch)
		return;
	ca->epoch_start_us = cc_min(ca->epoch_start_us + cc_idle_us(sk), now);
}

/* Most time by which ACKs of an offloaded burst stretch a train, us: four of the longest bursts at the present rate. */
static inline u64 burst_us(struct cc_sock *sk)
{
	u64 rate = cc_pacing_rate(sk);

	return rate ? cc_min((u64)cc_gso_max_bytes(sk) * 4 * 1000000 / rate, HYSTART_BURST_MAX_US) : 0;
}

static inline void leave_slow_start(struct cc_sock *sk, struct cubic *ca)
{
	ca->found = 1;
	/* Not below two segments, as after a loss (RFC 5681, 3.1): the clamp may have left one. */
	cc_set_snd_ssthresh(sk, cc_max(cc_snd_cwnd(sk), 2));
}

/* By how much the RTT must rise: an eighth, within bounds. */
static inline u64 delay_margin(u32 rtt_us)
{
	return cc_min(cc_max(rtt_us / 8, HYSTART_DELAY_MIN_US), HYSTART_DELAY_MAX_US);
}

static inline void hystart_update(struct cc_sock *sk, struct cubic *ca, u32 rtt_us)
{
	/* Rounds are followed below the low window too: a round that began there must not look long above it. */
	if (cc_after(cc_snd_una(sk), ca->round_end_seq))
		hystart_new_round(sk, ca);
	if (cc_snd_cwnd(sk) < (u64)cc_param(sk, hystart_low_window))
		return;
	if (detects(sk, HYSTART_TRAIN)) {
		u64 now = cc_now_us(sk);

		if (now - ca->last_ack_us <= (u64)cc_param(sk, hystart_ack_delta)) {
			u64 full = ca->delay_min_us + burst_us(sk);

			ca->last_ack_us = now;
			/* A pacing sender stretches its own flight over up to half an RTT. */
			if (!cc_pacing_status(sk))
				full /= 2;
			if (now - ca->round_start_us > full)
				leave_slow_start(sk, ca);
		}
	}
	if (detects(sk, HYSTART_DELAY)) {
		ca->round_rtt_us = (u32)cc_min(ca->round_rtt_us, rtt_us);
		if (ca->round_samples < HYSTART_SAMPLES) {
			ca->round_samples++;
		} else {
			if (ca->round_rtt_us > ca->delay_min_us + delay_margin(ca->delay_min_us))
				leave_slow_start(sk, ca);
		}
	}
}

/* RFC 9406, 4.2. */
static inline void hystart_plus_plus_update(struct cc_sock *sk, struct cubic *ca, u32 rtt_us)
{
	u64 alarming;

	if (!cc_before(cc_snd_una(sk), ca->round_end_seq)) {
		/* The part of a round that was left when the alarm came counts as one. */
		if (ca->alarm_rtt_us && ++ca->slow_rounds >= CONSERVATIVE_ROUNDS) {
			leave_slow_start(sk, ca);
			return;
		}
		hystart_new_round(sk, ca);
	}
	ca->round_rtt_us = (u32)cc_min(ca->round_rtt_us, rtt_us);
	if (ca->round_samples < HYSTART_SAMPLES)
		ca->round_samples++;
	if (ca->round_samples < HYSTART_SAMPLES)
		return;
	alarming = ca->last_rtt_us + delay_margin(ca->last_rtt_us);
	if (ca->alarm_rtt_us) {
		/* A false alarm: back to slow start. */
		if (ca->round_rtt_us < ca->alarm_rtt_us)
			ca->alarm_rtt_us = 0;
	} else if (ca->last_rtt_us != HYSTART_NO_RTT && ca->round_rtt_us >= alarming) {
		ca->alarm_rtt_us = ca->round_rtt_us;
		ca->slow_rounds = 0;
	}
}

static void cubic_pkts_acked(struct cc_sock *sk, const struct cc_ack_sample *sample)
{
	struct cubic *ca = cc_state(sk);
	s32 rtt = cc_sample_rtt_us(sample);
	u32 acked = cc_sample_pkts_acked(sample);
	u32 rtt_us;

	if (acked && cc_ca_state(sk) == CC_OPEN)
		ca->ratio += acked - (ca->ratio >> RATIO_SHIFT);
	if (rtt < 0)
		return;
	if (ca->in_epoch && cc_now_us(sk) - ca->epoch_start_us < SETTLE_US)
		return;
	rtt_us = (u32)cc_max((u32)rtt, 1);
	if (!ca->delay_min_us || ca->delay_min_us > rtt_us)
		ca->delay_min_us = rtt_us;
	if (hystart_plus_plus(sk))
		hystart_plus_plus_update(sk, ca, rtt_us);
	else if (!ca->found && cc_in_slow_start(sk) && cc_param(sk, hystart) == HYSTART_CLASSIC)
		hystart_update(sk, ca, rtt_us);
}

CC_ALGORITHM(cubic, "growth by a cubic function of time, with HyStart: Linux's default",
	"RFC 9438; HyStart: Ha and Rhee 2011, RFC 9406",
	(init, cubic_init),
	(ssthresh, cubic_ssthresh),
	(cong_avoid, cubic_cong_avoid),
	(set_state, cubic_set_state),
	(cwnd_event, cubic_cwnd_event),
	(pkts_acked, cubic_pkts_acked),
	(undo_cwnd, cc_undo_cwnd));
