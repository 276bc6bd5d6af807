"""Make single calls to a congestion control's BPF programs, without a connection."""

from __future__ import annotations

import struct
from functools import lru_cache

from elephan.congestion_control import CongestionControl
from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.parity.refusal import refused

AFTER = 1
"""Of `struct cc_hook_call`, congestion/native/sock.h: the second number."""


@lru_cache(maxsize=1)
def _compiled(file: str, code: str) -> bytes:
    """Compile the programs that make single calls. Each set of parameters is put to the same ones."""
    compiled, _, _ = native.compile_bpf(file, code, None, "step")
    return compiled


def answered(cc: CongestionControl, calls: bytes) -> bytes:
    """Put each call (of `native.synthetic_calls`) to the kernel; return them as a recording, each with its answer."""
    size = native.HOOK_CALL_BYTES
    file = cc.path or f"{cc.name}.c"
    compiled = _compiled(file, cc.code)
    try:
        loaded = native.BpfObject(compiled)
    except native.BpfError as error:
        raise refused(file, error) from error
    if loaded.variables_bytes() != size:
        raise InputError(f"{file}: it has variables outside of functions, which no connection of its own has")
    answers = []
    try:
        for at in range(0, len(calls), size):
            call = calls[at : at + size]
            (hook,) = struct.unpack_from("=I", call)
            answer = bytearray(loaded.run(f"step_{native.HOOKS[hook]}", call))
            struct.pack_into("=I", answer, 4, AFTER)
            answers += [call, bytes(answer)]
    except native.BpfError as error:
        raise RunError(f"{file}: {error}") from error
    finally:
        loaded.close()
    return b"".join(answers)
