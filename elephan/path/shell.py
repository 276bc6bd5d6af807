"""`elephan path shell`: a path for as long as one program runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from elephan.errors import InputError
from elephan.path import report, site
from elephan.path.opened import ends_of, opened, spec_of
from elephan.signals import END_SIGNALS


def run(file: Path, command: Sequence[str], overrides: Sequence[str] = ()) -> tuple[int, report.Report]:
    """Bring the path of a scenario up, run `command` at its sender (a shell without one), take the path down.

    Returns the command's exit code (128 + n when signal n ended it) and what the path did. Raises `InputError` when
    the scenario is not one for this or the machine lacks something.
    """
    problem = site.missing()
    if problem is not None:
        raise InputError(f"elephan path {problem}")
    spec = spec_of(file, overrides)
    words = list(command) or [os.environ.get("SHELL", "/bin/sh")]
    with _signals() as passed_to, opened(ends_of(spec), {"what": "shell", "of": str(file)}) as path:
        path.start(spec)
        code = _run_there(path.place, words, passed_to)
        return code, path.stop(spec)


def _run_there(place: site.Site, words: list[str], passed_to: list[int]) -> int:
    near, far = place.names
    own, other = site.ADDRESSES
    environment = os.environ | {
        "ELEPHAN_PATH_ID": place.id,
        "ELEPHAN_PATH_NEAR": own,
        "ELEPHAN_PATH_FAR": other,
        "ELEPHAN_PATH_NEAR_NETNS": near,
        "ELEPHAN_PATH_FAR_NETNS": far,
    }
    if passed_to and passed_to[0] < 0:
        return 128 - passed_to[0]  # Told to end before there was a program.
    process = subprocess.Popen(["ip", "netns", "exec", near, *words], env=environment)
    passed_to[:] = [process.pid]
    code = process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Signals that end elephan go to the program while it runs, so that the path is always taken down after it.

    A terminal gives Ctrl-C to the program itself; a shell that runs there must be able to live on.
    """
    passed_to: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        if passed_to and passed_to[0] > 0:
            if number == signal.SIGINT and _in_foreground():
                return
            try:
                os.kill(passed_to[0], number)
            except ProcessLookupError:
                return
        else:
            passed_to[:] = [-number]

    if threading.current_thread() is not threading.main_thread():
        yield passed_to
        return
    before = {number: signal.signal(number, pass_on) for number in END_SIGNALS}
    try:
        yield passed_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
