/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * cc.h in the Linux kernel: the sender is struct tcp_sock, an algorithm a struct_ops of tcp_congestion_ops.
 *
 * The structures below name only the fields that are used. `preserve_access_index` makes the compiler record each
 * access by type and name, and the loader puts in the offsets of the running kernel from its BTF (CO-RE): one object
 * for every kernel, and no kernel header here. Compile with
 *	clang -target bpf -mcpu=v3 -g -O2 -nostdinc -I<this folder's parent> -c file.c
 * Needs a kernel with BTF and tcp_congestion_ops as struct_ops (Linux 5.6), for cong_control Linux 6.10, where its
 * arguments changed. Tried on 6.18 and 6.1. With -DCC_BEFORE_LINUX_6_4 cong_control takes what it took before 6.10, and
 * app_limited is not written, which Linux allows from 6.4 on.
 */
#ifndef ELEPHAN_CC_BPF_ENV_H
#define ELEPHAN_CC_BPF_ENV_H

#include "../definitions.h"

#define CC_SECTION(name) __attribute__((section(name), used))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	u32 sk_pacing_status;
	unsigned int sk_gso_max_size;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[CC_PRIVATE_BYTES / 8];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
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
	struct minmax rtt_min;
	u32 mss_cache;
	u32 snd_una;
	u32 snd_nxt;
	u32 lsndtime;
	u8 is_cwnd_limited : 1;
	u8 ecn_flags;
	u64 tcp_mstamp;
	u64 delivered_mstamp;
	u64 first_tx_mstamp;
	u64 tcp_wstamp_ns;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	u32 prior_delivered_ce;
	s32 delivered;
	s32 delivered_ce;
	long interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	_Bool is_app_limited;
	_Bool is_retrans;
	_Bool is_ack_delayed;
};

#pragma clang attribute pop

/* The programs behind the hooks take their arguments as an array of u64. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(u64 *args);
	void (*cong_avoid)(u64 *args);
	void (*set_state)(u64 *args);
	void (*cwnd_event)(u64 *args);
	void (*in_ack_event)(u64 *args);
	void (*pkts_acked)(u64 *args);
	u32 (*min_tso_segs)(u64 *args);
	void (*cong_control)(u64 *args);
	u32 (*undo_cwnd)(u64 *args);
	char name[16];
	u32 flags;
	void (*init)(u64 *args);
	void (*release)(u64 *args);
};

#define cc_sock tcp_sock
#define cc_ack_sample ack_sample
#define cc_rate_sample rate_sample

/*
 * A bit-field: its place within the byte differs between kernels, so that shifts are relocated too. Values of the
 * second argument as in LLVM's BPFCoreSharedInfo.h: 0 byte offset, 1 byte size, 4 left shift, 5 right shift.
 * All of ours are u8, and lie in one byte.
 */
#define CC_READ_BITS_(pointer, field)                                                                            \
	((u8)(((u64) * ((const u8 *)(pointer) + __builtin_preserve_field_info((pointer)->field, 0))             \
	       << __builtin_preserve_field_info((pointer)->field, 4)) >>                                        \
	      __builtin_preserve_field_info((pointer)->field, 5)))

#define CC_READ_AS_(type, accessor, field)                                                                       \
	static inline type cc_##accessor(const struct tcp_sock *sk)                                             \
	{                                                                                                       \
		return sk->field;                                                                               \
	}
#define CC_READ_(type, field) CC_READ_AS_(type, field, field)
#define CC_WRITE_AS_(type, accessor, field)                                                                      \
	static inline void cc_set_##accessor(struct tcp_sock *sk, type value)                                   \
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
CC_READ_AS_(u32, min_rtt_us, rtt_min.s[0].v)
CC_READ_(u32, mss_cache)
CC_READ_(u32, snd_una)
CC_READ_(u32, snd_nxt)
CC_READ_(u8, ecn_flags)
CC_READ_AS_(u32, pacing_status, inet_conn.icsk_inet.sk.sk_pacing_status)
CC_READ_AS_(u64, pacing_rate, inet_conn.icsk_inet.sk.sk_pacing_rate)
CC_READ_AS_(u32, gso_max_bytes, inet_conn.icsk_inet.sk.sk_gso_max_size)
CC_READ_AS_(u64, now_us, tcp_mstamp)
CC_READ_AS_(u64, delivered_mstamp_us, delivered_mstamp)
CC_READ_AS_(u64, first_tx_mstamp_us, first_tx_mstamp)

CC_WRITE_AS_(u32, snd_cwnd_cnt, snd_cwnd_cnt)
CC_WRITE_AS_(u32, snd_ssthresh, snd_ssthresh)
CC_WRITE_AS_(u64, pacing_rate, inet_conn.icsk_inet.sk.sk_pacing_rate)
CC_WRITE_AS_(u32, pacing_status, inet_conn.icsk_inet.sk.sk_pacing_status)
CC_WRITE_AS_(u8, ecn_flags, ecn_flags)
#ifdef CC_BEFORE_LINUX_6_4
/* Not to be written there. */
static inline void cc_set_app_limited(struct tcp_sock *sk, u32 value)
{
	(void)sk, (void)value;
}
#else
CC_WRITE_AS_(u32, app_limited, app_limited)
#endif

static inline u64 cc_next_send_us(const struct tcp_sock *sk)
{
	return sk->tcp_wstamp_ns / 1000;
}

static inline u8 cc_cwnd_limited_flag(const struct tcp_sock *sk)
{
	return CC_READ_BITS_(sk, is_cwnd_limited);
}

static inline u8 cc_ca_state(const struct tcp_sock *sk)
{
	return CC_READ_BITS_(&sk->inet_conn, icsk_ca_state);
}

static inline void cc_set_snd_cwnd(struct tcp_sock *sk, u32 cwnd)
{
	sk->snd_cwnd = cwnd ? cwnd : 1;
}

/* Ticks of the kernel's clock per second; the loader fills it in from the kernel's configuration, 0 where it is not to
 * be had. */
extern unsigned int CONFIG_HZ __attribute__((section(".kconfig"), weak));

/*
 * lsndtime is the one time that tcp_sock keeps in ticks. Where their length is unknown the answer is 0: an idle
 * period then counts as if it had not been one, which is what RFC 5681 says of it anyway.
 */
static inline u64 cc_idle_us(const struct tcp_sock *sk)
{
	u64 (*const jiffies64)(void) = (u64(*)(void))118; /* bpf_jiffies64 */
	unsigned int hz = CONFIG_HZ;
	s32 ticks;

	if (!hz)
		return 0;
	ticks = (s32)((u32)jiffies64() - sk->lsndtime);
	return ticks > 0 ? (u64)(u32)ticks * (1000000 / hz) : 0;
}

#define CC_READ_SAMPLE_(type, field)                                                                             \
	static inline type cc_sample_##field(const struct ack_sample *sample)                                   \
	{                                                                                                       \
		return sample->field;                                                                           \
	}
CC_READ_SAMPLE_(u32, pkts_acked)
CC_READ_SAMPLE_(s32, rtt_us)
CC_READ_SAMPLE_(u32, in_flight)

#define CC_READ_RATE_AS_(type, accessor, field)                                                                  \
	static inline type cc_rs_##accessor(const struct rate_sample *rs)                                       \
	{                                                                                                       \
		return rs->field;                                                                               \
	}
#define CC_READ_RATE_(type, field) CC_READ_RATE_AS_(type, field, field)
CC_READ_RATE_AS_(u64, prior_mstamp_us, prior_mstamp)
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

/*
 * A parameter is a constant of the object, `cc_param_<name>`, that a loader may set before the kernel checks the
 * programs. Its declaration travels with it as a BTF tag, so that an object alone tells what may be set.
 */
#define CC_PARAM_GLOBAL_(name, initial, min, max, scale, unit, doc)                                              \
	_Static_assert((((min) <= (initial) && (initial) <= (max)) || CC_IS_BY_VARIANT_(initial, min)) &&        \
			       (scale) >= 1,                                                                    \
		       "parameter " #name ": min <= default <= max, scale >= 1");                               \
	const volatile s64 cc_param_##name                                                                      \
		__attribute__((btf_decl_tag("elephan:param unit=" unit ";default=" CC_TEXT(initial) ";min="     \
					    CC_TEXT(min) ";max=" CC_TEXT(max) ";scale=" CC_TEXT(scale) ";doc="  \
					    doc))) = (initial);
#define CC_PARAMS(...)                                                                                           \
	CC_EACH(CC_PARAM_GLOBAL_, __VA_ARGS__)                                                                  \
	_Static_assert(1, "")
#define CC_NO_PARAMS _Static_assert(1, "")
#define cc_param(sk, name) ((void)(sk), cc_param_##name)

#define CC_STATE(type)                                                                                           \
	_Static_assert(sizeof(type) <= CC_PRIVATE_BYTES, "state of a flow: at most 104 bytes");                 \
	_Static_assert(_Alignof(type) <= 8, "state of a flow: alignment of at most 8");                         \
	static inline type *cc_state(struct tcp_sock *sk)                                                       \
	{                                                                                                       \
		return (type *)sk->inet_conn.icsk_ca_priv;                                                      \
	}                                                                                                       \
	_Static_assert(1, "")

#define CC_ARG_SOCK_ ((struct tcp_sock *)args[0])
#define CC_HOOK_ CC_SECTION("struct_ops")

/*
 * Linux has the ACK of a handshake processed (tcp_ack) before it calls `init` (tcp_init_transfer): pkts_acked,
 * cong_control and others are called on a state that nobody has prepared. What they leave is not what `init` promises.
 */
static inline void cc_forget_(struct tcp_sock *sk)
{
	for (int i = 0; i < CC_PRIVATE_BYTES / 8; i++)
		sk->inet_conn.icsk_ca_priv[i] = 0;
}

/* Wraps each hook in a build that records; does nothing in any other. */
#ifdef CC_RECORD
#include "record.h"
#define CC_LISTEN_(acked)
#define CC_HAS_THRESHOLD_(fn)
#else
#include "cwnd_reduction.h"
#define CC_LISTEN_(acked)                                                                                        \
	if (cc_listens)                                                                                         \
	cc_listen_(CC_ARG_SOCK_, acked)
#define CC_HAS_THRESHOLD_(fn)                                                                                    \
	static inline u32 cc_threshold_(struct tcp_sock *sk)                                                    \
	{                                                                                                       \
		return fn(sk);                                                                                  \
	}
#define CC_BEFORE_(hook, first, second)
#define CC_BEFORE_ACK_(hook)
#define CC_BEFORE_RATE_(hook)
#define CC_AFTER_(hook, result)
#endif

#define CC_WRAP_CALL_(name, HOOK, before, call)                                                                  \
	CC_HOOK_ void hook_##name(u64 *args)                                                                    \
	{                                                                                                       \
		before;                                                                                         \
		call;                                                                                           \
		CC_AFTER_(HOOK, 0);                                                                             \
	}
#define CC_WRAP_GET_(name, HOOK, fn)                                                                             \
	CC_HOOK_ u32 hook_##name(u64 *args)                                                                     \
	{                                                                                                       \
		u32 result;                                                                                     \
                                                                                                                 \
		CC_BEFORE_(HOOK, 0, 0);                                                                         \
		result = fn(CC_ARG_SOCK_);                                                                      \
		CC_AFTER_(HOOK, result);                                                                        \
		return result;                                                                                  \
	}
#define CC_WRAP_init(fn)                                                                                         \
	CC_WRAP_CALL_(init, CC_HOOK_INIT, CC_BEFORE_(CC_HOOK_INIT, 0, 0), cc_forget_(CC_ARG_SOCK_);             \
		      fn(CC_ARG_SOCK_))
#define CC_WRAP_release(fn)                                                                                      \
	CC_WRAP_CALL_(release, CC_HOOK_RELEASE, CC_BEFORE_(CC_HOOK_RELEASE, 0, 0), fn(CC_ARG_SOCK_))
#define CC_WRAP_ssthresh(fn) CC_HAS_THRESHOLD_(fn) CC_WRAP_GET_(ssthresh, CC_HOOK_SSTHRESH, fn)
#define CC_WRAP_undo_cwnd(fn) CC_WRAP_GET_(undo_cwnd, CC_HOOK_UNDO_CWND, fn)
#define CC_WRAP_min_tso_segs(fn) CC_WRAP_GET_(min_tso_segs, CC_HOOK_MIN_TSO_SEGS, fn)
#define CC_WRAP_cong_avoid(fn)                                                                                   \
	CC_WRAP_CALL_(cong_avoid, CC_HOOK_CONG_AVOID, CC_BEFORE_(CC_HOOK_CONG_AVOID, args[1], args[2]),         \
		      CC_LISTEN_((u32)args[2]);                                                                 \
		      fn(CC_ARG_SOCK_, (u32)args[1], (u32)args[2]))
#define CC_WRAP_set_state(fn)                                                                                    \
	CC_WRAP_CALL_(set_state, CC_HOOK_SET_STATE, CC_BEFORE_(CC_HOOK_SET_STATE, args[1], 0),                  \
		      fn(CC_ARG_SOCK_, (u8)args[1]))
#define CC_WRAP_cwnd_event(fn)                                                                                   \
	CC_WRAP_CALL_(cwnd_event, CC_HOOK_CWND_EVENT, CC_BEFORE_(CC_HOOK_CWND_EVENT, args[1], 0),               \
		      fn(CC_ARG_SOCK_, (u32)args[1]))
#define CC_WRAP_in_ack_event(fn)                                                                                 \
	CC_WRAP_CALL_(in_ack_event, CC_HOOK_IN_ACK_EVENT, CC_BEFORE_(CC_HOOK_IN_ACK_EVENT, args[1], 0),         \
		      fn(CC_ARG_SOCK_, (u32)args[1]))
#define CC_WRAP_pkts_acked(fn)                                                                                   \
	CC_WRAP_CALL_(pkts_acked, CC_HOOK_PKTS_ACKED, CC_BEFORE_ACK_(CC_HOOK_PKTS_ACKED),                       \
		      fn(CC_ARG_SOCK_, (const struct ack_sample *)args[1]))
#ifdef CC_BEFORE_LINUX_6_4
#define CC_WRAP_cong_control(fn)                                                                                 \
	CC_WRAP_CALL_(cong_control, CC_HOOK_CONG_CONTROL, CC_BEFORE_(CC_HOOK_CONG_CONTROL, 0, 0),               \
		      fn(CC_ARG_SOCK_, CC_ARG_SOCK_->snd_una, 0, (const struct rate_sample *)args[1]))
#else
#define CC_WRAP_cong_control(fn)                                                                                 \
	CC_WRAP_CALL_(cong_control, CC_HOOK_CONG_CONTROL, CC_BEFORE_RATE_(CC_HOOK_CONG_CONTROL),                \
		      fn(CC_ARG_SOCK_, (u32)args[1], (int)args[2], (const struct rate_sample *)args[3]))
#endif
#define CC_WRAP_flags(value)
#define CC_WRAP_(hook, fn) CC_WRAP_##hook(fn)

#define CC_ENTRY_(hook, value) .hook = CC_VALUE_##hook(value),
#define CC_VALUE_init(fn) hook_init
#define CC_VALUE_release(fn) hook_release
#define CC_VALUE_ssthresh(fn) hook_ssthresh
#define CC_VALUE_undo_cwnd(fn) hook_undo_cwnd
#define CC_VALUE_min_tso_segs(fn) hook_min_tso_segs
#define CC_VALUE_cong_avoid(fn) hook_cong_avoid
#define CC_VALUE_set_state(fn) hook_set_state
#define CC_VALUE_cwnd_event(fn) hook_cwnd_event
#define CC_VALUE_in_ack_event(fn) hook_in_ack_event
#define CC_VALUE_pkts_acked(fn) hook_pkts_acked
#define CC_VALUE_cong_control(fn) hook_cong_control
#define CC_VALUE_flags(value) value

/* The kernel's name of the algorithm, at most 15 characters (TCP_CA_NAME_MAX): `elephan_` and 7 of the name, or what
 * -DCC_BPF_NAME='"..."' says. The kernel refuses a second algorithm of one name. */
#ifndef CC_BPF_NAME
#define CC_KERNEL_NAME_(name) "elephan_" name
#else
#define CC_KERNEL_NAME_(name) CC_BPF_NAME
#endif
#define CC_CHAR_(text, i) (text)[(i) < sizeof(text) ? (i) : sizeof(text) - 1]
#define CC_NAME_CHARS_(t)                                                                                        \
	{                                                                                                       \
		CC_CHAR_(t, 0), CC_CHAR_(t, 1), CC_CHAR_(t, 2), CC_CHAR_(t, 3), CC_CHAR_(t, 4), CC_CHAR_(t, 5), \
		CC_CHAR_(t, 6), CC_CHAR_(t, 7), CC_CHAR_(t, 8), CC_CHAR_(t, 9), CC_CHAR_(t, 10),                \
		CC_CHAR_(t, 11), CC_CHAR_(t, 12), CC_CHAR_(t, 13), CC_CHAR_(t, 14), 0                           \
	}

/* The object's licence as the kernel is told it; a file of another GPL-compatible one defines it before cc.h. */
#ifndef CC_LICENSE
#define CC_LICENSE "Dual MIT/GPL"
#endif

/* Its name for people: the algorithm, or what a loader puts there before the kernel has it ("reno=mine"). It lies
 * beside the parameters, so that a list of what is loaded can say what it is. */
#define CC_LABEL_BYTES 64

#define CC_ALGORITHM(name_, summary_, source_, ...)                                                              \
	char cc_license[] CC_SECTION("license") = CC_LICENSE;                                                   \
	const volatile char cc_label[CC_LABEL_BYTES] = #name_;                                                  \
	CC_EACH(CC_WRAP_, __VA_ARGS__)                                                                          \
	struct tcp_congestion_ops cc_algorithm CC_SECTION(".struct_ops") = {                                    \
		CC_EACH(CC_ENTRY_, __VA_ARGS__).name = CC_NAME_CHARS_(CC_KERNEL_NAME_(#name_)),                 \
	}

#endif
