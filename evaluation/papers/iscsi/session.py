"""Quantities of a session's records, as the paper's figures have them, over repetitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from elephan.papers.evaluation import repetitions
from elephan.papers.spread import Spread
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


Curves = Mapping[str, Mapping[int, Spread]]
"""Values by congestion control and point, a value per repetition."""


def curves(
    records: Sequence[Record], point: Callable[[Record], int], value: Callable[[Record], float]
) -> dict[str, dict[int, Spread]]:
    """Return the values of records by congestion control and point, points rising. Raises as `repetitions`."""
    found: dict[str, dict[int, list[float]]] = {}
    for group in repetitions(records):
        for record in sorted(group, key=point):
            found.setdefault(cc_of(record), {}).setdefault(point(record), []).append(value(record))
    return {cc: {at: Spread(tuple(seeds)) for at, seeds in found[cc].items()} for cc in CCS if cc in found}


def each(function: Callable[[Sequence[float]], float], quantities: Iterable[Spread]) -> Spread:
    """Return what a function makes of several quantities, in each repetition."""
    return Spread(tuple(function(values) for values in zip(*(one.values for one in quantities), strict=True)))


def average(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def mean(values: Mapping[int, float]) -> float:
    """Return the mean over points."""
    return average(list(values.values()))


def furthest_from_one(
    numerator: Mapping[int, Spread], denominator: Mapping[int, Spread], points: Iterable[int]
) -> float:
    """Return the ratio, of those at `points`, that is furthest from 1; of each the median over repetitions."""
    found = [each(lambda pair: pair[0] / pair[1], (numerator[point], denominator[point])).median for point in points]
    return max(found, key=lambda ratio: abs(ratio - 1))


def draw_curves(axes: Any, ink: Ink, found: Curves) -> None:
    """Draw a curve per congestion control: medians, and a band from the least to the most."""
    for cc, values in found.items():
        title, colour = CCS[cc]
        points = list(values)
        axes.fill_between(
            points,
            [one.low for one in values.values()],
            [one.high for one in values.values()],
            color=ink.curve(colour),
            alpha=0.18,
            linewidth=0,
        )
        medians = [one.median for one in values.values()]
        axes.plot(points, medians, "o-", color=ink.curve(colour), markersize=4, linewidth=1.4, label=title)
