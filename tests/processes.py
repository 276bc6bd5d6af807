"""Processes of tests: a port for one, the wait for what they do, none left behind."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path


def runs(pid: int) -> bool:
    """Return True if a process runs: one that has ended and that init has not taken note of does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def end(pids: Iterable[int], within_s: float = 5.0) -> bool:
    """Return True if all of them have ended within a time: a signal that was sent takes effect a little later."""
    left, deadline_s = set(pids), time.monotonic() + within_s
    while (left := {pid for pid in left if runs(pid)}) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return not left


def quick(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return an environment in which Python may keep the modules that it compiles: a start takes half the time."""
    return {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}


def free_port() -> int:
    """Return a TCP port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def until(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait until a condition holds. Raises `AssertionError` when it does not within a time."""
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, f"does not hold after {within_s:g} s"
        time.sleep(0.02)
