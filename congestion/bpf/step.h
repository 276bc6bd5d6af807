/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * With -DCC_STEP: an algorithm compiled for BPF over a sender that is plain memory, one hook at a time.
 *
 * The kernel lets nobody set a socket to any state at all; here the sender is `cc_step` in a map that the caller
 * writes, then runs the program of one hook (BPF_PROG_RUN of type syscall), then reads. So the instructions that clang
 * makes of an algorithm, and what the kernel makes of those, meet values that no connection reaches. The accessors are
 * those of native/env.h; those of bpf/env.h are compared by recording (record.h).
 */
#ifndef ELEPHAN_CC_BPF_STEP_H
#define ELEPHAN_CC_BPF_STEP_H

#include "../native/env.h"

#define CC_SECTION(name) __attribute__((section(name), used))

#ifndef CC_LICENSE
#define CC_LICENSE "Dual MIT/GPL"
#endif

/* The call to make: what it is given and, afterwards, what it left. */
struct cc_hook_call cc_step;

/* Values come with the sender, so that a description has no use here. */
#undef CC_PARAMS
#define CC_PARAMS(...)                                                                                           \
	enum { CC_EACH(CC_PARAM_INDEX_, __VA_ARGS__) cc_params_count };                                         \
	CC_EACH(CC_PARAM_CHECK_, __VA_ARGS__)                                                                   \
	_Static_assert(cc_params_count <= CC_MAX_PARAMS, "at most 16 parameters")
#undef CC_NO_PARAMS
#define CC_NO_PARAMS _Static_assert(1, "")

#define CC_STEP_(name, call)                                                                                     \
	CC_SECTION("syscall") int step_##name(void *context)                                                    \
	{                                                                                                       \
		(void)context;                                                                                  \
		call;                                                                                           \
		return 0;                                                                                       \
	}
#define CC_STEP_SOCK_ (&cc_step.sock)
#define CC_STEP_init(fn) CC_STEP_(init, fn(CC_STEP_SOCK_))
#define CC_STEP_release(fn) CC_STEP_(release, fn(CC_STEP_SOCK_))
#define CC_STEP_ssthresh(fn) CC_STEP_(ssthresh, cc_step.result = fn(CC_STEP_SOCK_))
#define CC_STEP_undo_cwnd(fn) CC_STEP_(undo_cwnd, cc_step.result = fn(CC_STEP_SOCK_))
#define CC_STEP_min_tso_segs(fn) CC_STEP_(min_tso_segs, cc_step.result = fn(CC_STEP_SOCK_))
#define CC_STEP_cong_avoid(fn) CC_STEP_(cong_avoid, fn(CC_STEP_SOCK_, cc_step.args[0], cc_step.args[1]))
#define CC_STEP_set_state(fn) CC_STEP_(set_state, fn(CC_STEP_SOCK_, (u8)cc_step.args[0]))
#define CC_STEP_cwnd_event(fn) CC_STEP_(cwnd_event, fn(CC_STEP_SOCK_, cc_step.args[0]))
#define CC_STEP_in_ack_event(fn) CC_STEP_(in_ack_event, fn(CC_STEP_SOCK_, cc_step.args[0]))
#define CC_STEP_pkts_acked(fn) CC_STEP_(pkts_acked, fn(CC_STEP_SOCK_, &cc_step.ack))
#define CC_STEP_cong_control(fn)                                                                                 \
	CC_STEP_(cong_control, fn(CC_STEP_SOCK_, cc_step.args[0], (int)cc_step.args[1], &cc_step.rate))
#define CC_STEP_flags(value)
#define CC_STEP_HOOK_(hook, fn) CC_STEP_##hook(fn)

#undef CC_ALGORITHM
#define CC_ALGORITHM(name_, summary_, source_, ...)                                                              \
	char cc_license[] CC_SECTION("license") = CC_LICENSE;                                                   \
	CC_EACH(CC_STEP_HOOK_, __VA_ARGS__)                                                                     \
	_Static_assert(1, "")

#endif
