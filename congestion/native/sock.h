/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The sender and its samples as memory that C, Rust and BPF share: what cc.h's accessors read, field by field.
 *
 * Laid out as crates/congestion/src/sock.rs declares them, where each field's unit and range is written; a test
 * compares every offset and size. Every field has the same size and place on all 64-bit targets.
 */
#ifndef ELEPHAN_CC_SOCK_H
#define ELEPHAN_CC_SOCK_H

#include "../definitions.h"

struct cc_ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct cc_rate_sample {
	u64 prior_mstamp_us;
	u32 prior_delivered;
	u32 prior_delivered_ce;
	s32 delivered;
	s32 delivered_ce;
	s64 interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	s64 rtt_us;
	s32 losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	u8 is_app_limited;
	u8 is_retrans;
	u8 is_ack_delayed;
	u8 pad;
};

struct cc_sock {
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 prior_cwnd;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 srtt_us;
	u32 min_rtt_us;
	u32 mss_cache;
	u32 snd_una;
	u32 snd_nxt;
	u8 is_cwnd_limited;
	u8 ca_state;
	u8 pacing_status;
	u8 ecn_flags;
	u64 pacing_rate;
	u64 tcp_mstamp_us;
	u64 delivered_mstamp_us;
	u64 first_tx_mstamp_us;
	u64 lsndtime_us;
	u64 next_send_us;
	s64 params[CC_MAX_PARAMS];
	u64 private[CC_PRIVATE_BYTES / 8];
	u32 gso_max_bytes; /* 0: no segmentation offload */
	u32 pad;
} __attribute__((aligned(8)));

/*
 * One call of a hook, before or after: the sender as the algorithm sees it, and what the call was given or gave.
 * bpf/record.h writes them in the kernel, crates/congestion/src/parity compares.
 */
struct cc_hook_call {
	u32 hook;	/* CC_HOOK_* */
	u32 after;	/* 0: before the call, 1: after it */
	u64 connection; /* one number per connection; never 0 */
	u32 args[2];	/* of cong_avoid and cong_control both; of set_state, cwnd_event and in_ack_event the first */
	u32 result;	/* after ssthresh, undo_cwnd, min_tso_segs */
	u32 ticks;	/* the kernel's clock, low bits: whether it went on between before and after */
	struct cc_rate_sample rate;
	struct cc_ack_sample ack;
	u32 pad;
	struct cc_sock sock;
} __attribute__((aligned(8)));

/* The hooks, in the order of cc.h. */
enum {
	CC_HOOK_INIT,
	CC_HOOK_SSTHRESH,
	CC_HOOK_CONG_AVOID,
	CC_HOOK_SET_STATE,
	CC_HOOK_CWND_EVENT,
	CC_HOOK_IN_ACK_EVENT,
	CC_HOOK_PKTS_ACKED,
	CC_HOOK_MIN_TSO_SEGS,
	CC_HOOK_CONG_CONTROL,
	CC_HOOK_UNDO_CWND,
	CC_HOOK_RELEASE,
};

#endif
