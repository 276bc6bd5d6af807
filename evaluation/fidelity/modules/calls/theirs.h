/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Linux's module, one connection of it, behind the calls that congestion/native/sock.h describes. */
#ifndef ELEPHAN_MODULES_THEIRS_H
#define ELEPHAN_MODULES_THEIRS_H

#include "native/sock.h"

/* A new connection. */
void theirs_start(void);

/* Makes one call with the sender `own` as TCP left it, and writes what the module changes of it. The module's own state
 * stays here. Returns the hook's result, 0 without one. */
u32 theirs_call(const struct cc_hook_call *call, struct cc_sock *own);

#endif
