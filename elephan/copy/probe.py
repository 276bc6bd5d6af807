"""A reflector at the receiver for the time of a copy: path tests towards it before, small packets beside it.

Tests go the way of the data, from sender to receiver. The small packets of the copy's time go from this machine where
one side is here, since only their round trip and loss count.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from elephan.copy.sides import Side, Sides
from elephan.core import native
from elephan.errors import ElephanError, RunError
from elephan.hosts.agent import Agent, Reply, connected
from elephan.measure.target import KEY_BYTES, Target, in_brackets, reflecting_by
from elephan.measure.test import as_request, run_by, within

INTERVAL_S = 0.05
"""Time between two small packets, s: 20 of them each second, some 20 kbit/s."""
TIMEOUT_S = 1.0
"""A small packet without an answer is lost after it, s."""
LOOK_S = 0.05

Wait = Callable[[float | None], bool]


@contextmanager
def reflecting(side: Side, address: str) -> Iterator[Target]:
    """Give a reflector at a side, reached at `address`, until the context ends. Raises `RunError` and `InputError`."""
    if side.host is not None:
        # A session of its own: an agent does one thing at a time, and copies by the other one.
        with connected(side.host, as_user=True) as agent, reflecting_by(agent, lambda: address) as target:
            yield target
        return
    key = secrets.token_bytes(KEY_BYTES)
    any_address = "[::]:0" if ":" in address else "0.0.0.0:0"
    try:
        server = native.PathReflector([any_address], key=key, short_replies=True)
    except OSError as error:
        raise RunError(f"this machine: no reflector: {error}") from error
    ends = threading.Event()
    thread = threading.Thread(target=lambda: server.serve(lambda _seconds: ends.is_set()), daemon=True)
    thread.start()
    try:
        yield Target(f"{in_brackets(address)}:{server.addresses()[0].rpartition(':')[2]}", key)
    finally:
        ends.set()
        thread.join(2.0)


@contextmanager
def tester(sender: Side, reflector: Target, wait: Wait) -> Iterator[Callable[[Mapping[str, Any], float], Any]]:
    """Give a function that makes a path test from the sender within so many seconds; it returns None for one that takes
    longer. Raises `RunError`, `InputError`; the function also `native.Stopped`.
    """

    def request(keys: Mapping[str, Any]) -> dict[str, Any]:
        return as_request(keys["test"], reflector, {name: value for name, value in keys.items() if name != "test"})

    if sender.host is None:
        yield lambda keys, within_s: within(within_s, wait, lambda stop: _test_here(request(keys), stop))
        return
    with connected(sender.host, as_user=True) as agent:
        yield lambda keys, within_s: within(within_s, wait, lambda stop: run_by(agent, request(keys), stop))


def _test_here(request: Mapping[str, Any], stop: Wait) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(native.path_test(json.dumps(request), stop))
    except (ValueError, OSError) as error:
        raise RunError(f"this machine: {request['test']}: {error}") from error
    return found


@dataclass
class Beside:
    """Small packets beside a copy: what the last interval gave."""

    take: Callable[[], tuple[float | None, float | None]]
    """Median round trip, s, and share that was lost since the last call; None where no packet was due."""


@dataclass
class _Seen:
    round_trips: list[float] = field(default_factory=list)
    lost: int = 0

    def told(self) -> tuple[float | None, float | None]:
        """Return what was seen, and begin anew."""
        found, lost = sorted(self.round_trips), self.lost
        self.round_trips, self.lost = [], 0
        if not found and not lost:
            return None, None
        return (found[len(found) // 2] if found else None), lost / (lost + len(found))


@contextmanager
def beside(sides: Sides, reflector: Target) -> Iterator[Beside]:
    """Send small packets towards the reflector until the context ends. Raises `RunError`."""
    if sides.source.host is None:
        with _from_here(reflector) as found:
            yield found
    elif sides.destination.host is None:
        # The reflector of the tests is here: packets from here need one at the sender.
        with reflecting(sides.source, sides.address(sides.source)) as other, _from_here(other) as found:
            yield found
    else:
        with connected(sides.source.host, as_user=True) as agent:
            yield Beside(_Rounds(agent, reflector).take)


@contextmanager
def _from_here(reflector: Target) -> Iterator[Beside]:
    try:
        session = native.path_session(
            reflector.towards,
            key=reflector.key,
            interval_ns=round(INTERVAL_S * 1e9),
            timeout_ns=round(TIMEOUT_S * 1e9),
        )
    except (ValueError, OSError) as error:
        raise RunError(f"this machine: no packets beside the copy: {error}") from error
    seen, lock, ends = _Seen(), threading.Lock(), threading.Event()

    def run() -> None:
        while not ends.is_set():
            samples = session.poll(LOOK_S)
            with lock:
                for sample in samples:
                    if sample["rtt_ns"] is None:
                        seen.lost += 1
                    else:
                        seen.round_trips.append(sample["rtt_ns"] / 1e9)

    def take() -> tuple[float | None, float | None]:
        with lock:
            return seen.told()

    thread = threading.Thread(target=run, name="elephan-copy-probe", daemon=True)
    thread.start()
    try:
        yield Beside(take)
    finally:
        ends.set()
        thread.join(2.0)
        session.close()


class _Rounds:
    """Tests of one second each, one after the other, from an agent."""

    def __init__(self, agent: Agent, reflector: Target) -> None:
        self._agent = agent
        keys = {
            "count": round(1 / INTERVAL_S),
            "interval_ns": round(INTERVAL_S * 1e9),
            "timeout_ns": round(TIMEOUT_S * 1e9),
        }
        self._request = as_request("stamp", reflector, keys)
        self._reply: Reply | None = None

    def take(self) -> tuple[float | None, float | None]:
        """Return what the last whole round gave; begin the next."""
        try:
            if self._reply is None:
                self._reply = self._agent.begin("measure", **self._request)
            self._agent.inbox.take(0)
            if not self._reply.has_ended:
                return None, None
            outcome, self._reply = self._reply.result(), None
        except ElephanError:
            self._reply = None
            return None, None
        values = {one["quantity"]: one["value"] for one in outcome["estimates"]}
        return values.get("rtt_s"), values.get("loss")
