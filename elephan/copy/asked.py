"""Work that an end does on its own and that a signal stops: at an agent, or in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from elephan.copy.sides import host_of
from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.hosts.agent import Agent, connected, ending

LOOK_S = 0.1
"""Time between two looks for a signal, s."""

Wait = Callable[[float | None], bool]


def there(name: str, request: str, keys: Mapping[str, Any], wait: Wait) -> dict[str, Any]:
    """Return the answer of a host's agent, which runs as the user.

    Raises `InputError`, `RunError` and `native.Stopped`.
    """
    with connected(host_of(name), as_user=True) as agent:
        return asked(agent, request, keys, wait)


def asked(agent: Agent, request: str, keys: Mapping[str, Any], wait: Wait) -> dict[str, Any]:
    """See `there`; by an agent that is there already."""
    reply = agent.begin(request, **keys)
    with ending(agent.inbox, [reply]):
        while not agent.inbox.wait(lambda: reply.has_ended, LOOK_S):
            if wait(0):
                raise native.Stopped("stopped")
        return reply.result()


def here(work: Callable[[], str], stop: Callable[[], None], wait: Wait) -> dict[str, Any]:
    """Return what `work` does in this process, as JSON. Raises as `there`."""
    done: list[str] = []
    faults: list[native.CopyFault] = []

    def run() -> None:
        try:
            done.append(work())
        except native.CopyFault as fault:
            faults.append(fault)

    thread = threading.Thread(target=run, name="elephan-copy-work", daemon=True)
    thread.start()
    while thread.is_alive():
        if wait(0):
            stop()
            raise native.Stopped("stopped")
        thread.join(LOOK_S)
    if faults:
        raise (InputError if faults[0].kind == "input" else RunError)(f"this machine: {faults[0].text}")
    found: dict[str, Any] = json.loads(done[0])
    return found
