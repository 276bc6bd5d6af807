"""A flow entry's metric from those of its connections: summed, the largest, weighted, or read from distributions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elephan.record import Record

if TYPE_CHECKING:
    from elephan.report.distributions import Distribution

_PERCENTILE = re.compile(r"_p(\d+)_s$")
_MAXIMUM = re.compile(r"_max_s$|^held_bytes_max$|^completion_(low_|high_)?s$|^drain_s$")

COUNTED_BY = (
    ("latency_", "messages"),
    ("lag_", "messages"),
    ("read_", "reads"),
    ("write_", "writes"),
    ("queue_", "requests"),
    ("network_", "requests"),
    ("disk_", "requests"),
)
"""Beginning of a mean's name: the metric that counts its values, which is a connection's weight."""


def combined(record: Record, group: object, connections: Sequence[dict[str, Any]], name: str) -> float | None:
    """Return a metric of the connections of a flow entry; None when none of them has it.

    Counters, rates and times of waiting add up; a largest or least value is that of all. A mean has the weights of what
    the connections counted. A percentile is that of their mixed distributions, and of connections without distributions
    in the record the highest, which it cannot exceed (`is_bound`).
    """
    given = [(connection, float(value)) for connection in connections if (value := connection.get(name)) is not None]
    values = [value for _, value in given]
    if len(values) < 2:
        return values[0] if values else None
    if percentile := _PERCENTILE.search(name):
        found = _mixed(record, group, name)
        if found is None:
            return max(values)
        import numpy as np

        share = int(percentile[1]) / 10 ** len(percentile[1])
        return float(np.interp(share, found.shares, found.values_s))
    if _MAXIMUM.search(name):
        return max(values)
    if name.endswith("_min_s"):
        return min(values)
    if name.endswith(("_mean_s", "_mean_packets")):
        return _mean(given, name)
    return sum(values)


def is_bound(record: Record, group: object, connections: Sequence[dict[str, Any]], name: str) -> bool:
    """Return True if `combined` gives the highest of the connections' percentiles for the entry's."""
    several = sum(connection.get(name) is not None for connection in connections) > 1
    return several and bool(_PERCENTILE.search(name)) and _mixed(record, group, name) is None


def quantity_of(name: str) -> str:
    """Return the quantity of a percentile's name: latency_s of latency_p99_s."""
    return _PERCENTILE.sub("_s", name)


def _mixed(record: Record, group: object, name: str) -> Distribution | None:
    # Loaded here: a list of runs without such flows starts without numpy and pyarrow.
    from elephan.report.distributions import distribution_of

    return distribution_of(record, quantity_of(name), group)


def _mean(given: Sequence[tuple[dict[str, Any], float]], name: str) -> float:
    counted = next((count for prefix, count in COUNTED_BY if name.startswith(prefix)), None)
    weights = [1.0 if counted is None else float(connection.get(counted) or 0) for connection, _ in given]
    if not any(weights):
        weights = [1.0] * len(given)
    return sum(weight * value for weight, (_, value) in zip(weights, given, strict=True)) / sum(weights)
