"""Put a BPF object through the running kernel's verifier: `python -m elephan.stack.load <OBJECT`, one line of JSON out.

A process of its own: programs and maps belong to it, nothing is pinned, registered or written to a file, so that the
machine is as it was when the process ends, however it ends. With `--register`, what passes is registered, and stays
(elephan/kernel says why that needs no pin). libbpf (1.0 or later) is called by ctypes: it is a system's package, and a
binding that is built with its own copy would need the tools to build it.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
from typing import Any

from elephan.stack.kconfig import options

LIBRARY = "libbpf.so.1"

STATISTICS = 4
"""BPF_LOG_STATS: a program that passes tells how much the verifier went through; its steps are not logged."""

STEPS = 1
"""BPF_LOG_LEVEL1: the steps, with the source's lines."""

LOG_BYTES = {STATISTICS: 1 << 16, STEPS: 1 << 24}
"""Room for the log of a program. Linux 6.4 and later keep its end when it is longer, where the reason stands."""


def library() -> ctypes.CDLL:
    """Return libbpf with the types of the functions that are used. Raises OSError when it is not installed."""
    bpf = ctypes.CDLL(LIBRARY, use_errno=True)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
        ("bpf_object__open_mem", pointer, (text, ctypes.c_size_t, pointer)),
        ("bpf_object__load", ctypes.c_int, (pointer,)),
        ("bpf_object__close", None, (pointer,)),
        ("bpf_object__next_program", pointer, (pointer, pointer)),
        ("bpf_program__name", text, (pointer,)),
        ("bpf_program__set_log_level", ctypes.c_int, (pointer, ctypes.c_uint32)),
        ("bpf_program__set_log_buf", ctypes.c_int, (pointer, text, ctypes.c_size_t)),
        ("bpf_object__find_map_by_name", pointer, (pointer, text)),
        ("bpf_map__attach_struct_ops", pointer, (pointer,)),
    ):
        function = getattr(bpf, name)
        function.restype, function.argtypes = result, list(arguments)
    return bpf


def load(bpf: ctypes.CDLL, compiled: bytes, level: int, register: bool = False) -> dict[str, Any]:
    """Open and load the object, register it if wanted; return whether it passed, and the log of each program."""
    opened = bpf.bpf_object__open_mem(compiled, len(compiled), ctypes.byref(options(b"algorithm")))
    if not opened:
        return {"passed": False, "error": os.strerror(ctypes.get_errno()), "logs": {}}
    logs: dict[str, Any] = {}
    program = bpf.bpf_object__next_program(opened, None)
    while program:
        buffer = ctypes.create_string_buffer(LOG_BYTES[level])
        bpf.bpf_program__set_log_level(program, level)
        bpf.bpf_program__set_log_buf(program, buffer, len(buffer))
        logs[bpf.bpf_program__name(program).decode()] = buffer
        program = bpf.bpf_object__next_program(opened, program)
    error = bpf.bpf_object__load(opened)
    texts = {name: buffer.value.decode(errors="replace") for name, buffer in logs.items()}
    result = {"passed": error == 0, "error": os.strerror(-error) if error else "", "logs": texts}
    if register and not error:
        algorithm = bpf.bpf_object__find_map_by_name(opened, b"cc_algorithm")
        # The link that this returns is never destroyed: destroying it would unregister.
        if not algorithm or not bpf.bpf_map__attach_struct_ops(algorithm):
            result["refused"] = ctypes.get_errno()
    bpf.bpf_object__close(opened)
    return result


def tried(compiled: bytes, register: bool = False) -> dict[str, Any]:
    """Return what the kernel says of the object: how much it went through, or the log of the program it refuses."""
    bpf = library()
    result = load(bpf, compiled, STATISTICS, register)
    if result["passed"]:
        processed = [re.search(r"processed (\d+) insns", log) for log in result["logs"].values()]
        steps = sum(int(match[1]) for match in processed if match)
        return {"passed": True, "programs": len(result["logs"]), "steps": steps, "refused": result.get("refused")}
    result = load(bpf, compiled, STEPS)
    # libbpf stops at the first program that is refused: the last one with a log.
    refused = [(name, log) for name, log in result["logs"].items() if log]
    name, log = refused[-1] if refused else ("", "")
    return {"passed": False, "error": result["error"], "program": name, "log": log[-20000:]}


if __name__ == "__main__":
    print(json.dumps(tried(sys.stdin.buffer.read(), register="--register" in sys.argv[1:])))
