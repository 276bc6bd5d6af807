"""Child processes of the monitor: started, looked after, ended; none is waited for.

Input and output are files in memory, so that neither side can block the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from elephan.python_process import python_command

LIMITS_S = {"config": 30.0, "upgrade": 120.0, "days": 1800.0, "send": 300.0, "notify": 120.0, "forecast": 900.0}
"""Time after which a child is killed, s."""
MEASURE_LIMIT_S = 180.0
"""The same of a path test, s; `throughput` has its duration more."""


@dataclass
class Done:
    """The end of a child."""

    result: dict[str, Any] | None
    """Its answer; None: it failed."""
    fault: str | None
    """Its last line of stderr, or what the monitor did to it."""
    exit_code: int | None = None


@dataclass
class _Child:
    task: str
    process: subprocess.Popen[bytes]
    out: int
    err: int
    until_s: float
    done: Callable[[Done], None]
    killed: bool = False


@dataclass
class Children:
    """The children that run now."""

    running: list[_Child] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)
    """Children that failed, by task."""

    def start(
        self, task: str, asked: dict[str, Any], done: Callable[[Done], None], limit_s: float | None = None
    ) -> None:
        """Start a child; `done` is called by `poll` when it has ended."""
        files = [os.memfd_create(f"elephan-{task}-{name}") for name in ("in", "out", "err")]
        given, out, err = files
        try:
            os.write(given, json.dumps(asked).encode())
            os.lseek(given, 0, os.SEEK_SET)
            process = subprocess.Popen(
                python_command("-m", "elephan.monitor.children", task), stdin=given, stdout=out, stderr=err
            )
        except OSError as error:
            for one in files:
                os.close(one)
            self.failures[task] = self.failures.get(task, 0) + 1
            done(Done(None, f"cannot start a process: {error.strerror}"))
            return
        os.close(given)
        limit = LIMITS_S.get(task, MEASURE_LIMIT_S) if limit_s is None else limit_s
        self.running.append(_Child(task, process, out, err, time.monotonic() + limit, done))

    def has(self, task: str) -> bool:
        """Return True if such a child runs."""
        return any(one.task == task for one in self.running)

    def poll(self) -> None:
        """Tell of children that have ended, and kill those that take too long."""
        for one in list(self.running):
            code = one.process.poll()
            if code is None:
                if time.monotonic() > one.until_s and not one.killed:
                    one.killed = True
                    one.process.kill()
                continue
            self.running.remove(one)
            told, said = _content(one.out), _content(one.err).strip()
            result = None
            if code == 0:
                with suppress(ValueError):
                    result = json.loads(told)
            fault = None
            if result is None:
                self.failures[one.task] = self.failures.get(one.task, 0) + 1
                fault = "it took too long" if one.killed else (said.splitlines() or [f"it ended with {code}"])[-1]
            one.done(Done(result, fault, code))

    def end(self) -> None:
        """End all; none of their work is lost, because each of it is done again."""
        for one in self.running:
            with suppress(OSError):
                one.process.terminate()
        for one in self.running:
            try:
                one.process.wait(5)
            except subprocess.TimeoutExpired:
                one.process.kill()
                one.process.wait()
            for descriptor in (one.out, one.err):
                os.close(descriptor)
        self.running.clear()


def call(task: str, asked: dict[str, Any]) -> Done:
    """Run a child and wait for it."""
    children, found = Children(), list[Done]()
    children.start(task, asked, found.append)
    while not found:
        time.sleep(0.01)
        children.poll()
    return found[0]


def _content(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read().decode("utf-8", "replace")
