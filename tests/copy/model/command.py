"""`elephan` as a process of the user: forked off this process, which imports its modules and runs none."""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import typer.main

# Before the module of the same name replaces it.
from elephan.cli import main
from elephan.cli.copy import words
from elephan.cli.main import app
from elephan.copy import api, attempt
from elephan.core import build_digest

TIME_LIMIT_S = 60.0
"""For one command: a copy of a world is far faster; a slower command hangs."""
LOOK_S = 0.004
"""Time between two looks at an end, s."""
BUSY_S = 1.5
"""Time that a second run of the same command waits for the first, s."""
ENDED: dict[int, int] = {}
"""Status of children that ended while a tracer waited for all."""
BACKOFF_SHARE = 0.2
"""Share of the waits between attempts that is waited."""
PR_SET_PDEATHSIG = 1
REMOTE_STATE = "ELEPHAN_MODEL_STATE"
"""Variable with the folder of the state that a command leaves at the second host (hold.c)."""

_libc = ctypes.CDLL(None, use_errno=True)


def load(folder: Path, limit_s: float = TIME_LIMIT_S) -> None:
    """Load the modules that a copy loads, so that a child begins with them: a user may not read where they are.

    `folder`: for a copy that says which ones, in a child. `limit_s`: for that copy.
    """
    (folder / "loaded" / "source").mkdir(parents=True)
    line = [b"copy", os.fsencode(folder / "loaded" / "source"), os.fsencode(folder / "loaded" / "destination"), b"-q"]
    load_modules(line, folder / "loaded", limit_s=limit_s)
    # Things that each command would make again, and how often it looks at its ends: none changes its result.
    build_digest()
    typer.main.get_command = functools.cache(typer.main.get_command)
    commands: Any = typer.main.get_command(app)
    commands.get_command(None, "copy")
    typer.main.get_command(words)
    attempt.LOOK_S = LOOK_S
    api.BUSY_S = BUSY_S
    waits_s: Any = tuple(wait_s * BACKOFF_SHARE for wait_s in api.BACKOFF_S)
    api.BACKOFF_S = waits_s
    gc.freeze()


def load_modules(
    line: list[bytes], folder: Path, user: int | None = None, limit_s: float = TIME_LIMIT_S
) -> None:
    """Load the modules that a command loads, which runs in a child."""
    names = folder / "modules"
    result = start([line], folder, user, ended=lambda: names.write_text("\n".join(sys.modules))).wait(limit_s)
    if result.code != 0:
        raise RuntimeError(f"elephan copy: exit code {result.code}: {result.output}")
    for name in names.read_text().splitlines():
        with suppress(ImportError):
            import_module(name)


def die_with_parent() -> None:
    """End this process when its parent ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass(frozen=True)
class Result:
    """The end of a process."""

    code: int
    """Exit code; below 0: the signal."""
    output: str
    """Of stdout and stderr."""


@dataclass
class Child:
    """A command that runs."""

    pid: int
    output: int
    """Descriptor of its output's file."""

    def result(self, status: int) -> Result:
        """Return the end, by the status of wait(2)."""
        size = os.fstat(self.output).st_size
        text = os.pread(self.output, size, 0).decode(errors="replace")
        os.close(self.output)
        return Result(os.waitstatus_to_exitcode(status), text)

    def wait(self, limit_s: float = TIME_LIMIT_S) -> Result:
        """Wait for its end; after the limit it is killed, and its result says so by -SIGALRM."""
        deadline_s = time.monotonic() + limit_s
        pause_s = 0.001
        while True:
            pid, status = self.pid, ENDED.pop(self.pid, -1)
            if status < 0:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return self.result(status)
            if time.monotonic() > deadline_s:
                os.kill(self.pid, signal.SIGKILL)
                _, status = os.waitpid(self.pid, 0)
                return Result(-signal.SIGALRM, self.result(status).output + "\nthe command hangs")
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.01)


def start(
    commands: list[list[bytes]],
    state: Path,
    user: int | None = None,
    prepare: Callable[[], None] | None = None,
    ended: Callable[[], object] | None = None,
) -> Child:
    """Start commands, one after the other while they end with 0.

    The child calls `prepare` before and `ended` after.
    """
    output = os.memfd_create("output")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        ENDED.pop(pid, None)
        return Child(pid, output)
    code = 70
    try:
        die_with_parent()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(descriptor, target)
        os.environ["XDG_STATE_HOME"] = str(state)
        os.environ["ELEPHAN_HOSTS"] = str(state / "hosts.toml")
        os.environ[REMOTE_STATE] = str(state / "remote")
        os.umask(0o022)
        os.chdir("/")
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        if prepare is not None:
            prepare()
        code = _run(commands)
        if ended is not None:
            ended()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(commands: list[list[bytes]]) -> int:
    code = 0
    for line in commands:
        sys.argv = ["elephan", *map(os.fsdecode, line)]
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            # As Python ends a program.
            traceback.print_exc()
            code = 1
        if code:
            break
    return code
