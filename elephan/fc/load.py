"""A load of frames from one port to another, with the latency of each frame."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.fc.end import Destination, End, WaitForTermination, as_run_error, found, opened

PAYLOAD_BYTES = (24, 2112)
"""Sizes of a frame's payload: a number and a time at least; FC's largest frame at most."""
SLICE_NS = 200 * 10**6
"""Time of one call to the core, ns."""
RESULT_S = 15.0
"""Longest wait for the other side's result, or for the end of a load that comes from there, s."""


@dataclass(frozen=True)
class Load:
    """A load."""

    to: str
    """Address or world wide name of the receiver."""
    rate_bps: int
    """Rate of the port, bit/s."""
    share_per_mille: int
    """Share of it that frames take, with delimiters and fill words."""
    sizes: Sequence[tuple[int, int]]
    """Payload in bytes and weight of each size."""
    duration_ns: int

    def check(self) -> None:
        """Raise `InputError` for what cannot be."""
        Destination.of(self.to)
        least, most = PAYLOAD_BYTES
        for size, _ in self.sizes:
            if not least <= size <= most:
                raise InputError(f"--size: {size} bytes; {least} to {most} are needed")
        if not sum(weight for _, weight in self.sizes):
            raise InputError("--size: one size with a weight above 0 is needed")
        if not 1 <= self.share_per_mille <= 1000:
            raise InputError("--share: 0.1% to 100% is needed")
        if self.rate_bps < 1 or self.duration_ns < 1:
            raise InputError("--rate and --duration: values above 0 are needed")


@dataclass(frozen=True)
class Measured:
    """Both directions at one port, as the core counts them."""

    id: str
    name: str
    sent: Mapping[str, Any] | None
    """The own load, with the receiver's `result`; None: none was sent."""
    received: Sequence[Mapping[str, Any]]
    """Loads that came, by sender."""
    ended: str | None
    """Reason of an early end."""

    def as_json(self) -> dict[str, Any]:
        """Return it as an object."""
        return {
            "id": self.id,
            "port": self.name,
            "sent": self.sent,
            "received": list(self.received),
            "ended": self.ended,
        }

    def lost(self) -> int:
        """Return the frames that did not come, of both directions."""
        results = [one["result"] for one in ([self.sent] if self.sent else []) if one["result"]]
        return sum(int(one["lost"]) for one in [*results, *self.received])


def put(
    end: End,
    load: Load | None,
    duration_ns: int | None,
    *,
    wait_for_termination: WaitForTermination,
    say: Callable[[str], None],
) -> Measured:
    """Log in, send a load if there is one, and count the loads of others.

    Without a load of its own the port counts for `duration_ns`, or until a signal. Raises `InputError`, `RunError`, and
    `native.Stopped` before the load begins.
    """
    if load is not None:
        load.check()
    with opened(end, wait_for_termination, say) as port:
        if load is not None:
            address, _ = found(port, Destination.of(load.to), end)
            # The number tells this load from an earlier one of the same port.
            number = int.from_bytes(os.urandom(4), "big")
            port.start_load(address, load.rate_bps, load.share_per_mille, list(load.sizes), load.duration_ns, number)
        else:
            say(f"{port.name()} listens at {port.id()}")
        ended = None
        try:
            with as_run_error():
                _serve(port, load is not None, duration_ns)
        except native.Stopped:
            ended = None if load is None else "told to stop"
        except RunError as error:
            ended = str(error)
        return Measured(port.id(), port.name(), _sent(port), _received(port), ended)


def _serve(port: native.FcPort, sends: bool, duration_ns: int | None) -> None:
    """Serve until the own load is done and those of others have ended, or for a time."""
    if not sends:
        end_s = None if duration_ns is None else time.monotonic() + duration_ns / 1e9
        while end_s is None or time.monotonic() < end_s:
            port.serve(SLICE_NS)
        return
    try:
        while not (port.sent() or {})["is_done"]:
            port.serve(SLICE_NS)
        late_s = time.monotonic() + RESULT_S
        while any(sent is None for _, _, sent, _ in port.received()) and time.monotonic() < late_s:
            port.serve(SLICE_NS)
    except native.Stopped:
        port.end_load()
        raise


def _sent(port: native.FcPort) -> dict[str, Any] | None:
    sent = port.sent()
    if sent is not None:
        del sent["is_done"]
    return sent


def _received(port: native.FcPort) -> list[dict[str, Any]]:
    return [{"from": sender, "sent": sent, **result} for sender, _, sent, result in port.received()]
