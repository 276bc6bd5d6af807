"""What a stack's BPF programs answer to given calls, one by one, without a connection."""

from __future__ import annotations

import mmap
import struct

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.parity.bpf import Object
from elephan.stack import Stack

AFTER = 1
"""Of `struct cc_seen`, congestion/native/sock.h: the second number."""


def answered(stack: Stack, calls: bytes) -> bytes:
    """Put each call (of `native().synthetic_calls`) to the kernel; return them as a recording, each with its answer."""
    core = native()
    size = core.SEEN_BYTES
    file = stack.path or f"{stack.name}.c"
    compiled, _, _ = core.compile_bpf(file, stack.code, None, "step")
    with Object(file, compiled) as loaded:
        if loaded.value_bytes(".bss") != size:
            raise InputError(f"{file}: it has variables outside of functions, which no connection of its own has")
        programs = loaded.programs()
        by_hook = [programs.get(f"step_{hook}", -1) for hook in core.HOOKS]
        run = loaded.bpf.bpf_prog_test_run_opts
        step = mmap.mmap(loaded.map_fd(".bss"), -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        try:
            answers = []
            for at in range(0, len(calls), size):
                call = calls[at : at + size]
                step[:size] = call
                (hook,) = struct.unpack_from("=I", call)
                error = run(by_hook[hook], None)
                if error:
                    raise RunError(f"{file}: the kernel does not run hook {core.HOOKS[hook]}: errno {-error}")
                struct.pack_into("=I", step, 4, AFTER)
                answers += [call, step[:size]]
        finally:
            step.close()
    return b"".join(answers)
