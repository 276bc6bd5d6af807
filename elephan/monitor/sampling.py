"""STAMP sessions to all paths: one thread sends and receives, the monitor takes what has come."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.core import native
from elephan.monitor.journal import LOST, UNKNOWN, Sample
from elephan.monitor.spec import STAMP_PACKET_BYTES

POLL_S = 0.2
"""Longest wait of the thread for packets, s: so long may a new session, or the end, have to wait."""
RETRY_LEAST_S, RETRY_MOST_S = 1.0, 60.0
"""Time until a session that could not be opened is tried again, s: doubled each time."""


@dataclass
class _Wanted:
    towards: str
    key: bytes | None
    interval_ns: int
    session: Any = None
    fault: str | None = None
    retry_s: float = RETRY_LEAST_S
    due_s: float = 0.0


class Sampler:
    """The sessions by the name of their path."""

    def __init__(self) -> None:
        """Start the thread."""
        self._wanted: dict[str, _Wanted] = {}
        self._samples: deque[tuple[str, Sample]] = deque(maxlen=1_000_000)
        self._lock = threading.Lock()
        self._end = False
        self._thread = threading.Thread(target=self._run, name="elephan-stamp", daemon=True)
        self._thread.start()

    def want(self, name: str, towards: str, key_file: str | None, interval_ns: int) -> None:
        """Have a session; it opens soon, and again after a fault."""
        key = None if key_file is None else Path(key_file).read_bytes().strip()
        with self._lock:
            self._wanted[name] = _Wanted(towards, key, interval_ns)

    def drop(self, name: str) -> None:
        """End a session."""
        with self._lock:
            found = self._wanted.pop(name, None)
        if found is not None and found.session is not None:
            found.session.close()

    def names(self) -> set[str]:
        """Return the paths that have or want a session."""
        with self._lock:
            return set(self._wanted)

    def fault(self, name: str) -> str | None:
        """Return why a session is not open; None: it is."""
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
        for name in self.names():
            self.drop(name)

    def _run(self) -> None:
        while not self._end:
            with self._lock:
                wanted = list(self._wanted.items())
            until_s = time.monotonic() + POLL_S
            for name, one in wanted:
                if one.session is None and time.monotonic() >= one.due_s:
                    self._open(name, one)
                if one.session is not None:
                    self._poll(name, one)
            time.sleep(max(0.0, until_s - time.monotonic()))

    def _open(self, name: str, one: _Wanted) -> None:
        try:
            one.session = native.path_session(
                one.towards, key=one.key, interval_ns=one.interval_ns, packet_bytes=STAMP_PACKET_BYTES
            )
            one.fault, one.retry_s = None, RETRY_LEAST_S
        except (OSError, ValueError) as error:
            self._failed(one, str(error))

    def _failed(self, one: _Wanted, text: str) -> None:
        one.session, one.fault = None, text
        one.due_s = time.monotonic() + one.retry_s
        one.retry_s = min(RETRY_MOST_S, 2 * one.retry_s)

    def _poll(self, name: str, one: _Wanted) -> None:
        try:
            for raw in one.session.poll(0.0):
                self._samples.append((name, sample_of(raw)))
        except OSError as error:
            one.session.close()
            self._failed(one, str(error))


def sample_of(raw: dict[str, Any]) -> Sample:
    """Return a sample of what a session gives."""
    rtt, forward = raw.get("rtt_ns"), raw.get("forward_ns")
    return Sample(
        raw["sent_unix_ns"],
        LOST if rtt is None else max(0, rtt),
        UNKNOWN if forward is None else forward,
        raw.get("ttl") or 0,
        raw.get("duplicates") or 0,
    )
