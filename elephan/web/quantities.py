"""The quantities of a path as pages show them: titles, units, charts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from elephan import units
from elephan.units import NOTHING


@dataclass(frozen=True)
class Quantity:
    """One quantity that a path test estimates."""

    name: str
    title: str
    unit: str
    """Of its values: s, bit/s, B, or nothing."""
    show: Callable[[float | None], str]


def _whole(value: float | None) -> str:
    return NOTHING if value is None or not math.isfinite(value) else f"{value:.0f}"


QUANTITIES = {
    one.name: one
    for one in (
        Quantity("rtt_s", "round-trip time", "s", units.duration),
        Quantity("forward_delay_s", "delay out", "s", units.duration),
        Quantity("reverse_delay_s", "delay back", "s", units.duration),
        Quantity("jitter_s", "jitter", "s", units.duration),
        Quantity("loss", "loss", "", units.loss),
        Quantity("capacity_bps", "capacity", "bit/s", units.rate),
        Quantity("available_bps", "available", "bit/s", units.rate),
        Quantity("throughput_bps", "throughput", "bit/s", units.rate),
        Quantity("queue_delay_s", "queue delay", "s", units.duration),
        Quantity("queue_bytes", "queue", "B", units.size),
        Quantity("path_mtu_bytes", "path MTU", "B", units.exact_size),
        Quantity("hops", "hops", "", _whole),
        Quantity("ttl", "TTL", "", _whole),
        Quantity("policer_rate_bps", "policer's rate", "bit/s", units.rate),
        Quantity("policer_burst_bytes", "policer's burst", "B", units.size),
    )
}


def quantity(name: str) -> Quantity:
    """Return a quantity by its name, one that this page does not know by the name alone."""
    return QUANTITIES.get(name) or Quantity(name, name.replace("_", " "), "", units.plain)


@dataclass(frozen=True)
class Line:
    """One curve of a chart."""

    quantity: str
    label: str


@dataclass(frozen=True)
class Chart:
    """One chart of a path's page."""

    key: str
    title: str
    what: str
    """Explanation below it."""
    unit: str
    lines: tuple[Line, ...]
    from_zero: bool = False
    benchmark: str = ""
    """The quantity whose benchmark is drawn behind it."""


CHARTS = (
    Chart(
        "rtt",
        "Round-trip time",
        "Median of each interval; pale: 5th to 95th percentile.",
        "s",
        (Line("rtt_s", "round-trip time"),),
        benchmark="rtt_s",
    ),
    Chart(
        "loss",
        "Loss",
        "Part of the probes that were lost in each interval: 1e-3 is one in 1000.",
        "ratio",
        (Line("loss", "loss"),),
        from_zero=True,
        benchmark="loss",
    ),
    Chart(
        "rates",
        "Capacity, available bandwidth, throughput",
        "Each path test's estimate; pale: its interval.",
        "bit/s",
        (
            Line("capacity_bps", "capacity"),
            Line("available_bps", "available"),
            Line("throughput_bps", "throughput"),
        ),
        from_zero=True,
        benchmark="available_bps",
    ),
    Chart(
        "one-way",
        "One-way delay",
        "Median out and back; the clocks' offset moves both in opposite directions.",
        "s",
        (Line("forward_delay_s", "out"), Line("reverse_delay_s", "back")),
    ),
    Chart(
        "jitter",
        "Jitter",
        "Median of the differences of successive round-trip times (RFC 3393); pale: 5th to 95th percentile.",
        "s",
        (Line("jitter_s", "jitter"),),
        from_zero=True,
        benchmark="jitter_s",
    ),
    Chart(
        "route",
        "Route",
        "TTL of answers as they come (windows up to 7 days), and hops that a test counted: a step is another route.",
        "count",
        (Line("ttl", "TTL"), Line("hops", "hops")),
    ),
)
"""In the order of the page."""
