"""One path test, from here or from a host of the book."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.measure.target import Target

if TYPE_CHECKING:
    from elephan.hosts.agent import Agent

T = TypeVar("T")

WaitForTermination = Callable[[float | None], bool]
"""Wait for signals that end a program (elephan.signals)."""
ANSWER_S = 0.2
"""Time between two looks for a signal while an agent measures, s."""


def within(within_s: float, wait: WaitForTermination, test: Callable[[WaitForTermination], T]) -> T | None:
    """Return what `test` returns, which ends with `native.Stopped` when its argument says so; None: it took longer than
    `within_s`. Raises `native.Stopped` where `wait` said so.
    """
    deadline_s, is_late = time.monotonic() + within_s, False

    def stop(timeout_s: float | None) -> bool:
        nonlocal is_late
        is_late = time.monotonic() > deadline_s
        return is_late or wait(timeout_s)

    try:
        return test(stop)
    except native.Stopped:
        if is_late:
            return None
        raise


def as_request(name: str, target: Target, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a test as the core and the agent take them."""
    key = {} if target.key is None else {"key": target.key.hex()}
    return {"test": name, "towards": target.towards, **key, **keys}


def run(
    name: str,
    target: Target,
    keys: Mapping[str, Any],
    wait_for_termination: WaitForTermination,
    on_progress: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Return the outcome of a test from this machine, with its time as `took_s`.

    Raises `InputError`, `RunError`, `native.Stopped`.
    """
    began_s = time.monotonic()
    tell = None if on_progress is None else (lambda text: on_progress(json.loads(text)))
    request = json.dumps(as_request(name, target, keys))
    try:
        outcome: dict[str, Any] = json.loads(native.path_test(request, wait_for_termination, tell))
    except ValueError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise RunError(str(error)) from error
    return outcome | {"took_s": time.monotonic() - began_s}


def run_from(
    host: str, name: str, target: Target, keys: Mapping[str, Any], wait_for_termination: WaitForTermination
) -> dict[str, Any]:
    """Return the outcome of a test from a host of the book. Raises `InputError`, `RunError`, `native.Stopped`."""
    from elephan.hosts import Book
    from elephan.hosts.agent import connected

    with connected(Book.read().find(host)) as agent:
        return run_by(agent, as_request(name, target, keys), wait_for_termination)


def run_by(agent: Agent, request: Mapping[str, Any], wait_for_termination: WaitForTermination) -> dict[str, Any]:
    """Return the outcome of a request of `as_request`, by an agent. Raises `RunError`, `native.Stopped`."""
    from elephan.hosts.agent import ending

    began_s = time.monotonic()
    reply = agent.begin("measure", **request)
    with ending(agent.inbox, [reply]):
        while not agent.inbox.wait(lambda: reply.has_ended, ANSWER_S):
            if wait_for_termination(0):
                raise native.Stopped("told to stop")
        return {**reply.result(), "took_s": time.monotonic() - began_s}
