/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The one header of a congestion control algorithm.
 *
 * An algorithm is one C file that includes this header and nothing else. The same file is compiled
 *   - natively, for the simulator (native/env.h), and
 *   - by clang for BPF, as struct_ops for the running Linux kernel (bpf/env.h).
 * An algorithm therefore sees and does what Linux's tcp_congestion_ops lets it, and no more.
 *
 * An algorithm in full:
 *
 *	#include "cc.h"
 *
 *	CC_PARAMS((keep, 500000, 1000, 999000, 1000000, "1", "share of the window kept after a loss"));
 *
 *	static u32 mine_ssthresh(struct cc_sock *sk)
 *	{
 *		return cc_max((u64)cc_snd_cwnd(sk) * (u64)cc_param(sk, keep) / 1000000, 2);
 *	}
 *
 *	static void mine_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
 *	{
 *		cc_reno_cong_avoid(sk, acked);
 *	}
 *
 *	CC_ALGORITHM(mine, "what it does, in one line", "where it is described",
 *		(ssthresh, mine_ssthresh),
 *		(cong_avoid, mine_cong_avoid),
 *		(undo_cwnd, cc_undo_cwnd));
 *
 * Rules, each held by the compilers or by the loader:
 *   - integers only: `float` and `double` are poisoned below;
 *   - no other header, no library: the file is compiled with -nostdinc and linked with nothing;
 *   - loops have a constant bound, and there is no recursion: the kernel's verifier follows every path, so that a
 *     loop of n steps should not branch on data either (2^n paths);
 *   - u64 division only where it cannot be avoided, no signed division (BPF has none before its cpu v4), and
 *     cc_div() where a divisor may be zero: BPF gives 0 there, a processor stops the program;
 *   - no variable outside a function: state per flow lives in the CC_PRIVATE_BYTES behind cc_state().
 *
 * Hooks (name, signature, when it is called; * = required, as by Linux's tcp_validate_congestion_control):
 *	init		void (sk)			once, when the connection stands; the state is all zero. In the
 *							kernel the ACK of the handshake has been processed before, with
 *							the hooks below; what they left of the state is cleared (and stays
 *							where there is no init)
 *	ssthresh *	u32 (sk)			a loss episode, ECN-Echo or time-out begins: the new threshold, >= 2
 *	cong_avoid *	void (sk, u32 ack, u32 acked)	an ACK that may raise the window; acked = segments it delivered
 *	set_state	void (sk, u8 state)		before the state changes to one of CC_OPEN .. CC_LOSS
 *	cwnd_event	void (sk, u32 event)		one of CC_EVENT_*
 *	in_ack_event	void (sk, u32 flags)		every ACK, before it is processed; CC_ACK_* flags
 *	pkts_acked	void (sk, const struct cc_ack_sample *)	an ACK that acknowledged or SACKed something
 *	min_tso_segs	u32 (sk)			least segments per burst of segmentation offload
 *	cong_control *	void (sk, u32 ack, int flag, const struct cc_rate_sample *)
 *							every ACK, in every state, in place of cong_avoid and of the
 *							window reduction: sets window and pacing itself
 *							(one of cong_avoid and cong_control; kernel >= 6.10)
 *	undo_cwnd *	u32 (sk)			the reduction was not called for: the window to go back to
 *	release		void (sk)			the flow ends
 *	flags		CC_NEEDS_ECN or 0		not a hook: wants ECN negotiated and packets marked ECT
 *
 * Reading the sender (Linux's name after cc_; counts in segments, u32; times in us):
 *	cc_snd_cwnd, cc_snd_ssthresh, cc_snd_cwnd_cnt, cc_snd_cwnd_clamp, cc_prior_cwnd, cc_packets_out, cc_sacked_out,
 *	cc_lost_out, cc_retrans_out, cc_max_packets_out, cc_delivered, cc_delivered_ce, cc_lost, cc_app_limited,
 *	cc_srtt_us (8 times the smoothed RTT, 0 before the first sample), cc_min_rtt_us (~0 before the first sample),
 *	cc_mss_cache (bytes), cc_snd_una, cc_snd_nxt (low 32 bits: compare with cc_before, cc_after),
 *	cc_cwnd_limited_flag, cc_ca_state, cc_pacing_status, cc_ecn_flags (bit 0: negotiated),
 *	cc_pacing_rate (u64, bytes/s), cc_now_us, cc_delivered_mstamp_us, cc_first_tx_mstamp_us (u64),
 *	cc_idle_us (u64, since data was last sent), cc_gso_max_bytes (longest burst that counts as one packet),
 *	cc_next_send_us (u64, when pacing lets the next packet go; the past: at once)
 * Writing it, all that the kernel lets BPF write:
 *	cc_set_snd_cwnd (0 becomes 1), cc_set_snd_cwnd_cnt, cc_set_snd_ssthresh, cc_set_pacing_rate,
 *	cc_set_pacing_status (0 none, 1 wanted), cc_set_ecn_flags, cc_set_app_limited (`delivered` at which a period whose
 *	rate samples tell nothing of the path ends, not 0; Linux 6.4); and cc_state(sk), the algorithm's own.
 * Reading the samples:
 *	cc_sample_pkts_acked, cc_sample_rtt_us (s32, -1 none), cc_sample_in_flight
 *	cc_rs_prior_mstamp_us, cc_rs_prior_delivered, cc_rs_prior_delivered_ce, cc_rs_delivered (s32, -1 invalid),
 *	cc_rs_delivered_ce, cc_rs_interval_us (s64, -1 invalid), cc_rs_snd_interval_us, cc_rs_rcv_interval_us,
 *	cc_rs_rtt_us (s64, -1 unknown), cc_rs_losses, cc_rs_acked_sacked, cc_rs_prior_in_flight, cc_rs_last_end_seq,
 *	cc_rs_is_app_limited, cc_rs_is_retrans, cc_rs_is_ack_delayed
 */
#ifndef ELEPHAN_CC_H
#define ELEPHAN_CC_H

#include "definitions.h"

/*
 * An environment defines:
 *   struct cc_sock, struct cc_ack_sample, struct cc_rate_sample and the accessors named above;
 *
 *   CC_PARAMS((name, default, min, max, scale, unit, doc), ...)
 *	The parameters, set per flow natively and at load time in the kernel; once per file, before their first use.
 *	Integers: a value reads as value / scale in the unit ("1": a plain number or share; "bool": 0 or 1). A unit of
 *	names, "off|slow|fast", is a choice: 0 is the first, 1 the next; min is 0, max the last, scale 1.
 *	A default of CC_BY_VARIANT is below min and reads as it is while nobody gives a value: the algorithm decides.
 *	cc_param(sk, name) is the value, s64. CC_NO_PARAMS for an algorithm without.
 *
 *   CC_STATE(type)
 *	The algorithm's state; cc_state(sk) is then a pointer to it, zero before `init`.
 *
 *   CC_ALGORITHM(name, summary, source, (hook, function), ...)
 *	The algorithm, at the end of the file; once. `name` is what a scenario calls it.
 */
#ifdef CC_STEP
#include "bpf/step.h"
#elif defined(__bpf__)
#include "bpf/env.h"
#else
#include "native/env.h"
#endif

/* Smaller of two. */
static inline u64 cc_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Larger of two. */
static inline u64 cc_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* n / d, and 0 for d = 0 as in BPF. */
static inline u64 cc_div(u64 n, u64 d)
{
	return d ? n / d : 0;
}

/* a comes before b among numbers that wrap at 2^32, when they are less than 2^31 apart. */
static inline int cc_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* a comes after b, likewise. */
static inline int cc_after(u32 a, u32 b)
{
	return cc_before(b, a);
}

/*
 * Largest r with r^3 <= x. Exact for all of u64; r < 2^22.
 * One bit of r per step, from the top: r' = 2r + bit, where the bit is 1 when (2r + 1)^3 still fits, that is when
 * 3 (2r) (2r + 1) + 1 fits into what is left. No division; and no branch, since the kernel's verifier would follow
 * all 2^22 paths. What is left stays below 8 (3 r^2 + 3 r + 1) in units of the step, so that bit 63 is the sign.
 */
static inline u32 cc_cbrt(u64 x)
{
	u64 r = 0;

	for (int shift = 63; shift >= 0; shift -= 3) {
		u64 step, short_of;

		r *= 2;
		step = 3 * r * (r + 1) + 1;
		short_of = ((x >> shift) - step) >> 63;
		x -= (step << shift) & (short_of - 1);
		r += 1 - short_of;
	}
	return (u32)r;
}

/* Logarithms and their powers: 1 is 2^30. */
#define CC_LOG2_SHIFT 30

/*
 * log2 x, in 2^-30; x >= 1. First the whole part, then one bit behind the point per step: squaring a number in [1, 2)
 * doubles its logarithm, and is past 2 when the next bit is 1. No branch, as in cc_cbrt. 1e-9 too low at the worst.
 */
static inline u64 cc_log2(u32 x)
{
	u64 m = x, log = 31;

	for (u32 shift = 16; shift; shift /= 2) {
		/* 1 when the upper `shift` bits are all 0. */
		u64 low = ((m >> (32 - shift)) - 1) >> 63;

		m <<= shift * low;
		log -= shift * low;
	}
	/* m / 2^31 is in [1, 2). */
	for (int i = 0; i < CC_LOG2_SHIFT; i++) {
		m = (m * m) >> 31;
		log = 2 * log + (m >> 32);
		m >>= m >> 32;
	}
	return log;
}

/* 2^(x / 2^30), in 2^-30, for x below 34 x 2^30: the exponential series of the part behind the point. */
static inline u64 cc_exp2(u64 x)
{
	const u64 one = 1ull << CC_LOG2_SHIFT;
	const u64 ln2 = 744261118;
	u64 z = ((x & (one - 1)) * ln2) >> CC_LOG2_SHIFT;
	u64 sum = one;

	/* z < 0.7: what is left out, z^12 / 12!, is below 2^-34. */
	for (u32 k = 11; k; k--)
		sum = one + ((z * sum) >> CC_LOG2_SHIFT) / k;
	return sum << (x >> CC_LOG2_SHIFT);
}

/* Segments in flight (tcp_packets_in_flight). */
static inline u32 cc_in_flight(const struct cc_sock *sk)
{
	return cc_packets_out(sk) - (cc_sacked_out(sk) + cc_lost_out(sk)) + cc_retrans_out(sk);
}

/* The window is below its threshold. */
static inline int cc_in_slow_start(const struct cc_sock *sk)
{
	return cc_snd_cwnd(sk) < cc_snd_ssthresh(sk);
}

/*
 * The window is what limits the sender, so that it may grow (RFC 7661, 4.1, and Linux's tcp_is_cwnd_limited).
 * A window that doubles per RTT may also grow up to twice what has lately been in flight.
 */
static inline int cc_is_cwnd_limited_at(const struct cc_sock *sk, int exponential)
{
	if (cc_cwnd_limited_flag(sk))
		return 1;
	return exponential && cc_snd_cwnd(sk) < 2 * (u64)cc_max_packets_out(sk);
}

static inline int cc_is_cwnd_limited(const struct cc_sock *sk)
{
	return cc_is_cwnd_limited_at(sk, cc_in_slow_start(sk));
}

/*
 * Slow start with appropriate byte counting (RFC 5681, 3.1, with RFC 3465): one segment more for each one delivered,
 * up to the threshold. Returns the delivered segments that are left over for congestion avoidance.
 */
static inline u32 cc_slow_start(struct cc_sock *sk, u32 acked)
{
	u64 before = cc_snd_cwnd(sk);
	u64 after = cc_min(before + acked, cc_snd_ssthresh(sk));

	if (after < before)
		after = before;
	cc_set_snd_cwnd(sk, (u32)cc_min(after, cc_snd_cwnd_clamp(sk)));
	return acked - (u32)(after - before);
}

/*
 * Linear growth: one segment more for each `per` segments delivered; `per` = the window gives one segment per RTT.
 * Credit is kept in snd_cwnd_cnt. When `per` has fallen below the credit gathered at an earlier, higher `per`, that
 * credit is worth one segment, no more: a lower `per` must not turn old ACKs into a burst (as tcp_cong_avoid_ai).
 * An algorithm may count in another unit: a segments per RTT is `acked` = a times the segments delivered.
 */
static inline void cc_cong_avoid_ai(struct cc_sock *sk, u32 per, u64 acked)
{
	u64 cwnd = cc_snd_cwnd(sk);
	u64 credit = cc_snd_cwnd_cnt(sk);

	if (!per)
		per = 1;
	if (credit >= per) {
		credit = 0;
		cwnd += 1;
	}
	credit += acked;
	if (credit >= per) {
		u64 more = credit / per;

		credit -= more * per;
		cwnd += more;
	}
	cc_set_snd_cwnd_cnt(sk, (u32)credit);
	cc_set_snd_cwnd(sk, (u32)cc_min(cwnd, cc_snd_cwnd_clamp(sk)));
}

/*
 * The part before an algorithm's own growth: nothing at all while the application is the limit, slow start up to the
 * threshold. True when the window is at its threshold, with what is left of `*acked` for congestion avoidance.
 */
static inline int cc_reaches_avoidance(struct cc_sock *sk, u32 *acked)
{
	if (!cc_is_cwnd_limited(sk))
		return 0;
	if (!cc_in_slow_start(sk))
		return 1;
	*acked = cc_slow_start(sk, *acked);
	return *acked != 0;
}

/*
 * The same as Linux 2.6 has it, for variants of that time: slow start is a segment per ACK, whatever it acknowledges
 * (net.ipv4.tcp_abc = 0), and continues at the threshold itself, so that each reduction is followed by a segment more.
 */
static inline int cc_reaches_avoidance_2_6(struct cc_sock *sk)
{
	u32 cwnd = cc_snd_cwnd(sk);

	if (!cc_is_cwnd_limited(sk))
		return 0;
	if (cwnd > cc_snd_ssthresh(sk))
		return 1;
	cc_set_snd_cwnd(sk, (u32)cc_min((u64)cwnd + 1, cc_snd_cwnd_clamp(sk)));
	return 0;
}

/* Growth of that time: an ACK counts one, and the ACK that finds `per` of them counted is not. */
static inline void cc_grow_by_acks(struct cc_sock *sk, u32 per)
{
	u32 counted = cc_snd_cwnd_cnt(sk);

	if (counted < per) {
		cc_set_snd_cwnd_cnt(sk, counted + 1);
		return;
	}
	cc_set_snd_cwnd_cnt(sk, 0);
	cc_set_snd_cwnd(sk, (u32)cc_min((u64)cc_snd_cwnd(sk) + 1, cc_snd_cwnd_clamp(sk)));
}

/* Reno's growth: slow start, then one segment per window acknowledged (RFC 5681, 3.1; tcp_reno_cong_avoid). */
static inline void cc_reno_cong_avoid(struct cc_sock *sk, u32 acked)
{
	if (cc_reaches_avoidance(sk, &acked))
		cc_cong_avoid_ai(sk, cc_snd_cwnd(sk), acked);
}

/* The window before the reduction, or the present one if that has grown beyond (tcp_reno_undo_cwnd). */
static inline u32 cc_undo_cwnd(struct cc_sock *sk)
{
	return (u32)cc_max(cc_snd_cwnd(sk), cc_prior_cwnd(sk));
}

/* Integers only, from here on. */
#pragma GCC poison float double

#endif
