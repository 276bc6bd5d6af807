"""The ends of one attempt: one in this process or at a host's agent, with the same face."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol

from elephan.control_process import ControlFault
from elephan.copy.faults import LOST, CopyFailed
from elephan.core import native
from elephan.errors import ElephanError
from elephan.hosts.agent import Agent, AgentError, Reply

STOP_S = 5.0
"""Time for an end to stop with its journal synced; an agent's session is ended after it."""


class End(Protocol):
    """One end of an attempt."""

    role: str
    """"send" or "receive"."""
    name: str
    """For messages: the host, or "this machine"."""

    @property
    def report(self) -> dict[str, Any] | None:
        """`EndReport`, once it has ended well."""

    @property
    def fault(self) -> CopyFailed | None:
        """Reason that it has ended early."""

    def take(self) -> list[dict[str, Any]]:
        """Return the events since the last call, in order."""

    def stop(self) -> None:
        """Have it end soon."""

    def steer(self, change: Mapping[str, int]) -> None:
        """Hand it a change of streams or rate."""


def has_ended(end: End) -> bool:
    """Return True once there is a report or a fault."""
    return end.report is not None or end.fault is not None


class LocalEnd:
    """An end in this process, on a thread of its own."""

    def __init__(self, spec: Mapping[str, Any], name: str = "this machine") -> None:
        """Start it. Raises `InputError` for a specification that is none."""
        self.role: str = spec["role"]
        self.name = name
        self._report: dict[str, Any] | None = None
        self._fault: CopyFailed | None = None
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._end = native.CopyEnd(json.dumps(spec))
        self._thread = threading.Thread(target=self._run, name=f"elephan-copy-{self.role}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            report = json.loads(self._end.run(lambda text: self._events.put(json.loads(text))))
        except native.CopyFault as fault:
            self._fault = CopyFailed(fault.kind, f"{self.name}: {fault.text}")
        except BaseException as fault:  # an end that vanishes without a word would be waited for
            self._fault = CopyFailed("kernel", f"{self.name}: {fault}")
            raise
        else:
            self._report = report

    @property
    def report(self) -> dict[str, Any] | None:
        """See `End`."""
        return self._report

    @property
    def fault(self) -> CopyFailed | None:
        """See `End`."""
        return self._fault

    def take(self) -> list[dict[str, Any]]:
        """See `End`."""
        events = []
        while not self._events.empty():
            events.append(self._events.get())
        return events

    def stop(self) -> None:
        """See `End`."""
        self._end.stop()

    def join(self, timeout_s: float) -> None:
        """Wait for its thread."""
        self._thread.join(timeout_s)

    def steer(self, change: Mapping[str, int]) -> None:
        """See `End`."""
        self._end.steer(json.dumps(change))


class RemoteEnd:
    """An end at an agent."""

    def __init__(self, agent: Agent, spec: Mapping[str, Any]) -> None:
        """Start it. Raises the fault of a session that has ended."""
        self.role: str = spec["role"]
        self.agent = agent
        self.name = agent.host.name
        try:
            self._reply: Reply = agent.begin("copy", spec=spec)
        except ElephanError as error:
            raise CopyFailed(LOST, str(error)) from error

    @property
    def report(self) -> dict[str, Any] | None:
        """See `End`."""
        return None if self._reply.answer is None else self._reply.answer["report"]

    @property
    def fault(self) -> CopyFailed | None:
        """See `End`."""
        error = self._reply.error
        if error is None:
            return None
        if isinstance(error, ControlFault):
            # Another attempt would end in the same way.
            return CopyFailed("input", str(error))
        return CopyFailed(error.kind if isinstance(error, AgentError) else LOST, str(error))

    def take(self) -> list[dict[str, Any]]:
        """See `End`; frames come by the inbox of the attempt."""
        events, self._reply.events = self._reply.events, []
        return [{name: value for name, value in event.items() if name != "id"} for event in events]

    def stop(self) -> None:
        """See `End`."""
        self._tell("stop", {})

    def steer(self, change: Mapping[str, int]) -> None:
        """See `End`."""
        self._tell("steer", change)

    def _tell(self, request: str, keys: Mapping[str, int]) -> None:
        if self._reply.has_ended:
            return
        try:
            self.agent.begin(request, run=self._reply.number, **keys)
        except ElephanError:
            # Its end says so by its fault.
            return


def stopped(ends: list[End], take: Any, patience_s: float = STOP_S) -> None:
    """Stop the ends that run, and wait for them; `take(seconds)` takes frames of agents. A session that does not answer
    is ended.
    """
    for end in ends:
        if not has_ended(end):
            end.stop()
    deadline_s = time.monotonic() + patience_s
    while not all(has_ended(end) for end in ends) and time.monotonic() < deadline_s:
        take(0.05)
    for end in ends:
        if isinstance(end, LocalEnd):
            end.join(patience_s)
        elif isinstance(end, RemoteEnd) and not has_ended(end):
            end.agent.close(0)
