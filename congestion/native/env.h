/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * cc.h on a general processor: the sender is a structure shared with Rust, an algorithm a constant descriptor.
 *
 * struct cc_sock, cc_ack_sample and cc_rate_sample are in sock.h.
 */
#ifndef ELEPHAN_CC_NATIVE_ENV_H
#define ELEPHAN_CC_NATIVE_ENV_H

#include "sock.h"

/* A parameter as its C file declares it. Rust's congestion::descriptor mirrors these two structures. */
struct cc_param {
	const char *name;
	const char *unit;
	const char *doc;
	s64 initial;
	s64 min;
	s64 max;
	s64 scale;
};

struct cc_algorithm {
	u32 abi_version;
	u32 sock_bytes;
	const char *name;
	const char *summary;
	const char *source;
	const struct cc_param *params;
	u32 params_count;
	u32 flags;
	void (*init)(struct cc_sock *sk);
	void (*release)(struct cc_sock *sk);
	u32 (*ssthresh)(struct cc_sock *sk);
	void (*cong_avoid)(struct cc_sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct cc_sock *sk, u8 state);
	void (*cwnd_event)(struct cc_sock *sk, u32 event);
	void (*in_ack_event)(struct cc_sock *sk, u32 flags);
	void (*pkts_acked)(struct cc_sock *sk, const struct cc_ack_sample *sample);
	u32 (*min_tso_segs)(struct cc_sock *sk);
	void (*cong_control)(struct cc_sock *sk, u32 ack, int flag, const struct cc_rate_sample *rs);
	u32 (*undo_cwnd)(struct cc_sock *sk);
};

#define CC_READ_AS_(type, accessor, field)                                                                       \
	static inline type cc_##accessor(const struct cc_sock *sk)                                              \
	{                                                                                                       \
		return sk->field;                                                                               \
	}
#define CC_READ_(type, field) CC_READ_AS_(type, field, field)
#define CC_WRITE_(type, field)                                                                                   \
	static inline void cc_set_##field(struct cc_sock *sk, type value)                                       \
	{                                                                                                       \
		sk->field = value;                                                                              \
	}

CC_READ_(u32, snd_cwnd)
CC_READ_(u32, snd_ssthresh)
CC_READ_(u32, snd_cwnd_cnt)
CC_READ_(u32, snd_cwnd_clamp)
CC_READ_(u32, prior_cwnd)
CC_READ_(u32, packets_out)
CC_READ_(u32, sacked_out)
CC_READ_(u32, lost_out)
CC_READ_(u32, retrans_out)
CC_READ_(u32, max_packets_out)
CC_READ_(u32, delivered)
CC_READ_(u32, delivered_ce)
CC_READ_(u32, lost)
CC_READ_(u32, app_limited)
CC_READ_(u32, srtt_us)
CC_READ_(u32, min_rtt_us)
CC_READ_(u32, mss_cache)
CC_READ_(u32, snd_una)
CC_READ_(u32, snd_nxt)
CC_READ_AS_(u8, cwnd_limited_flag, is_cwnd_limited)
CC_READ_(u8, ca_state)
CC_READ_(u32, pacing_status)
CC_READ_(u8, ecn_flags)
CC_READ_(u64, pacing_rate)
CC_READ_AS_(u64, now_us, tcp_mstamp_us)
CC_READ_(u64, delivered_mstamp_us)
CC_READ_(u64, first_tx_mstamp_us)
CC_READ_(u64, next_send_us)

CC_WRITE_(u32, snd_cwnd_cnt)
CC_WRITE_(u32, snd_ssthresh)
CC_WRITE_(u64, pacing_rate)
CC_WRITE_(u8, ecn_flags)
CC_WRITE_(u32, app_limited)

/* A window of 0 would stop the flow for good: the kernel warns of it, here it is 1. */
static inline void cc_set_snd_cwnd(struct cc_sock *sk, u32 cwnd)
{
	sk->snd_cwnd = cwnd ? cwnd : 1;
}

static inline void cc_set_pacing_status(struct cc_sock *sk, u32 status)
{
	sk->pacing_status = (u8)status;
}

static inline u64 cc_idle_us(const struct cc_sock *sk)
{
	return sk->tcp_mstamp_us > sk->lsndtime_us ? sk->tcp_mstamp_us - sk->lsndtime_us : 0;
}

/* Without segmentation offload every segment is a packet of its own. */
static inline u32 cc_gso_max_bytes(const struct cc_sock *sk)
{
	return sk->gso_max_bytes ? sk->gso_max_bytes : sk->mss_cache;
}

#define CC_READ_SAMPLE_(type, field)                                                                             \
	static inline type cc_sample_##field(const struct cc_ack_sample *sample)                                \
	{                                                                                                       \
		return sample->field;                                                                           \
	}
CC_READ_SAMPLE_(u32, pkts_acked)
CC_READ_SAMPLE_(s32, rtt_us)
CC_READ_SAMPLE_(u32, in_flight)

#define CC_READ_RATE_(type, field)                                                                               \
	static inline type cc_rs_##field(const struct cc_rate_sample *rs)                                       \
	{                                                                                                       \
		return rs->field;                                                                               \
	}
CC_READ_RATE_(u64, prior_mstamp_us)
CC_READ_RATE_(u32, prior_delivered)
CC_READ_RATE_(u32, prior_delivered_ce)
CC_READ_RATE_(s32, delivered)
CC_READ_RATE_(s32, delivered_ce)
CC_READ_RATE_(s64, interval_us)
CC_READ_RATE_(u32, snd_interval_us)
CC_READ_RATE_(u32, rcv_interval_us)
CC_READ_RATE_(s64, rtt_us)
CC_READ_RATE_(s32, losses)
CC_READ_RATE_(u32, acked_sacked)
CC_READ_RATE_(u32, prior_in_flight)
CC_READ_RATE_(u32, last_end_seq)
CC_READ_RATE_(u8, is_app_limited)
CC_READ_RATE_(u8, is_retrans)
CC_READ_RATE_(u8, is_ack_delayed)

#define CC_PARAM_INDEX_(name, initial, min, max, scale, unit, doc) cc_param_index_##name,
#define CC_PARAM_ENTRY_(name, initial, min, max, scale, unit, doc) { #name, unit, doc, initial, min, max, scale },
#define CC_PARAM_CHECK_(name, initial, min, max, scale, unit, doc)                                               \
	_Static_assert((((min) <= (initial) && (initial) <= (max)) || CC_IS_BY_VARIANT_(initial, min)) &&        \
			       (scale) >= 1,                                                                    \
		       "parameter " #name ": min <= default <= max, scale >= 1");
#define CC_PARAMS(...)                                                                                           \
	enum { CC_EACH(CC_PARAM_INDEX_, __VA_ARGS__) cc_params_count };                                         \
	_Static_assert(cc_params_count <= CC_MAX_PARAMS, "at most 16 parameters");                              \
	CC_EACH(CC_PARAM_CHECK_, __VA_ARGS__)                                                                   \
	static const struct cc_param cc_params[] = { CC_EACH(CC_PARAM_ENTRY_, __VA_ARGS__) }
#define CC_NO_PARAMS                                                                                             \
	enum { cc_params_count = 0 };                                                                           \
	static const struct cc_param *const cc_params = 0
#define cc_param(sk, name) ((sk)->params[cc_param_index_##name])

#define CC_STATE(type)                                                                                           \
	_Static_assert(sizeof(type) <= CC_PRIVATE_BYTES, "state of a flow: at most 104 bytes");                 \
	_Static_assert(_Alignof(type) <= 8, "state of a flow: alignment of at most 8");                         \
	static inline type *cc_state(struct cc_sock *sk)                                                        \
	{                                                                                                       \
		return (type *)sk->private;                                                                     \
	}                                                                                                       \
	_Static_assert(1, "")

/* A file of the user's exports `cc_algorithm`; the built-in ones, linked together, each a name of their own. */
#ifndef CC_SYMBOL
#define CC_SYMBOL cc_algorithm
#endif

#define CC_HOOK_ENTRY_(hook, value) .hook = value,
#define CC_ALGORITHM(name_, summary_, source_, ...)                                                              \
	__attribute__((visibility("default"))) extern const struct cc_algorithm CC_SYMBOL;                      \
	const struct cc_algorithm CC_SYMBOL = {                                                                 \
		.abi_version = CC_ABI_VERSION,                                                                  \
		.sock_bytes = sizeof(struct cc_sock),                                                           \
		.name = #name_,                                                                                 \
		.summary = summary_,                                                                            \
		.source = source_,                                                                              \
		.params = cc_params,                                                                            \
		.params_count = cc_params_count,                                                                \
		CC_EACH(CC_HOOK_ENTRY_, __VA_ARGS__)                                                            \
	}

#endif
