"""Series as lines to draw: connections of a flow put together, and long lines thinned without losing a spike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from elephan.record import Record
from elephan.store.series import Series, values_of

Floats = npt.NDArray[np.float64]

MOST_BINS = 700
"""Bins of a thinned line; each keeps its smallest and largest value. A plot is about 700 dots wide."""

MEAN_BINS = 240
"""Bins of an averaged line: few enough to be read as a rate."""



@dataclass(frozen=True)
class Line:
    """A quantity over time, s; NaN where there is no value."""

    time_s: Floats
    values: Floats

    def __bool__(self) -> bool:
        return bool(len(self.time_s)) and not bool(np.all(np.isnan(self.values)))

    def until(self, end_s: float) -> Line:
        """Return the part up to `end_s`."""
        kept = self.time_s <= end_s
        return self if bool(kept.all()) else Line(self.time_s[kept], self.values[kept])


def thinned(line: Line, bins: int = MOST_BINS) -> Line:
    """Return at most two points per bin of samples, its minimum and maximum in their order (an envelope)."""
    count = len(line.time_s)
    if count <= 2 * bins:
        return line
    keep: list[int] = []
    edges = np.linspace(0, count, bins + 1).astype(int)
    for start, end in zip(edges[:-1], edges[1:], strict=True):
        part = line.values[start:end]
        if np.all(np.isnan(part)):
            keep.append(start)
            continue
        low, high = start + int(np.nanargmin(part)), start + int(np.nanargmax(part))
        keep.extend(sorted({low, high}))
    return Line(line.time_s[keep], line.values[keep])


def averaged(line: Line, bins: int = MEAN_BINS) -> Line:
    """Return the mean of each bin of samples at the bin's middle: for rates, whose single samples vary much."""
    count = len(line.time_s)
    if count <= bins:
        return line
    starts = np.linspace(0, count, bins, endpoint=False).astype(int)
    sizes = np.diff(np.append(starts, count))
    time_s = np.add.reduceat(line.time_s, starts) / sizes
    return Line(time_s, np.add.reduceat(line.values, starts) / sizes)


def group_rows(record: Record, group: object) -> list[int]:
    """Return the indices of the connections of one flow entry; of all when `group` is None."""
    return [index for index, flow in enumerate(record.flows) if group is None or flow.get("group") == group]


def flow_line(series: Series, flows: Sequence[int], column: str, combine: str) -> Line:
    """Return a flow column over time; over several connections their `combine`: "sum", "mean" or "max"."""
    if column not in series.flow.column_names:
        return Line(np.empty(0), np.empty(0))
    index = values_of(series.flow, "flow")
    mask = np.isin(index, list(flows))
    time_s = values_of(series.flow, "time_s")[mask]
    values = values_of(series.flow, column)[mask].astype(np.float64)
    if len(flows) <= 1 or not len(time_s):
        return Line(time_s, values)
    reduce: Callable[..., Floats] = {"sum": _sum, "mean": _mean, "max": _max}[combine]
    instants, place = np.unique(time_s, return_inverse=True)
    return Line(instants, reduce(place, values, len(instants)))


def _sum(place: npt.NDArray[np.intp], values: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(place, weights=np.nan_to_num(values), minlength=count), dtype=np.float64)


def _mean(place: npt.NDArray[np.intp], values: Floats, count: int) -> Floats:
    there = ~np.isnan(values)
    number = np.bincount(place[there], minlength=count)
    total = np.bincount(place[there], weights=values[there], minlength=count)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _max(place: npt.NDArray[np.intp], values: Floats, count: int) -> Floats:
    result = np.full(count, -np.inf)
    np.maximum.at(result, place, np.nan_to_num(values, nan=-np.inf))
    return np.where(np.isinf(result), np.nan, result)


def bottleneck(record: Record, series: Series) -> int | None:
    """Return the index of the link whose queue was longest on average; without any queue the slowest used."""
    if not series.link.num_rows:
        return None
    index = values_of(series.link, "link")
    queue = values_of(series.link, "queue_bytes").astype(np.float64)
    total = np.bincount(index, weights=queue)
    if total.max() > 0:
        return int(total.argmax())
    used = sorted({hop for flow in record.spec.get("flows", []) for hop in flow["route"]})
    links = record.spec.get("links", [])
    return min(used, key=lambda hop: int(links[hop]["rate_bps"]), default=None)


def link_line(series: Series, link: int, column: str) -> Line:
    """Return a column of one link over time."""
    mask = values_of(series.link, "link") == link
    time_s = values_of(series.link, "time_s")[mask]
    return Line(time_s, values_of(series.link, column)[mask].astype(np.float64))
