"""Quantities of a session's records, as the paper's figures have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elephan.record import Record
from elephan.report.draw import Ink

CCS = {
    "reno": ("Reno", 0),
    "bic": ("BIC", 1),
    "htcp": ("H-TCP", 2),
    "highspeed": ("HSTCP", 3),
    "scalable": ("Scalable", 4),
}
"""Title and colour, in the order of legends and tables."""

NEW = ("bic", "htcp", "highspeed", "scalable")
"""The paper's advanced congestion controls."""


def cc_of(record: Record) -> str:
    """Return the name of a session's congestion control."""
    return str(record.spec["flows"][0]["transport"]["congestion_control"])


def title_of(cc: str) -> str:
    """Return what a congestion control is called."""
    return CCS[cc][0]


def connections_of(record: Record) -> int:
    """Return the number of connections of a session."""
    return sum(1 for flow in record.spec["flows"] if flow["workload"]["kind"] == "iscsi")


def max_burst_of(record: Record) -> int:
    """Return MaxBurstLength, B."""
    workload = record.spec["flows"][0]["workload"]
    assert workload["kind"] == "iscsi", "a scenario of the paper's"
    return workload["max_burst_bytes"]


def throughput(record: Record) -> float:
    """Return the data of the requests done, reads and writes, MB/s."""
    return float(record.metrics["io_bytes_per_s"] or 0) / 1e6


def drops(record: Record) -> int:
    """Return the packets that the queues dropped, both ways."""
    return int(record.metrics["dropped_packets"] or 0)


Curves = Mapping[str, Mapping[int, float]]
"""Values by congestion control and point."""


def curves(
    records: Sequence[Record], point: Callable[[Record], int], value: Callable[[Record], float]
) -> dict[str, dict[int, float]]:
    """Return the values of records by congestion control and point, points rising."""
    found: dict[str, dict[int, float]] = {}
    for record in sorted(records, key=point):
        found.setdefault(cc_of(record), {})[point(record)] = value(record)
    return {cc: found[cc] for cc in CCS if cc in found}


def mean(values: Mapping[int, float]) -> float:
    """Return the mean over points."""
    return sum(values.values()) / len(values)


def furthest_from_one(numerator: Mapping[int, float], denominator: Mapping[int, float], points: Sequence[int]) -> float:
    """Return the ratio, of those at `points`, that is furthest from 1."""
    return max((numerator[point] / denominator[point] for point in points), key=lambda ratio: abs(ratio - 1))


def draw_curves(axes: Any, ink: Ink, found: Curves) -> None:
    """Draw a curve per congestion control."""
    for cc, values in found.items():
        title, colour = CCS[cc]
        axes.plot(
            *zip(*values.items(), strict=True), "o-", color=ink.curve(colour), markersize=4, linewidth=1.4, label=title
        )
