"""The first file of a congestion control of one's own: Reno with one parameter, and what to edit."""

from __future__ import annotations

import re
from pathlib import Path

from elephan.congestion_control.catalogue import congestion_controls
from elephan.errors import InputError, StoreError

NAME = re.compile(r"[a-z][a-z0-9_]*")

LONGEST = 40
"""Limit of a name, characters, for tables."""

RESERVED = frozenset({"new", "check", "show"})
"""Words of `elephan cc`."""

KERNEL_NAME_BYTES = 15
"""TCP_CA_NAME_MAX without its ending zero."""


def create(place: str) -> Path:
    """Write a file for the congestion control `place`, "mine" or "folder/mine.c"; return its path.

    Raises `InputError` for a name that cannot be one, a file that is there, and a folder that cannot be written.
    """
    path = Path(place if place.endswith(".c") else f"{place}.c")
    name = path.stem
    reason = why_not(name)
    if reason:
        raise InputError(f"{name!r} cannot be a congestion control's name: {reason}")
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text_of(name))
    except FileExistsError:
        raise InputError(f"{path} is there already, and is not overwritten; choose another name") from None
    except OSError as error:
        kind = InputError if error.errno in (2, 13, 20, 30) else StoreError
        raise kind(f"{path}: cannot be written: {error.strerror}") from error
    return path


def why_not(name: str) -> str:
    """Return why `name` cannot be a congestion control's, "" when it can."""
    if not NAME.fullmatch(name):
        return "a-z, 0-9 and _, a letter first, such as mine or reno_quarter"
    if len(name) > LONGEST:
        return f"it has {len(name)} characters, at most {LONGEST}"
    if name in RESERVED:
        return f"`elephan cc {name}` is a command"
    if name in {cc.name for cc in congestion_controls()}:
        return "a built-in congestion control has it, and tables could not tell the two apart"
    return ""


def text_of(name: str) -> str:
    """Return the C file."""
    return TEMPLATE.replace("@NAME@", name).replace("@KERNEL@", f"elephan_{name}"[:KERNEL_NAME_BYTES])


TEMPLATE = """\
/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * @NAME@: Reno with a reduction that can be chosen.
 *
 * (This comment is what `elephan cc ./@NAME@.c` prints. Say here what your algorithm does, and why.)
 *
 * Idea. Loss is the sign of congestion. Without it the window grows by one segment per round trip; with it a share of
 * the window is given up.
 *
 * Equations (W = cwnd, segments)
 *	slow start, W < ssthresh:	W += acked
 *	avoidance, W >= ssthresh:	W += acked / W
 *	loss:				ssthresh = max(W (1 - reduction), 2)
 *
 * Parameters
 *	reduction	share of the window given up at a loss; 1/2 is Reno
 *
 * Ranges. Windows: u32, up to 34 million segments (400 Gbit/s x 1 s); W x 1e6 ends at 3.4e13, in 64 bits.
 *
 * Source: who thought of it, and where it is described.
 *
 * Kernel: as BPF struct_ops, Linux 5.6 and later, under the name @KERNEL@.
 */
#include "cc.h"

/* A share of 1 as an integer: there is no floating point, neither here nor in the kernel. */
#define SHARE 1000000

/*
 * Parameters: (name, default, least, greatest, scale, unit, what it is). Values are integers; what a scenario writes is
 * value / scale, so that 500000 of scale 1000000 is written "1/2" or 0.5. Without any: CC_NO_PARAMS;
 */
CC_PARAMS(
	(reduction, 500000, 1000, 900000, SHARE, "1", "share of the window given up at a loss (1/2: Reno)"));

/* RFC 5681, 3.1: at least 2 segments. */
#define MIN_SSTHRESH 2

/* EDIT HERE what a loss does: return the new slow start threshold, to which the window goes down. */
static u32 @NAME@_ssthresh(struct cc_sock *sk)
{
	u64 kept = SHARE - (u64)cc_param(sk, reduction);

	return (u32)cc_max(cc_snd_cwnd(sk) * kept / SHARE, MIN_SSTHRESH);
}

/*
 * EDIT HERE how the window grows: called for an ACK that delivered `acked` segments while nothing is lost.
 * cc_reno_cong_avoid doubles the window per round trip below ssthresh, and adds one segment per round trip above.
 * Growth of your own: cc_set_snd_cwnd(sk, ...) where cc_is_cwnd_limited(sk), never above cc_snd_cwnd_clamp(sk).
 */
static void @NAME@_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	cc_reno_cong_avoid(sk, acked);
}

/*
 * The hooks (cc.h lists all, and everything that can be read and set). State of a flow, at most 104 bytes: declare a
 * struct, CC_STATE(struct ...); then cc_state(sk) points to it.
 */
CC_ALGORITHM(@NAME@, "Reno that gives up a chosen share of the window at a loss", "your own",
	(ssthresh, @NAME@_ssthresh),
	(cong_avoid, @NAME@_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
"""
