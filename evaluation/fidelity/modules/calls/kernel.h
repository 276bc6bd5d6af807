/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * As much of Linux's interface as its congestion control modules need to run in a program: names and types, no code of
 * Linux's. Its own functions that the modules call (tcp_slow_start and others) are taken from its source when this is
 * built (source.py). Included before a module; the headers that the module names are empty files.
 */
#ifndef ELEPHAN_MODULES_KERNEL_H
#define ELEPHAN_MODULES_KERNEL_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "native/sock.h"

typedef u32 __u32;
typedef _Bool bool;
#define true 1
#define false 0

/* The machine's clock: Debian's configuration. */
#define HZ 250
extern unsigned long jiffies;
#define tcp_jiffies32 ((u32)jiffies)
#define USEC_PER_SEC 1000000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_USEC 1000L

static inline unsigned long usecs_to_jiffies(u32 us)
{
	return (us + 1000000 / HZ - 1) / (1000000 / HZ);
}

static inline unsigned long msecs_to_jiffies(u32 ms)
{
	return usecs_to_jiffies(ms * 1000);
}

static inline u32 jiffies_to_usecs(unsigned long ticks)
{
	return (u32)(ticks * (1000000 / HZ));
}

#define U32_MAX 0xffffffffu
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp(value, low, high) min(max(value, low), high)
#define do_div(n, base) ((n) /= (base))
#define div64_u64(a, b) ((a) / (b))
#define div64_ul(a, b) ((a) / (b))
#define div64_long(a, b) ((s64)(a) / (b))
#define div_u64(a, b) ((a) / (u32)(b))
#define fls64(x) ((x) ? 64 - __builtin_clzll(x) : 0)
#define READ_ONCE(x) (x)
#define likely(x) (x)
#define unlikely(x) (x)
#define cmpxchg(place, old, new) (*(place) == (old) ? (void)(*(place) = (new)) : (void)0)
#define WARN_ONCE(condition, ...)
#define WARN_ON_ONCE(condition) (condition)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define pr_debug(...)
#define NET_INC_STATS(net, what)
#define NET_ADD_STATS(net, what, by)
#define __read_mostly
#define __init
#define __exit
#define EXPORT_SYMBOL(name)
#define EXPORT_SYMBOL_GPL(name)
#define THIS_MODULE 0
#define module_param(name, type, mode)
#define MODULE_PARM_DESC(name, text)
#define MODULE_AUTHOR(text)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_VERSION(text)
#define BTF_SET8_START(name) static const char name[1];
#define BTF_SET8_END(name)
#define BTF_ID_FLAGS(kind, name)
struct btf_kfunc_id_set {
	void *owner;
	const void *set;
};
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)
#define module_init(fn)                                                                                          \
	int linux_register(void)                                                                                \
	{                                                                                                       \
		return fn();                                                                                    \
	}
#define module_exit(fn)                                                                                          \
	void linux_unregister(void)                                                                             \
	{                                                                                                       \
		fn();                                                                                           \
	}

#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define ICSK_CA_PRIV_SIZE CC_PRIVATE_BYTES
#define TCP_CA_NAME_MAX 16
#define TCP_CONG_NON_RESTRICTED 1
#define GSO_LEGACY_MAX_SIZE 65536u
#define MAX_TCP_HEADER 320
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
#define TCPF_CA_CWR (1 << TCP_CA_CWR)
#define TCPF_CA_Recovery (1 << TCP_CA_Recovery)
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};
#define CA_ACK_SLOWPATH 1

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u32 sk_gso_max_size;
	u8 sk_pacing_shift;
};

struct inet_connection_sock {
	struct sock sk;
	u8 icsk_ca_state;
	u64 icsk_ca_priv[CC_PRIVATE_BYTES / 8];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd, snd_ssthresh, snd_cwnd_cnt, snd_cwnd_clamp, prior_cwnd, packets_out, sacked_out, lost_out,
		retrans_out, max_packets_out, delivered, delivered_ce, lost, app_limited, srtt_us, rtt_min_us, mss_cache,
		snd_una, snd_nxt, lsndtime;
	bool is_cwnd_limited;
	u64 tcp_mstamp, tcp_clock_cache, delivered_mstamp, first_tx_mstamp, tcp_wstamp_ns;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered, prior_delivered_ce;
	s32 delivered, delivered_ce;
	long interval_us;
	u32 snd_interval_us, rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked, prior_in_flight, last_end_seq;
	bool is_app_limited, is_retrans, is_ack_delayed;
};

/* What a module tells `ss`; nobody asks here. */
union tcp_cc_info {
	struct tcpvegas_info {
		u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
	} vegas;
	struct tcp_bbr_info {
		u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	} bbr;
};
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_BBRINFO = 16 };

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
	char name[TCP_CA_NAME_MAX];
	void *owner;
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

extern struct tcp_congestion_ops *linux_ops;
#define tcp_register_congestion_control(ops) (linux_ops = (ops), 0)
#define tcp_unregister_congestion_control(ops) ((void)(ops))

#define tcp_sk(sk) ((struct tcp_sock *)(sk))
#define inet_csk(sk) ((struct inet_connection_sock *)(sk))
#define inet_csk_ca(sk) ((void *)inet_csk(sk)->icsk_ca_priv)
#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#define tcp_snd_cwnd_set(tp, value) ((void)((tp)->snd_cwnd = (value)))
#define tcp_in_slow_start(tp) ((tp)->snd_cwnd < (tp)->snd_ssthresh)
#define tcp_packets_in_flight(tp) ((tp)->packets_out - (tp)->sacked_out - (tp)->lost_out + (tp)->retrans_out)
#define tcp_in_cwnd_reduction(sk)                                                                                \
	((TCPF_CA_CWR | TCPF_CA_Recovery) & (1 << inet_csk(sk)->icsk_ca_state))
#define tcp_min_rtt(tp) ((tp)->rtt_min_us)
#define tcp_stamp_us_delta(later, earlier) ((u32)max_t(s64, (s64)((later) - (earlier)), 0))

static inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}
#define after(a, b) before(b, a)
#define between(x, low, high) ((high) - (low) >= (x) - (low))

/* Not by chance here: the number that congestion/bbr.c makes of its connection, so that both begin at one phase. */
extern struct tcp_sock *linux_sock;
static inline u32 prandom_u32_max(u32 end)
{
	u64 mix = (linux_sock->tcp_mstamp << 32 | linux_sock->snd_nxt) + linux_sock->delivered;

	mix *= 0x9e3779b97f4a7c15;
	return (u32)(((mix >> 32) * end) >> 32);
}

struct minmax_sample {
	u32 t, v;
};
struct minmax {
	struct minmax_sample s[3];
};
#define minmax_get(m) ((m)->s[0].v)
static inline u32 minmax_reset(struct minmax *m, u32 t, u32 v)
{
	m->s[0] = m->s[1] = m->s[2] = (struct minmax_sample){ t, v };
	return v;
}
u32 minmax_running_max(struct minmax *m, u32 win, u32 t, u32 meas);
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
bool tcp_is_cwnd_limited(const struct sock *sk);
u32 tcp_current_ssthresh(const struct sock *sk);

#endif
