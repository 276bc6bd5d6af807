"""Two ends of a line: a port that sends, and the receiver it sends to, here or at another machine."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.line import safety
from elephan.line.mix import Mix
from elephan.line.trial import Outcome, Row, Trial

WaitForTermination = Callable[[float | None], bool]
"""Wait for signals that end a program (elephan.signals)."""
SLICE_NS = 200 * 10**6
"""Time of one call to the core, ns."""
STOPPED = "told to stop"
"""Reason of an end by a signal."""
BUSY = "the receiver is busy"
"""Begin of the core's reason where the receiver takes no second stream: nothing was sent."""
OnRow = Callable[[Row], str | None]
"""Takes a row of the series; returns a reason to end the stream, or None."""
METHODS = ("af-xdp", "packet-mmap")
"""Ways to an interface's frames that the core knows."""


@dataclass(frozen=True)
class End:
    """An interface, and how a test uses it."""

    interface: str
    method: str | None = None
    """One of `METHODS`; None: the best that the interface takes."""
    address: str | None = None
    """MAC address of one's own; None: made of the interface's."""
    vlan: int | None = None
    """Virtual LAN; None: frames without a tag."""
    force: bool = False
    """Test an interface that is in use."""

    def check(self, role: Literal["send", "receive"]) -> End:
        """Return it with its address for a role. Raises `InputError` for an interface that must not be tested."""
        if self.method is not None and self.method not in METHODS:
            raise InputError(f"--method {self.method}: {' or '.join(METHODS)} is needed")
        if self.vlan is not None and not 1 <= self.vlan <= 4094:
            raise InputError(f"--vlan {self.vlan}: 1 to 4094 is needed")
        given = None if self.address is None else safety.parse_own_address("--address", self.address)
        hardware = safety.check(self.interface, self.force)
        return replace(self, address=given or safety.own_address(hardware, role))

    def open(self, wait_for_termination: WaitForTermination) -> native.LinePort:
        """Return the port. Raises `RunError`."""
        try:
            return native.LinePort(self.interface, self.method, self.address, self.vlan, wait_for_termination)
        except OSError as error:
            raise RunError(f"{self.interface}: {error}") from error


class Interruption:
    """A signal that ends a test: it interrupts the core once, which then has to ask the receiver for its counts."""

    def __init__(self, wait_for_termination: WaitForTermination) -> None:
        """Wait for signals by `wait_for_termination`."""
        self._wait = wait_for_termination
        self._is_acknowledged = False

    def __call__(self, seconds: float | None) -> bool:
        """Wait for a signal that was not acknowledged, as `wait_for_termination` does."""
        if not self._is_acknowledged:
            return self._wait(seconds)
        time.sleep(seconds or 0)
        return False

    def acknowledge(self) -> None:
        """Let the core finish."""
        self._is_acknowledged = True


class Receiver:
    """A receiver on an interface of this machine, in a thread of its own."""

    def __init__(self, end: End, say: Callable[[str], None]) -> None:
        """Open the interface and serve. Raises `RunError`."""
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._say = say
        self.info: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._serve, args=(end,), name="elephan-line-receiver")
        self._thread.start()
        self._ready.wait()
        try:
            self.check()
        except BaseException:
            self.close()
            raise

    def check(self) -> None:
        """Raise the error that ended the receiver, if one did."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End it, and wait until it has."""
        self._stop.set()
        self._thread.join()

    def _serve(self, end: End) -> None:
        port = None
        try:
            # The port's wait is for the end of this receiver: a signal ends the sender first, which asks for counts.
            port = end.open(self._stop.wait)
            self.info = json.loads(port.info())
            self._ready.set()
            while not self._stop.is_set():
                port.serve(SLICE_NS)
        except native.Stopped:
            pass
        except OSError as error:
            self._error = RunError(f"{end.interface}: the receiver ended: {error}")
        except BaseException as error:  # handed to the sender's thread, which raises it
            self._error = error
        finally:
            if port is not None:
                with suppress(Exception):
                    for line in port.take_log():
                        self._say(f"{end.interface}: {line}")
            self._ready.set()


@dataclass
class Session:
    """A port and its receiver."""

    port: native.LinePort
    to: str
    """Address of the receiver."""
    info: dict[str, Any]
    """Facts about the port: interface, method, reason, mtu_bytes, rate_bps."""
    far: dict[str, Any]
    """Facts about the receiver: address, interface, method, mtu_bytes."""
    has_vlan: bool
    interruption: Interruption
    receiver: Receiver | None = None
    stream: int = 0
    """Number of the last stream: it tells the streams of a port apart."""

    @property
    def mtu_bytes(self) -> int:
        """The smaller MTU of both ends."""
        return min(int(self.info["mtu_bytes"]), int(self.far["mtu_bytes"]))

    def check(self, option: str, mix: Mix) -> None:
        """Raise `InputError` for a size of frames that an end does not take."""
        mix.check(option, self.mtu_bytes, self.has_vlan)

    def send(self, trial: Trial, on_row: OnRow | None = None) -> Outcome:
        """Send a stream, wait for the receiver's counts, and return both.

        A signal ends it early: `ended` is then `STOPPED`. With `on_row` the rows of the series go there as they come,
        and are not kept; the reason that it returns ends the stream, and is then `ended`. Raises `InputError`,
        `RunError`.
        """
        rows: list[Row] = []
        take: OnRow = rows.append if on_row is None else on_row
        ended = None
        self.stream = (self.stream + 1) % 2**32
        try:
            self.port.start(trial.spec(self.to, self.stream))
            try:
                while not self.port.run(SLICE_NS):
                    reason = self._step(take)
                    if reason is not None and ended is None:
                        ended = reason
                        self.port.end()
            except native.Stopped:
                ended = STOPPED
                self.interruption.acknowledge()
                self.port.end()
                while not self.port.run(SLICE_NS):
                    self._step(take)
            self._step(take)
        except ValueError as error:
            raise InputError(str(error)) from error
        except OSError as error:
            raise RunError(f"{self.info['interface']}: {error}") from error
        outcome = Outcome.from_json(self.port.result(), tuple(rows))
        return outcome if ended is None else replace(outcome, ended=ended)

    def run(self, trial: Trial) -> Outcome:
        """Send a stream to its end, with the receiver's counts.

        Raises `native.Stopped` after a signal, `RunError` where it ended early or the receiver gave no counts.
        """
        outcome = self.send(trial)
        if outcome.ended == STOPPED:
            raise native.Stopped(STOPPED)
        if outcome.ended is not None:
            raise RunError(self.why_ended(outcome.ended))
        if outcome.received is None:
            raise RunError(f"{self.to}: the receiver gave no counts: does elephan line receive still run there?")
        return outcome

    def why_ended(self, reason: str) -> str:
        """Return the line about a stream that ended before its time."""
        return f"{self.to}: {reason}" if reason.startswith(BUSY) else f"it was over before its time: {reason}"

    def answers(self, within_ns: int) -> bool:
        """Return True if the receiver answers and no other sender has it; False after all of the time.

        Raises `RunError`, and `native.Stopped` after a signal.
        """
        end_s = time.monotonic() + within_ns / 1e9
        try:
            found = json.loads(self.port.find(self.to, within_ns))
        except OSError as error:
            raise RunError(f"{self.info['interface']}: {error}") from error
        if found and not found[0]["is_busy"]:
            return True
        if self.interruption(max(0.0, end_s - time.monotonic())):
            raise native.Stopped(STOPPED)
        return False

    def _step(self, take: OnRow) -> str | None:
        """Hand on the rows that have come; return a reason to end the stream, if one of them has it."""
        if self.receiver is not None:
            self.receiver.check()
        reason = None
        for given in json.loads(self.port.take_series()):
            row = Row.of(given)
            if not row.is_empty:
                reason = take(row) or reason
        return reason


@contextmanager
def opened(
    end: End,
    *,
    to: str | None,
    far: End | None,
    within_ns: int,
    wait_for_termination: WaitForTermination,
    say: Callable[[str], None],
) -> Iterator[Session]:
    """Open an interface, and find the receiver: that at `to`, the one that answers (None), or `far`, which is served.

    Raises `InputError`, `RunError`, and `native.Stopped` after a signal.
    """
    if far is not None and far.interface == end.interface:
        raise InputError(f"--far {far.interface}: another interface is needed, at the other end of the line")
    if far is not None and to is not None:
        raise InputError("--far and --to: one of the two is needed: --far is the receiver")
    wanted = None if to is None else safety.parse_address("--to", to)
    end = end.check("send")
    far = None if far is None else far.check("receive")
    interruption = Interruption(wait_for_termination)
    receiver = None
    port = end.open(interruption)
    try:
        info = json.loads(port.info())
        say(f"{end.interface}: {info['method']} ({info['reason']}), MTU {info['mtu_bytes']} B, from {info['address']}")
        if far is not None:
            receiver = Receiver(far, say)
            wanted = str(receiver.info["address"])
        found = _found(port, wanted, end, within_ns)
        say(f"receiver: {found['address']} at {found['interface']}, {found['method']}, MTU {found['mtu_bytes']} B")
        # Streams of an earlier command that are still under way have other numbers.
        first = int.from_bytes(os.urandom(4), "big")
        has_vlan = end.vlan is not None
        yield Session(port, str(found["address"]), info, found, has_vlan, interruption, receiver, first)
    finally:
        if receiver is not None:
            receiver.close()
        for line in port.take_log():
            say(line)


def _found(port: native.LinePort, wanted: str | None, end: End, within_ns: int) -> dict[str, Any]:
    """Return the receiver. Raises `InputError`, `RunError`."""
    try:
        found = json.loads(port.find(wanted, within_ns))
    except OSError as error:
        raise RunError(f"{end.interface}: {error}") from error
    who = "no receiver" if wanted is None else wanted
    if not found:
        raise RunError(f"{who} {'answers' if wanted is None else 'does not answer'} behind {end.interface}: start "
                       "elephan line receive at the other end")  # fmt: skip
    if len(found) > 1:
        several = ", ".join(f"{one['address']} ({one['interface']})" for one in found)
        raise InputError(f"--to: {len(found)} receivers answer behind {end.interface}; name one of {several}")
    one: dict[str, Any] = found[0]
    if one["is_busy"]:
        raise RunError(f"{one['address']}: the receiver is busy with the stream of another")
    return one
