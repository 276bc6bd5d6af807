"""One path test, from here or from a host of the book."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.measure.target import Target

WaitForTermination = Callable[[float | None], bool]
"""Wait for signals that end a program (elephan.signals)."""
ANSWER_S = 0.2
"""Time between two looks for a signal while an agent measures, s."""


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
    """Return the outcome of a test from this machine. Raises `InputError`, `RunError`, `native.Stopped`."""
    tell = None if on_progress is None else (lambda text: on_progress(json.loads(text)))
    request = json.dumps(as_request(name, target, keys))
    try:
        outcome: dict[str, Any] = json.loads(native.path_test(request, wait_for_termination, tell))
    except ValueError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise RunError(str(error)) from error
    return outcome


def run_from(
    host: str, name: str, target: Target, keys: Mapping[str, Any], wait_for_termination: WaitForTermination
) -> dict[str, Any]:
    """Return the outcome of a test from a host of the book. Raises `InputError`, `RunError`, `native.Stopped`."""
    from elephan.hosts import Book
    from elephan.hosts.agent import connected, ending

    with connected(Book.read().find(host)) as agent:
        reply = agent.begin("measure", **as_request(name, target, keys))
        with ending(agent.inbox, [reply]):
            while not agent.inbox.wait(lambda: reply.has_ended, ANSWER_S):
                if wait_for_termination(0):
                    raise native.Stopped("told to stop")
            return reply.result()
