"""`elephan path shell`: a path for as long as one program runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from elephan.errors import InputError
from elephan.path import congestion, live, report, testbed
from elephan.path.session import ends_of, open_path, spec_of
from elephan.scenario import load
from elephan.signals import END_SIGNALS


def run(
    file: Path, command: Sequence[str], overrides: Sequence[str] = (), say: Callable[[str], None] | None = None
) -> tuple[int, report.AnyReport]:
    """Bring the path of a scenario up, run `command` at its sender (a shell without one), take the path down.

    The first flow's congestion control is the default at both ends; `say` is called with which that is. Returns the
    command's exit code (128 + n when signal n ended it) and what the path did. Raises `InputError` when the scenario is
    not one for this or the machine lacks something.
    """
    problem = testbed.missing()
    if problem is not None:
        raise InputError(f"elephan path {problem}")
    scenario = load(file, overrides)
    spec, remark = spec_of(scenario)
    words = list(command) or [os.environ.get("SHELL", "/bin/sh")]
    if shutil.which(words[0]) is None:
        raise InputError(f"{words[0]}: no program of this name can be run here")
    with (
        _signals() as signalled,
        open_path(ends_of(spec), spec, {"what": "shell", "of": str(file)}) as path,
        congestion.as_default(path.place, spec) as control,
        live.listening(path, scenario, spec) as changed,
    ):
        for line in filter(None, (control, remark)):
            if say is not None:
                say(line)
        code = _run_there(path.place, words, signalled, testbed.routers_between(spec))
        return code, replace(path.stop(spec), changes=tuple(changed.history))


def _run_there(place: testbed.Site, words: list[str], signalled: _Signalled, routers: Sequence[tuple[str, str]]) -> int:
    near, far = place.names
    own, other = testbed.ADDRESSES
    own_ipv6, other_ipv6 = (host.ipv6_address if host.has_ipv6 else "" for host in place.hosts)
    environment = os.environ | {
        "ELEPHAN_PATH_ID": place.id,
        "ELEPHAN_PATH_NEAR": own,
        "ELEPHAN_PATH_FAR": other,
        "ELEPHAN_PATH_NEAR_IPV6": own_ipv6,
        "ELEPHAN_PATH_FAR_IPV6": other_ipv6,
        "ELEPHAN_PATH_NEAR_NETNS": near,
        "ELEPHAN_PATH_FAR_NETNS": far,
        "ELEPHAN_PATH_ROUTERS": " ".join(address for _, address in routers),
    }
    if signalled.by is not None:
        return 128 + signalled.by  # Before there was a program.
    process = subprocess.Popen(["ip", "netns", "exec", near, *words], env=environment)
    signalled.program = process.pid
    if signalled.by is not None:
        # While there was one already, and not yet its number.
        os.kill(process.pid, signalled.by)
    code = process.wait()
    # Its number may be another one's from here on.
    signalled.program = None
    return code if code >= 0 else 128 - code


@dataclass
class _Signalled:
    """Signals to pass on, and those that came."""

    program: int | None = None
    """To whom they go."""
    by: int | None = None
    """The last signal that ended elephan."""


@contextmanager
def _signals() -> Iterator[_Signalled]:
    """Signals that end elephan go to the program while it runs, so that the path is always taken down after it.

    A terminal gives Ctrl-C to the program itself; a shell that runs there must be able to live on.
    """
    signalled = _Signalled()

    def pass_on(number: int, frame: FrameType | None) -> None:
        if signalled.program is None:
            signalled.by = number
        elif number != signal.SIGINT or not _in_foreground():
            with suppress(ProcessLookupError):
                os.kill(signalled.program, number)

    if threading.current_thread() is not threading.main_thread():
        yield signalled
        return
    # An ignored signal stays ignored, for the program too: SIGHUP under nohup.
    heard = [number for number in END_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in heard}
    try:
        yield signalled
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
