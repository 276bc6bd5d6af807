"""An agent on a host, driven over the channel of its SSH session (docs/design/agent.md)."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from elephan.core import version
from elephan.errors import ElephanError, InputError, RunError
from elephan.hosts import boot
from elephan.hosts.agents import agent_files
from elephan.hosts.book import Host
from elephan.hosts.frame import FRAME_MOST, LENGTH_BYTES, MalformedFrameError, frame_of
from elephan.hosts.ssh import Session
from elephan.printable import one_line

PROTOCOL = 3
"""Version of the protocol."""

LEASE_S = 60
"""Silence after which an agent takes this machine, or the network to it, for dead, and ends, s."""

ALIVE_S = 10.0
"""Time between two signs of life, s."""

ANSWER_S = 20.0
"""Time for an answer that needs no run, s."""

STOP_S = 5.0
"""Time for an agent to end a run that was stopped, s. Its session ends otherwise, and the run with it."""


class AgentError(RunError):
    """An agent refused a request, or could not do it. `kind` is the protocol's."""

    def __init__(self, host: Host, kind: str, text: str) -> None:
        """Name the host before the agent's text."""
        super().__init__(f"{host.name}: {one_line(text)}")
        self.host = host
        self.kind = kind
        self.text = one_line(text)
        # The user's own input, or rights that an administrator would have to give.
        self.exit_code = 2 if kind in ("input", "rights") else 1


@dataclass
class Reply:
    """The events and the answer of one request, as they come."""

    agent: Agent
    request: str
    number: int
    """Id of the request."""
    events: list[dict[str, Any]] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    error: ElephanError | None = None

    @property
    def has_ended(self) -> bool:
        """True if there is an answer or an error."""
        return self.answer is not None or self.error is not None

    def event(self, name: str) -> dict[str, Any] | None:
        """Return the last event of that name, None when there was none."""
        return next((event for event in reversed(self.events) if event["event"] == name), None)

    def result(self) -> dict[str, Any]:
        """Return the answer. Raises the error."""
        if self.error is not None:
            raise self.error
        assert self.answer is not None, "it has ended"
        return self.answer


class Inbox:
    """The frames of some agents, in order of arrival."""

    def __init__(self) -> None:
        """Make an empty one."""
        # Bounded: an agent that sends faster than this side takes is to wait.
        self._frames: queue.Queue[tuple[Agent, dict[str, Any] | None]] = queue.Queue(maxsize=256)

    def put(self, agent: Agent, frame: dict[str, Any] | None) -> None:
        """Add a frame, None for the end of the channel."""
        self._frames.put((agent, frame))

    def take(self, timeout_s: float) -> bool:
        """Give the next frame to its request; return False when none came in time."""
        try:
            agent, frame = self._frames.get(timeout=max(timeout_s, 0.0))
        except queue.Empty:
            return False
        agent.dispatch(frame)
        return True

    def wait(self, seen: Callable[[], bool], timeout_s: float) -> bool:
        """Take frames until `seen` holds; return False when it does not after `timeout_s`."""
        deadline_s = time.monotonic() + timeout_s
        while not seen():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            self.take(min(left_s, 0.1))
        return True


class Agent:
    """One agent, from its start to its end. The calls are for one thread."""

    def __init__(
        self, host: Host, inbox: Inbox | None = None, as_user: bool = False, install: bool = False
    ) -> None:
        """Start it, and send its file first where the host lacks it; `as_user`: without sudo; `install`: also for all
        users of the host. Raises `InputError` and `RunError`.
        """
        self.host = host
        self.inbox = inbox or Inbox()
        self._replies: dict[int, Reply] = {}
        self._next = 1
        self._fault: ElephanError | None = None
        self._malformed: str | None = None
        """Fault of the last frame, where it is none."""
        self._has_read_all = False
        """True once the channel has ended."""
        self.session = Session(host, agent_files(), as_user, install)
        self._reader = threading.Thread(target=self._read, name=f"elephan-{host.name}", daemon=True)
        self._reader.start()
        self._writing = threading.Lock()
        self._closing = threading.Event()
        try:
            self.hello = self.ask("hello", protocol=PROTOCOL, lease_s=LEASE_S)
            threading.Thread(target=self._stay_alive, name=f"elephan-{host.name}-alive", daemon=True).start()
            if (other := self.hello.get("version")) != version():
                raise RunError(
                    f"{host.name}: its agent is of elephan {one_line(str(other))}, and this is {version()}: "
                    f"elephan hosts clean {host.name}"
                )
        except BaseException:
            self.close()
            raise

    @property
    def deployed(self) -> bool:
        """True if its file was sent."""
        return self.session.deployed

    def begin(self, request: str, **keys: Any) -> Reply:
        """Send a request and return its reply, which is still to come. Raises the fault of a channel that has ended."""
        number = self._next
        self._next += 1
        reply = self._replies[number] = Reply(self, request, number)
        body = json.dumps({"id": number, "request": request, **keys}, separators=(",", ":")).encode()
        if len(body) > FRAME_MOST:
            limit = f"exceeds the agent's limit of {FRAME_MOST}"
            raise InputError(f"{self.host.name}: a request of {len(body)} bytes {limit}")
        if self._fault is not None:
            raise self._fault
        try:
            self._write(body)
        except (OSError, ValueError):
            raise self._ended() from None
        return reply

    def is_alive(self) -> bool:
        """Return True if its channel is open, as far as is known here."""
        return self._fault is None and self.session.is_alive()

    def ask(self, request: str, timeout_s: float = ANSWER_S, **keys: Any) -> dict[str, Any]:
        """Send a request and wait for its answer. Raises `AgentError`, `RunError`, `InputError`."""
        reply = self.begin(request, **keys)
        if not self.inbox.wait(lambda: reply.has_ended, timeout_s):
            raise RunError(f"{self.host.name}: no answer to {request} within {timeout_s:g} s")
        return reply.result()

    def dispatch(self, frame: Mapping[str, Any] | None) -> None:
        """Give a frame to its request; None is the end of the channel, which ends all of them."""
        reply = None if frame is None else self._replies.get(frame["id"])
        if frame is None or reply is None:
            if frame is not None:
                # An error that belongs to no request: the agent could not read one, and ends.
                error = frame.get("error", {"kind": "protocol", "text": "an answer to no request"})
                self._fault = AgentError(self.host, error["kind"], error["text"])
            fault = self._ended()
            for reply in self._replies.values():
                if not reply.has_ended:
                    reply.error = fault
            return
        if "event" in frame:
            if frame["event"] == "progress":
                reply.events = [event for event in reply.events if event["event"] != "progress"]
            reply.events.append(dict(frame))
        elif "error" in frame:
            reply.error = AgentError(self.host, frame["error"]["kind"], frame["error"]["text"])
        else:
            reply.answer = frame["answer"]

    def close(self, patience_s: float = 3.0) -> None:
        """End the channel, and so the agent and what it made on its host."""
        self._closing.set()
        self.session.close(patience_s)

    def _write(self, body: bytes) -> None:
        with self._writing:
            self.session.input.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
            self.session.input.flush()

    def _stay_alive(self) -> None:
        """Tell the agent that this side lives, until it is to end."""
        while not self._closing.wait(ALIVE_S):
            try:
                self._write(b'{"id":0,"request":"alive"}')
            except (OSError, ValueError):
                # The reader finds the end of the channel, too, and says so.
                return

    def _ended(self) -> ElephanError:
        if self._fault is None:
            if self._malformed is None:
                self._fault = self.session.fault()
            else:
                self.session.close(0)
                self._fault = RunError(f"{self.host.name}: its agent sent what is no frame: {self._malformed}")
        return self._fault

    def deliver_to(self, inbox: Inbox) -> None:
        """Have frames from now on in `inbox`, and the end of the channel, which may have come already."""
        self.inbox = inbox
        if self._has_read_all:
            inbox.put(self, None)

    def _read(self) -> None:
        source = self.session.output
        try:
            while (found := frame_of(source)) is not None:
                self.inbox.put(self, found)
        except MalformedFrameError as fault:
            self._malformed = str(fault)
        except (OSError, ValueError):
            # Closed from this side.
            pass
        finally:
            # Before the inbox is looked up: see `deliver_to`.
            self._has_read_all = True
            self.inbox.put(self, None)


@contextmanager
def connected(host: Host, as_user: bool = False, install: bool = False) -> Iterator[Agent]:
    """Give the agent of a host, and end it with the context; `as_user`, `install`: see `Agent`. Raises `InputError` and
    `RunError`.
    """
    agent = Agent(host, as_user=as_user, install=install)
    try:
        yield agent
    finally:
        agent.close()


def together(hosts: list[Host], inbox: Inbox, as_user: bool = False) -> list[Agent]:
    """Start the agents of several hosts at once; `as_user`: without sudo.

    Raises the first fault, after the others have ended.
    """
    agents: list[Agent | None] = [None] * len(hosts)
    faults: list[BaseException | None] = [None] * len(hosts)

    def start(number: int) -> None:
        try:
            agents[number] = Agent(hosts[number], as_user=as_user)
        except BaseException as fault:  # handed to the caller's thread, which raises it
            faults[number] = fault

    threads = [threading.Thread(target=start, args=(number,)) for number in range(len(hosts))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for fault in faults:
            if fault is not None:
                raise fault
    except BaseException:
        for thread in threads:
            thread.join()
        for agent in agents:
            if agent is not None:
                agent.close()
        raise
    made = [agent for agent in agents if agent is not None]
    for agent in made:
        agent.deliver_to(inbox)
    return made


__all__ = ["Agent", "AgentError", "Inbox", "Reply", "boot", "connected", "together"]


@contextmanager
def ending(inbox: Inbox, replies: list[Reply]) -> Iterator[None]:
    """Stop the requests that still run when the context ends; a session that does not answer is ended."""
    try:
        yield
    finally:
        for reply in replies:
            if not reply.has_ended:
                try:
                    reply.agent.begin("stop", run=reply.number)
                except ElephanError:
                    continue
        inbox.wait(lambda: all(reply.has_ended for reply in replies), STOP_S)
        for reply in replies:
            if not reply.has_ended:
                reply.agent.close()
