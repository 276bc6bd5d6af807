"""STAMP sessions to all paths: one thread sends and receives, the monitor takes what has come."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from elephan import user_files
from elephan.core import native
from elephan.monitor.journal import LOST, UNKNOWN, Sample

POLL_S = 0.25
"""Longest wait of the thread for packets, s: so long may a new session, or the end, have to wait."""
RETRY_LEAST_S, RETRY_MOST_S = 1.0, 60.0
"""Time until a session that could not be opened is tried again, s: doubled each time."""
LOOK_S = 5.0
"""Time between two looks at what the kernel says of a session, s."""
SPREAD_NS = 37_000_000
"""Time between the first packets of two sessions, ns: those to one place do not leave at once."""


@dataclass
class _Wanted:
    towards: str
    key: bytes | None
    interval_ns: int
    number: int | None = None
    """Of its session; None: it is not open."""
    fault: str | None = None
    retry_s: float = RETRY_LEAST_S
    due_s: float = 0.0
    gone: bool = False


class Sampler:
    """The sessions by the name of their path."""

    def __init__(self) -> None:
        """Start the thread."""
        self._wanted: dict[str, _Wanted] = {}
        self._dropped: list[_Wanted] = []
        self._samples: deque[tuple[str, Sample]] = deque(maxlen=1_000_000)
        self._lock = threading.Lock()
        self._end = False
        self._thread = threading.Thread(target=self._run, name="elephan-stamp", daemon=True)
        self._thread.start()

    def want(self, name: str, towards: str, key: bytes | None, interval_ns: int) -> None:
        """Have a session; it opens soon, and again after a fault."""
        self.drop(name)
        with self._lock:
            self._wanted[name] = _Wanted(towards, key, interval_ns)

    def drop(self, name: str) -> None:
        """End a session."""
        with self._lock:
            found = self._wanted.pop(name, None)
            if found is not None:
                self._dropped.append(found)

    def fault(self, name: str) -> str | None:
        """Return what is wrong with a session in words: it cannot be opened, or what an ICMP error says."""
        with self._lock:
            found = self._wanted.get(name)
        return None if found is None else found.fault

    def take(self) -> list[tuple[str, Sample]]:
        """Return what has come since the last call."""
        found = []
        while self._samples:
            found.append(self._samples.popleft())
        return found

    def close(self) -> None:
        """End all."""
        self._end = True
        self._thread.join(5)

    def _run(self) -> None:
        sessions = native.PathSessions()
        names: dict[int, str] = {}
        look_s = time.monotonic() + LOOK_S
        while not self._end:
            with self._lock:
                wanted, dropped = dict(self._wanted), self._dropped
                self._dropped = []
            for one in dropped:
                if one.number is not None:
                    sessions.remove(one.number)
                    names.pop(one.number, None)
            for name, one in wanted.items():
                if one.number is None and time.monotonic() >= one.due_s:
                    _open(sessions, one, len(names))
                    if one.number is not None:
                        names[one.number] = name
            if not names:
                time.sleep(POLL_S)
                continue
            for raw in sessions.poll(POLL_S):
                name = names.get(raw["session"])  # type: ignore[assignment]
                if name is not None:
                    self._samples.append((name, sample_of(raw)))
            if time.monotonic() >= look_s:
                look_s = time.monotonic() + LOOK_S
                for one in wanted.values():
                    if one.number is not None:
                        one.fault = json.loads(sessions.state(one.number))["fault"]
        sessions.close()


def _open(sessions: Any, one: _Wanted, count: int) -> None:
    try:
        one.number = sessions.add(
            one.towards, key=one.key, interval_ns=one.interval_ns, delay_ns=count * SPREAD_NS % one.interval_ns
        )
        one.fault, one.retry_s = None, RETRY_LEAST_S
    except (OSError, ValueError) as error:
        one.fault = str(error)
        one.due_s = time.monotonic() + one.retry_s
        one.retry_s = min(RETRY_MOST_S, 2 * one.retry_s)


def sample_of(raw: dict[str, Any]) -> Sample:
    """Return a sample of what a session gives."""
    rtt, forward = raw["rtt_ns"], raw["forward_ns"]
    return Sample(
        raw["sent_unix_ns"],
        LOST if rtt is None else max(0, rtt),
        UNKNOWN if rtt is None or forward is None else forward,
        raw["ttl"] or 0,
        raw["duplicates"] or 0,
        raw["late_ns"],
        raw["residence_ns"],
    )


def key_of(file: str | None) -> bytes | None:
    """Return the key of authenticated mode that a file holds in hexadecimal digits. Raises `OSError`, `ValueError`."""
    return None if file is None else bytes.fromhex(user_files.read_text(file, user_files.KEY, "ascii").strip())
