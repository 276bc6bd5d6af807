"""A stand-in for the core's port, on a line in closed form: for tests of what is around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from elephan.core import native
from elephan.line.mix import Mix
from elephan.line.trial import Outcome, Row, Sent, Trial
from tests.line.model import Line

FAR = {"address": "02:00:00:00:00:09", "interface": "far0", "method": "model", "mtu_bytes": 9000, "is_busy": False}


class Port:
    """A port on a line in closed form, a row of the series for each call of `run`."""

    receivers: list[dict[str, Any]] = [FAR]
    fails: str | None = None
    """Error of a receiver's `serve`."""
    line = Line(10**9)
    """The line behind every port."""
    is_busy = False
    """The receiver takes no stream, although it answers."""
    lives = 0
    """Receivers that serve now."""

    def __init__(
        self, interface: str, method: str | None, address: str, vlan: int | None, wait: Callable[[float | None], bool]
    ) -> None:
        if interface == "gone0":
            raise OSError(19, "No such device")
        self.interface, self.address, self.wait = interface, address, wait
        self.is_ended = False

    def info(self) -> str:
        return json.dumps({"interface": self.interface, "address": self.address, "method": "model", "reason": "test",
                           "mtu_bytes": 1500, "rate_bps": 10**9})  # fmt: skip

    def streams(self) -> str:
        return json.dumps([{"from": FAR["address"], "stream": 7, "received": self.counts(), "is_over": True}])

    def counts(self) -> Any:
        outcome = self.line.run(Trial(Mix.of(1518), 10**9, 10**9))
        return outcome.as_json()["received"]

    def find(self, address: str | None, within_ns: int) -> str:
        found = [one for one in self.receivers if address in (None, one["address"])]
        return json.dumps(found or ([{**FAR, "address": address}] if address and Port.lives else []))

    def serve(self, span_ns: int) -> None:
        if self.fails:
            raise OSError(self.fails)
        Port.lives += 1
        try:
            if self.wait(0.01):
                raise native.Stopped("told to stop")
        finally:
            Port.lives -= 1

    def start(self, spec: str) -> None:
        given = json.loads(spec)
        if given["pcp"] is not None:
            raise ValueError("pcp: the frames have no tag")
        self.stream = given["stream"]
        sizes = tuple((size, weight) for size, weight in given["sizes"])
        trial = Trial(
            Mix(sizes), given["rate_bps"], given["duration_ns"], given["frames"], series_ns=given["series_ns"]
        )
        self.outcome = self.line.run(trial)
        if self.is_busy:
            nothing = Sent(0, 0, 0, 0, 0, 0)
            self.outcome = Outcome(nothing, None, None, "the receiver is busy with another stream")
        self.is_ended = False
        self.rows = list(self.outcome.series)
        self.done: list[Row] = []

    def run(self, span_ns: int) -> bool:
        if self.wait(0):
            raise native.Stopped("told to stop")
        if self.rows and not self.is_ended:
            self.done.append(self.rows.pop(0))
        return self.is_ended or not self.rows

    def end(self) -> None:
        self.is_ended = True

    def take_series(self) -> str:
        taken, self.done = self.done, []
        return json.dumps([asdict(row) for row in taken])

    def result(self) -> str:
        whole = self.outcome.as_json()
        whole.pop("series", None)
        return json.dumps(whole)

    def take_log(self) -> list[str]:
        return [f"{self.interface} says goodbye"]
