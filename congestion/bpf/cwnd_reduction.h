/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Reduces the window of a sender by command from outside, before its packets change to a shorter path: as
 * crates/tcp/src/endpoint/path_change_hint.rs does it.
 *
 * Linux has no call for that. TCP_BPF_SNDCWND_CLAMP sets the threshold along with the bound of the window, so that
 * a sender whose bound is lifted again is in slow start. No option informs an algorithm that its window was reduced;
 * without that CUBIC is back on its curve within a round trip. An algorithm of struct_ops may write both. The kernel
 * calls it on each ACK, before a sender that has filled its window can send more; so it looks into a map then.
 *
 * The manager writes a command to cc_commands, by the ends of the flow; each connection answers once per command in
 * cc_answers. All of it is left out by the verifier, as dead code, unless the loader sets cc_listens.
 */
#ifndef ELEPHAN_CC_BPF_CWND_REDUCTION_H
#define ELEPHAN_CC_BPF_CWND_REDUCTION_H

#define CC_HASH_ 1	  /* BPF_MAP_TYPE_HASH */
#define CC_NO_PREALLOC_ 1 /* BPF_F_NO_PREALLOC: most runs need none of it */
#define CC_COMMANDS_ 4096	  /* flows that can get a command in one run: the buckets of both maps are 128 kB */

#define CC_LEAST_ 2	    /* segments that are left, as after a loss (RFC 5681, 3.1, equation 4) */
#define CC_PPM_ 1000000 /* parts of one */

/* Addresses and ports as in the packets. `port` is that of the destination, 0 for all of them. */
struct cc_ends {
	u32 source;
	u32 destination;
	u16 port;
	u16 own;
	u32 number;
};

struct cc_command {
	u64 at_ns;	/* when it was given, CLOCK_MONOTONIC */
	u64 shorter_us; /* by how much the RTT will be shorter */
	u32 number;	/* 1 and up: no two of a run are the same */
	u32 keep_ppm;	/* part of the window that is kept; 0: (RTT - shorter) / RTT */
	u32 restores;	/* not 0: to give back what it took on this number */
	u32 unused;
};

enum {
	CC_REDUCED = 1,
	CC_RESTORED = 2,
	CC_TOO_LATE = 3, /* nothing could be done within a round trip: it had losses to repair, or nothing to send */
	CC_REPAIRS = 4,	 /* it goes on after a time-out */
};

struct cc_answer {
	u64 at_ns;
	u32 what;
	u32 window;   /* what of the window was in use, segments */
	u32 kept;     /* segments */
	u32 srtt_us;  /* not times 8 */
	u32 cwnd;     /* before, segments */
	u32 ssthresh; /* before */
};

struct {
	u32 (*type)[CC_HASH_];
	u32 (*max_entries)[CC_COMMANDS_];
	u32 (*map_flags)[CC_NO_PREALLOC_];
	struct cc_ends *key;
	struct cc_command *value;
} cc_commands CC_SECTION(".maps");

struct {
	u32 (*type)[CC_HASH_];
	u32 (*max_entries)[CC_COMMANDS_];
	u32 (*map_flags)[CC_NO_PREALLOC_];
	struct cc_ends *key;
	struct cc_answer *value;
} cc_answers CC_SECTION(".maps");

/* Nonzero if orders may come: set by the loader, as parameters are. */
const volatile u32 cc_listens = 0;

/* The algorithm's `ssthresh`; which function that is, CC_WRAP_ssthresh knows. */
static inline u32 cc_threshold_(struct tcp_sock *sk);

static inline void cc_reduce_(struct tcp_sock *sk, const struct cc_command *command, u32 acked,
			      struct cc_answer *answer)
{
	u64 srtt_us = answer->srtt_us;
	/* The ACK that is being processed has left packets_out already. */
	u64 out = (u64)cc_packets_out(sk) + acked;
	u64 window = out < answer->cwnd ? out : answer->cwnd;
	u64 kept;

	if (cc_ca_state(sk) > CC_DISORDER) {
		answer->what = CC_REPAIRS;
		return;
	}
	if (command->keep_ppm)
		kept = window * command->keep_ppm / CC_PPM_;
	else if (command->shorter_us < srtt_us)
		kept = window * (srtt_us - command->shorter_us) / srtt_us;
	else
		kept = 0;
	if (kept < CC_LEAST_)
		kept = CC_LEAST_;
	/* The shorter way has room for what is kept and no more: the reduction is told from there. */
	cc_set_snd_cwnd(sk, (u32)kept);
	cc_threshold_(sk);
	cc_set_snd_cwnd_cnt(sk, 0);
	cc_set_snd_ssthresh(sk, (u32)kept);
	cc_set_snd_cwnd(sk, (u32)kept);
	answer->what = CC_REDUCED;
	answer->window = (u32)window;
	answer->kept = (u32)kept;
}

static inline void cc_restore_(struct tcp_sock *sk, const struct cc_answer *taken, struct cc_answer *answer)
{
	if (!taken || taken->what != CC_REDUCED || cc_ca_state(sk) > CC_DISORDER) {
		answer->what = CC_REPAIRS;
		return;
	}
	if (answer->cwnd < taken->cwnd)
		cc_set_snd_cwnd(sk, taken->cwnd);
	if (answer->ssthresh < taken->ssthresh)
		cc_set_snd_ssthresh(sk, taken->ssthresh);
	answer->what = CC_RESTORED;
	answer->kept = cc_snd_cwnd(sk);
}

/* On an ACK that may raise the window, before the algorithm is asked. */
static inline void cc_listen_(struct tcp_sock *sk, u32 acked)
{
	void *(*const find)(void *map, const void *key) = (void *(*)(void *, const void *))1;
	long (*const store)(void *map, const void *key, const void *value, u64 flags) =
		(long (*)(void *, const void *, const void *, u64))2;
	u64 (*const clock)(void) = (u64(*)(void))5; /* bpf_ktime_get_ns */
	const struct sock_common *common = &sk->inet_conn.icsk_inet.sk.__sk_common;
	struct cc_ends ends = { .source = common->skc_rcv_saddr, .destination = common->skc_daddr };
	struct cc_answer answer = {};
	struct cc_command *command;

	ends.port = common->skc_dport;
	command = find(&cc_commands, &ends);
	if (!command) {
		ends.port = 0;
		command = find(&cc_commands, &ends);
	}
	if (!command)
		return;
	ends.port = common->skc_dport;
	ends.own = common->skc_num;
	ends.number = command->number;
	if (find(&cc_answers, &ends))
		return;
	answer.at_ns = clock();
	answer.srtt_us = cc_srtt_us(sk) >> 3;
	answer.cwnd = cc_snd_cwnd(sk);
	answer.ssthresh = cc_snd_ssthresh(sk);
	if (command->restores) {
		ends.number = command->restores;
		cc_restore_(sk, find(&cc_answers, &ends), &answer);
		ends.number = command->number;
	} else if (answer.at_ns - command->at_ns > (u64)answer.srtt_us * 1250) {
		/* A quarter more than the smoothed round trip: ACKs of a full window come once within each. */
		answer.what = CC_TOO_LATE;
	} else {
		cc_reduce_(sk, command, acked, &answer);
	}
	store(&cc_answers, &ends, &answer, 0);
}

#endif
