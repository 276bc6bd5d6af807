/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Definitions that cc.h and both its environments share: integer types, Linux's numbers, macros over tuples.
 * An algorithm gets them through cc.h.
 */
#ifndef ELEPHAN_CC_DEFINITIONS_H
#define ELEPHAN_CC_DEFINITIONS_H

/* Raised when a descriptor or a shared structure changes: a file compiled against another version is refused. */
#define CC_ABI_VERSION 3u

/* State of an algorithm per flow: Linux's ICSK_CA_PRIV_SIZE, 13 u64. */
#define CC_PRIVATE_BYTES 104

/* Most parameters of one algorithm. */
#define CC_MAX_PARAMS 16

/* Default of a parameter whose value is its variant's until the user gives one; below the least of every such one. */
#define CC_BY_VARIANT -1
#define CC_IS_BY_VARIANT_(initial, min) ((initial) == CC_BY_VARIANT && CC_BY_VARIANT < (min))

/* Threshold before the first loss (Linux's TCP_INFINITE_SSTHRESH). */
#define CC_INFINITE_SSTHRESH 0x7fffffffu

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __INT32_TYPE__ s32;
#ifdef __bpf__
typedef unsigned long long u64;
typedef long long s64;
#else
typedef __UINT64_TYPE__ u64;
typedef __INT64_TYPE__ s64;
#endif

/* Loss recovery as `set_state` and cc_ca_state() give it (enum tcp_ca_state). */
enum {
	CC_OPEN = 0,		/* nothing suspicious */
	CC_DISORDER = 1,	/* duplicate ACKs or SACKs, nothing judged lost */
	CC_CWR = 2,		/* reducing after ECN-Echo */
	CC_RECOVERY = 3,	/* fast recovery */
	CC_LOSS = 4,		/* after a time-out */
};

/* Events of `cwnd_event` (enum tcp_ca_event). */
enum {
	CC_EVENT_TX_START = 0,		/* first transmission with nothing in flight */
	CC_EVENT_CWND_RESTART = 1,	/* window restarted after idle (RFC 5681, 4.1) */
	CC_EVENT_COMPLETE_CWR = 2,	/* end of a reduction */
	CC_EVENT_LOSS = 3,		/* time-out */
	CC_EVENT_ECN_NO_CE = 4,		/* data came in without a congestion mark */
	CC_EVENT_ECN_IS_CE = 5,		/* data came in with one */
};

/* Flags of `in_ack_event` (enum tcp_ca_ack_event_flags). */
enum {
	CC_ACK_SLOWPATH = 1,	/* not the expected next ACK */
	CC_ACK_WIN_UPDATE = 2,	/* moved the window */
	CC_ACK_ECE = 4,		/* carried ECN-Echo */
};

/* Values of `flags` in CC_ALGORITHM (Linux's TCP_CONG_NEEDS_ECN). */
#define CC_NEEDS_ECN 2u

/*
 * CC_EACH(M, (a, ...), (b, ...), ...) is M(a, ...) M(b, ...) ..., for 1 to 16 tuples.
 */
#define CC_EACH_1(M, t) M t
#define CC_EACH_2(M, t, ...) M t CC_EACH_1(M, __VA_ARGS__)
#define CC_EACH_3(M, t, ...) M t CC_EACH_2(M, __VA_ARGS__)
#define CC_EACH_4(M, t, ...) M t CC_EACH_3(M, __VA_ARGS__)
#define CC_EACH_5(M, t, ...) M t CC_EACH_4(M, __VA_ARGS__)
#define CC_EACH_6(M, t, ...) M t CC_EACH_5(M, __VA_ARGS__)
#define CC_EACH_7(M, t, ...) M t CC_EACH_6(M, __VA_ARGS__)
#define CC_EACH_8(M, t, ...) M t CC_EACH_7(M, __VA_ARGS__)
#define CC_EACH_9(M, t, ...) M t CC_EACH_8(M, __VA_ARGS__)
#define CC_EACH_10(M, t, ...) M t CC_EACH_9(M, __VA_ARGS__)
#define CC_EACH_11(M, t, ...) M t CC_EACH_10(M, __VA_ARGS__)
#define CC_EACH_12(M, t, ...) M t CC_EACH_11(M, __VA_ARGS__)
#define CC_EACH_13(M, t, ...) M t CC_EACH_12(M, __VA_ARGS__)
#define CC_EACH_14(M, t, ...) M t CC_EACH_13(M, __VA_ARGS__)
#define CC_EACH_15(M, t, ...) M t CC_EACH_14(M, __VA_ARGS__)
#define CC_EACH_16(M, t, ...) M t CC_EACH_15(M, __VA_ARGS__)
#define CC_PICK_17TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, x, ...) x
#define CC_EACH(M, ...)                                                                                         \
	CC_PICK_17TH(__VA_ARGS__, CC_EACH_16, CC_EACH_15, CC_EACH_14, CC_EACH_13, CC_EACH_12, CC_EACH_11,       \
		     CC_EACH_10, CC_EACH_9, CC_EACH_8, CC_EACH_7, CC_EACH_6, CC_EACH_5, CC_EACH_4, CC_EACH_3,   \
		     CC_EACH_2, CC_EACH_1, )(M, __VA_ARGS__)

#define CC_TEXT_(x) #x
#define CC_TEXT(x) CC_TEXT_(x)

#endif
