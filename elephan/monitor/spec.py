"""A monitor's file as plain data in integers: what the process that runs all the time holds of it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

STAMP_PACKET_BYTES = 72
"""A STAMP test packet with UDP and IPv4 headers (RFC 8762: 44 bytes); 20 more over IPv6."""


@dataclass(frozen=True)
class TestSpec:
    """A path test and how often."""

    __test__ = False

    test: str
    period_ns: int
    duration_ns: int | None = None
    """Of `throughput`."""


@dataclass(frozen=True)
class PathSpec:
    """A path."""

    name: str
    towards: str | None
    """ADDRESS:PORT of a STAMP reflector."""
    host: str | None
    """Name in the book of hosts, whose agent reflects."""
    key_file: str | None
    """File of the key of authenticated mode."""
    line_bps: int
    budget_e6: int
    """Part of the line's rate that tests may use, parts of 10^6."""
    bottleneck: str
    """Tests that share one never overlap; by default the path's own."""
    benchmark: dict[str, float]
    """Agreed values by quantity."""
    transfers: tuple[str, ...]
    """Absolute paths of scenarios."""
    paused: bool
    tests: tuple[TestSpec, ...]
    change_e6: int = 200_000
    """Relative change that matters, parts of 10^6."""

    @property
    def budget_bytes_per_s(self) -> float:
        """Return what tests may put on the line, bytes/s from the IP headers on."""
        return self.line_bps * self.budget_e6 / 8e6

    def stamp(self) -> TestSpec | None:
        """Return the on-going test."""
        return next((one for one in self.tests if one.test == "stamp"), None)

    def settings(self) -> dict[str, Any]:
        """Return what the store keeps of it, for readers."""
        stamp = self.stamp()
        return {
            "towards": self.towards,
            "host": self.host,
            "line_rate_bps": self.line_bps,
            "budget": self.budget_e6 / 1e6,
            "bottleneck": self.bottleneck,
            "benchmark": self.benchmark,
            "transfers": list(self.transfers),
            "stamp_period_s": None if stamp is None else stamp.period_ns / 1e9,
            "tests": [{"test": one.test, "period_s": one.period_ns / 1e9} for one in self.tests],
        }


@dataclass(frozen=True)
class AlertSpec:
    """Receivers of alerts, and their hours."""

    urls: tuple[str, ...] = ()
    urls_file: str | None = None
    quiet: tuple[tuple[int, int], ...] = ()
    """Begin and end of quiet hours, minutes of the local day."""
    repeat_s: float | None = None
    """Time after which an alert that lasts is sent again."""
    urgent: tuple[str, ...] = ()
    """Kinds that are sent in quiet hours too."""


@dataclass(frozen=True)
class Spec:
    """A monitor."""

    name: str
    file: str
    paths: tuple[PathSpec, ...]
    raw_s: float
    minutes_s: float
    hours_s: float
    free_bytes: int
    """Space on the disk below which the oldest raw samples go."""
    metrics: tuple[str, int] | None = None
    alerts: AlertSpec = field(default_factory=AlertSpec)

    def to_json(self) -> str:
        """Return it as a line of JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Spec:
        """Return what `to_json` wrote."""
        raw = json.loads(text)
        paths = tuple(
            PathSpec(
                **{
                    **one,
                    "transfers": tuple(one["transfers"]),
                    "tests": tuple(TestSpec(**test) for test in one["tests"]),
                }
            )
            for one in raw["paths"]
        )
        told = raw["alerts"]
        alerts = AlertSpec(
            tuple(told["urls"]),
            told["urls_file"],
            tuple((begin, end) for begin, end in told["quiet"]),
            told["repeat_s"],
            tuple(told["urgent"]),
        )
        metrics = None if raw["metrics"] is None else (raw["metrics"][0], raw["metrics"][1])
        return cls(**{**raw, "paths": paths, "alerts": alerts, "metrics": metrics})
