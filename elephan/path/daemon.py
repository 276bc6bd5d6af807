"""`elephan path up | show | set | down`: a path that a process in the background holds, for as long as one likes.

The keeper, `python -m elephan.path.daemon FILE [KEY=VALUE ...]`, has namespaces and devices; it tells whoever started
it how it went by one line of JSON, and ends by a signal. It stays once it was answered: a path of which nobody has
heard, because `up` was ended before that, goes. What the path did it leaves in its lock file, which whoever sent the
signal holds open: there is nothing to remove afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elephan import run_lock
from elephan.errors import ElephanError, InputError, RunError
from elephan.path import congestion, live, testbed
from elephan.path.session import ends_of, open_path, spec_of
from elephan.python_process import python_command
from elephan.scenario import load
from elephan.signals import termination_requested

WHAT, SHELL = "up", "shell"
"""Names of the kinds of paths in the lock file."""

STAY = b"stay\n"
"""The answer to the keeper's line."""

PATIENCE_S = 30.0
"""Time for a path to come up or to go down, s."""


@dataclass(frozen=True)
class Shown:
    """A path, or a run, that lives."""

    id: str
    what: str
    of: str
    age_s: float
    hosts: tuple[tuple[str, str, int, int], ...]
    """Namespace, addresses with a space between them, packets sent and packets received so far."""
    remarks: tuple[str, ...] = ()
    """Lines about its congestion control."""
    routers: tuple[tuple[str, str], ...] = ()
    """Name and address of each router from the sender to the receiver."""
    values: tuple[str, ...] = ()
    """Present values of its links and background sources, where it can be changed."""


def up(file: Path, overrides: Sequence[str] = ()) -> Shown:
    """Bring a path up that stays, and return it. Raises `InputError` and `RunError` as `elephan path shell` does."""
    problem = testbed.missing()
    if problem is not None:
        raise InputError(f"elephan path {problem}")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        python_command("-m", "elephan.path.daemon", str(file), *overrides),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        # A Ctrl-C, or the end of this terminal, is not meant for it.
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdin is not None
    # Closed without an answer they take the path down, whatever ends this.
    with process.stdin as answers, process.stdout as says:
        line = says.readline()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise RunError(f"the path's process ended with {process.wait()} before the path was up") from None
        if "error" in answer:
            process.wait()
            raise (InputError if answer["exit_code"] == InputError.exit_code else RunError)(answer["error"])
        found = next((path for path in show() if path.id == answer["id"]), None)
        # Not through the file's buffer, which would be written again when it is closed.
        with suppress(BrokenPipeError):
            os.write(answers.fileno(), STAY)
            if found is not None:
                return found
    raise RunError(f"the path {answer['id']} was up and has been taken down already")


def show() -> list[Shown]:
    """Return all living paths and runs of this machine, oldest first. Raises `InputError` without rights."""
    problem = testbed.missing()
    if problem is not None:
        raise InputError(f"elephan path {problem}")
    found = []
    for run, facts in run_lock.living().items():
        hosts = []
        own: list[str] = facts.get("addresses", [])
        more: list[str | None] = facts.get("ipv6_addresses", [None] * len(own))
        for name, *addresses in zip(testbed.namespaces_of(run), own, more, strict=False):
            try:
                counters = testbed.counters_of(name)
            except RunError:  # it is coming or going
                continue
            address = " ".join(str(address) for address in addresses if address)
            hosts.append((name, address, int(counters["tx"]["packets"]), int(counters["rx"]["packets"])))
        age_s = max(0.0, time.time() - float(facts.get("since_s", 0)))
        remarks = tuple(map(str, facts.get("remarks", [])))
        routers = tuple((str(name), str(address)) for name, address in facts.get("routers", []))
        what, of = str(facts.get("what", "")), str(facts.get("of", ""))
        found.append(Shown(run, what, of, age_s, tuple(hosts), remarks, routers, live.lines_of(run)))
    return sorted(found, key=lambda shown: -shown.age_s)


def change(run: str, settings: Sequence[str]) -> Shown:
    """Change a path of `up` or `shell` while it runs, and return it. Raises `InputError`: nothing is changed."""
    run, _ = _found(run, (WHAT, SHELL), "a run keeps the path of its scenario")
    live.change(run, settings)
    found = next((path for path in show() if path.id == run), None)
    if found is None:
        raise InputError(f"no path {run}: it has just ended")
    return found


def _found(run: str, kinds: Sequence[str], otherwise: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the id that `run` is or begins, of a path of these kinds, and all living paths and runs.

    Raises `InputError`, with `otherwise` for one of another kind.
    """
    problem = testbed.missing()
    if problem is not None:
        raise InputError(f"elephan path {problem}")
    living = run_lock.living()
    kept = [name for name, facts in living.items() if facts.get("what") in kinds]
    # "" begins them all: an empty variable of a script is no choice.
    fitting = [name for name in kept if run and name.startswith(run)]
    if len(fitting) != 1:
        others = ", ".join(kept) or "none"
        if run in living:
            kind = " or ".join(kinds)
            raise InputError(f"{run} is not a path of elephan path {kind}: {otherwise}; there are {others}")
        some = "no path" if not fitting else "several paths begin with"
        raise InputError(f"{some} {run or repr(run)}; there are {others}")
    return fitting[0], living


def down(run: str) -> str:
    """Take a path down and return what it did. Raises `InputError` when it is none of `up`'s."""
    run, living = _found(run, (WHAT,), "it ends with its command")
    try:
        facts = open(run_lock.LOCKS / run, encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"no path {run}: it has just ended") from None
    with facts:
        with suppress(ProcessLookupError):
            os.kill(living[run]["pid"], signal.SIGTERM)
        deadline_s = time.monotonic() + PATIENCE_S
        while run_lock.lives(run):
            if time.monotonic() > deadline_s:
                pid = living[run]["pid"]
                raise RunError(f"{run} has not ended within {PATIENCE_S:.0f} s: kill {pid}, then elephan path clean")
            time.sleep(0.05)
        try:
            return str(json.load(facts)["report"])
        except (ValueError, KeyError):
            # Killed, or there was no room for it.
            return "it left no report"


def _keep(file: Path, overrides: Sequence[str]) -> None:
    """Be the process that holds the path."""
    scenario = load(file, overrides)
    spec, remark = spec_of(scenario)
    with (
        termination_requested() as wait_for_termination,
        open_path(ends_of(spec), spec, {"what": WHAT, "of": str(file.resolve())}) as path,
        congestion.as_default(path.place, spec) as control,
        live.listening(path, scenario, spec) as changed,
    ):
        remarks = [line for line in (control, remark) if line]
        path.place.note_facts({"remarks": remarks, "routers": testbed.routers_between(spec)})
        print(json.dumps({"id": path.place.id}), flush=True)
        if os.read(sys.stdin.fileno(), len(STAY)) != STAY:
            return
        nobody = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for stream in (sys.stdin, sys.stdout):
            os.dup2(nobody, stream.fileno())
        wait_for_termination(None)
        report = replace(path.stop(spec), changes=tuple(changed.history))
        path.place.note_facts({"report": report.text()})


def main(arguments: Sequence[str]) -> int:
    """Keep a path until told to end; say one line first."""
    try:
        _keep(Path(arguments[0]), arguments[1:])
    except ElephanError as error:
        print(json.dumps({"error": str(error), "exit_code": error.exit_code}), flush=True)
        return error.exit_code
    except Exception as error:
        # A fault of elephan's: this process has no terminal, so the last line of its traceback goes where the errors
        # go.
        print(json.dumps({"error": f"{type(error).__name__}: {error}", "exit_code": 1}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
