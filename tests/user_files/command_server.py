"""Runs commands, each in a process of its own that is forked with everything imported: a Python start costs 0.5 s.

Reads a JSON object per line (`arguments`, `folder`, `environment`, `is_limited`), writes one per command (`code`,
`out`, `err`, `s`, `resident_bytes`). A command has `MEMORY_BYTES` of memory and `LIMIT_S` seconds; then it is killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time
from typing import Any

MEMORY_BYTES = 1 << 30
"""Address space of a command beyond that of this process."""

LIMIT_S = 20.0


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Run a command and return how it ended."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began_s = time.monotonic()
        child = os.fork()
        if child == 0:
            _be_command(asked, out.fileno(), err.fileno())
        status, used = _wait(child, began_s)
        took_s = time.monotonic() - began_s
        out.seek(0)
        err.seek(0)
        return {
            "code": status,
            "out": out.read(1 << 20).decode(errors="replace"),
            "err": err.read(1 << 20).decode(errors="replace"),
            "s": took_s,
            "resident_bytes": used,
        }


def _be_command(asked: dict[str, Any], out: int, err: int) -> None:
    from elephan.cli.main import call

    code = 99
    try:
        # Such as that of a shell: signals end it.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(asked["folder"])
        os.environ.update(asked["environment"])
        with open("/proc/self/statm", encoding="ascii") as pages:
            memory = int(pages.read().split()[0]) * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if asked["is_limited"]:
            _drop_capabilities()
        code = call(asked["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _drop_capabilities() -> None:
    """Give up what root may beyond other users: files without rights are closed to this process (capset(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    version_3 = (ctypes.c_uint32 * 2)(0x20080522, 0)
    if libc.capset(version_3, (ctypes.c_uint32 * 6)()) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _wait(child: int, began_s: float) -> tuple[int, int]:
    while True:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), used.ru_maxrss << 10
        if time.monotonic() - began_s > LIMIT_S:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)


def main() -> None:
    """Serve until the end of standard input."""
    import elephan.api
    import elephan.cli.main  # noqa: F401

    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
