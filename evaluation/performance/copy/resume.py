"""Resume: a copy of one large file is killed on its way, and goes on; the time until new data passes the path.

The first new byte is seen on the path itself: bytes that the forward link has delivered since, beyond what sign-in and
messages take.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elephan.errors import RunError
from elephan.path.testbed import DISK_FOLDERS
from evaluation.performance.copy import ours
from evaluation.performance.copy.bench import Bench, bench, kill_session
from evaluation.performance.copy.cells import Line, Payload, Row, append
from evaluation.performance.copy.judge import RESUME
from evaluation.performance.copy.payloads import Laid, laid
from evaluation.performance.programs import wait_for_quiet

SENDER, RECEIVER = "sender", "receiver"
SHARE = 0.4
"""Of the payload that is durable when it is killed."""
NEW_BYTES = 200_000
"""Bytes on the forward link that are data: ssh's sign-in, TLS and messages take less than half of it."""
POLL_S = 0.01
PATIENCE_S = 120.0
OPTIONS, FLAGS = {"streams": "8", "cc": "cubic"}, ("no-auto",)


@dataclass
class Watched:
    """A command that runs, and its events with their times, s."""

    process: subprocess.Popen[bytes]
    began_s: float
    events: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read its output in a thread."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self.events.append((time.monotonic(), json.loads(line)))

    def last(self, name: str, key: str) -> float:
        """Return a member of the last event of a name; 0 before the first."""
        values = [event[key] for _, event in list(self.events) if event.get("event") == name]
        return float(values[-1]) if values else 0.0

    def first_s(self, name: str, since_s: float) -> float | None:
        """Return when an event of a name came first after a time."""
        return next((at_s for at_s, event in list(self.events) if event.get("event") == name and at_s > since_s), None)


def measure(lines: Sequence[Line], payload: Payload, options: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Kill sender and receiver in turn on each line, and store a row for each."""
    with tempfile.TemporaryDirectory(prefix="elephan-copy-", dir=DISK_FOLDERS) as parent:
        Path(parent).chmod(0o755)
        with laid(payload, Path(parent)) as made:
            for turn in range(1, options.turns + 1):
                for line in lines:
                    folder = Path(parent) / "bench"
                    folder.mkdir(exist_ok=True)
                    with bench(line, folder) as opened:
                        ours.prepare(opened)
                        for killed in (SENDER, RECEIVER):
                            if not options.busy:
                                wait_for_quiet()
                            row = one(opened, made, killed, turn)
                            append(options.store, row)
                            say(f"{line.text} | {killed} killed: first new byte after {row.seconds:.2f} s, {row.extra}")


def one(made: Bench, payload: Laid, killed: str, turn: int) -> Row:
    """Kill one side of a copy, and return the row of how it went on. Raises `RunError`."""
    payload.reset()
    row = Row(made.line, payload.payload.name, f"{RESUME}-{killed}", turn, 0.0, payload.payload.bytes, True)
    row.build, row.date = ours.build(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made.carry(turn)
    running = started(made, payload)
    try:
        until(lambda: running.last("progress", "durable_bytes") > SHARE * payload.payload.bytes, running, made)
        durable = running.last("progress", "durable_bytes")
        if killed == SENDER:
            kill_session(running.process)
            # The receiver sees the connections close, as after any kill.
            time.sleep(1)
            before = passed(made)
            running = started(made, payload)
            since_s = running.began_s
        else:
            before, since_s = passed(made), time.monotonic()
            for pid, words in made.hosts.right.processes().items():
                if "agent" in words:
                    os.kill(pid, signal.SIGKILL)
            # Bytes on their way still come.
            time.sleep(2 * made.line.rtt_ms / 1e3)
            before = passed(made)
        until(lambda: passed(made) - before > NEW_BYTES, running, made)
        row.seconds = time.monotonic() - since_s
        if running.process.wait(PATIENCE_S + 10 * payload.payload.bytes * 8 / (made.line.rate_mbps * 1e6)):
            raise RunError(f"the copy did not go on: {running.events[-3:]}")
        met_s = running.first_s("connected", since_s)
        # Of the last attempt alone; the receipt has the sum.
        sent = running.last("progress", "sent_bytes")
        row.extra = {
            "killed": killed,
            "durable_bytes": durable,
            "start_s": row.seconds if met_s is None else met_s - since_s,
            "sent_again_bytes": max(sent - (payload.payload.bytes - durable), 0),
        }
        payload.check()
    finally:
        kill_session(running.process)
        said = made.carried()
        made.clear()
    row.emulator_cpu, row.own_drops = said.cpu_share, said.own_drops
    return row


def started(made: Bench, payload: Laid) -> Watched:
    """Start the copy."""
    words = ours.words_of(payload, OPTIONS, FLAGS)
    process = made.start(0, words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return Watched(process, time.monotonic())


def passed(made: Bench) -> int:
    """Return the bytes that the forward link has delivered so far."""
    counters = made.hosts.path.emulator.snapshot()
    assert counters is not None, "it carries"
    forward = made.hosts.spec["flows"][0]["route"][0]
    return int(counters["links"][forward]["delivered_bytes"])


def until(seen: Callable[[], bool], running: Watched, made: Bench) -> None:
    """Wait until something is seen. Raises `RunError` when the command ends before, or it takes too long."""
    deadline_s = time.monotonic() + PATIENCE_S + 10 * 8e10 / (made.line.rate_mbps * 1e6)
    while not seen():
        if running.process.poll() is not None or time.monotonic() > deadline_s:
            raise RunError(f"the copy came to nothing: {[event for _, event in running.events[-3:]]}")
        time.sleep(POLL_S)
