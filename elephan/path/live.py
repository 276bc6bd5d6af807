"""A path that other commands look at and change while it runs: `elephan path show` and `elephan path set`.

The process that holds the path listens on a UNIX socket in the run's folder, in a thread of its own, so that changes
come one after the other.
"""

from __future__ import annotations

import copy
import os
import selectors
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from elephan.command_socket import Control, Reply, ask
from elephan.errors import ElephanError, InputError, RunError
from elephan.path import changes, testbed
from elephan.path.netem import Netem
from elephan.path.session import Opened, spec_of
from elephan.run_spec.types import RunSpec
from elephan.scenario import Scenario

SOCKET = "commands"
"""Name of the socket in the run's folder."""
ANSWER_S = 30.0
"""Longest wait for an answer, s: a scenario with a large sweep is expanded once more."""


class Live:
    """A path that is up, its scenario, and what was changed."""

    def __init__(self, path: Opened | Netem, scenario: Scenario, spec: RunSpec) -> None:
        """Take a path that was just started by the specification of a scenario."""
        self._path = path
        self._scenario = scenario
        self._present = changes.Present(spec)
        self._since_s = time.monotonic()
        self.history: list[str] = []
        """A line for each change, for the report."""

    def lines(self) -> list[str]:
        """Return the present values of links and background sources."""
        self._present.follow_events(self._path.event_times())
        return self._present.lines()

    def change(self, settings: Sequence[str]) -> None:
        """Make a change of the keys in `settings`, all at one time, or none of it. Raises `InputError`."""
        values, states = changes.split(settings)
        before = self._scenario
        # The text as it was at the beginning: an edit of the file since then is none of this path.
        scenario = Scenario(before.file, before.text, [*before.overrides, *values])
        wanted, _ = spec_of(scenario)
        self._present.follow_events(self._path.event_times())
        change = self._present.change_to(wanted, values, states)
        after = copy.deepcopy(self._present)
        after.take(wanted, change)
        self._path.change(change, after.spec)
        self._present, self._scenario = after, scenario
        self.history.append(f"changed after {time.monotonic() - self._since_s:.3f} s: {' '.join(settings)}")

    def handle(self, asked: dict[str, Any], reply: Reply) -> None:
        """Answer a request."""
        try:
            if "set" in asked:
                self.change([str(setting) for setting in asked["set"]])
            reply({"lines": self.lines()})
        except ElephanError as error:
            reply({"error": str(error), "exit_code": error.exit_code})


@contextmanager
def listening(path: Opened | Netem, scenario: Scenario, spec: RunSpec) -> Iterator[Live]:
    """Start a path, and let other commands look at it and change it until the context ends. Raises `RunError`."""
    live = Live(path, scenario, spec)
    ear, mouth = os.pipe2(os.O_CLOEXEC)
    try:
        with selectors.DefaultSelector() as selector:
            control = Control(path.place.folder() / SOCKET, selector, live.handle)
            selector.register(ear, selectors.EVENT_READ)
            path.start(spec)
            thread = threading.Thread(target=_serve, args=(selector, ear), name="elephan-path-commands")
            thread.start()
            try:
                yield live
            finally:
                os.write(mouth, b"!")
                thread.join()
                control.close()
    finally:
        os.close(ear)
        os.close(mouth)


def _serve(selector: selectors.BaseSelector, end: int) -> None:
    while True:
        for key, _ in selector.select():
            if key.fileobj == end:
                return
            key.data()


def lines_of(run: str) -> tuple[str, ...]:
    """Return the present values of a path that another process holds; empty when it has none, or is going."""
    with suppress(RunError, OSError, ValueError):
        answer = _ask(run, {})
        return tuple(map(str, answer["lines"]))
    return ()


def change(run: str, settings: Sequence[str]) -> tuple[str, ...]:
    """Change a path that another process holds; return its values then. Raises `InputError` and `RunError`."""
    return tuple(map(str, _ask(run, {"set": list(settings)})["lines"]))


def _ask(run: str, asked: dict[str, Any]) -> dict[str, Any]:
    answer = ask(testbed.folder_of(run) / SOCKET, asked, ANSWER_S, f"the path {run}")
    if answer is None:
        raise RunError(f"the path {run} takes no commands")
    if "error" in answer:
        raise (InputError if answer["exit_code"] == InputError.exit_code else RunError)(answer["error"])
    return answer
