"""The knee of a load curve: the load beyond which more requests under way wait more than they move.

Power is throughput over mean response time, and the knee is where it is greatest (Kleinrock, "Power and deterministic
rules of thumb for probabilistic problems in computer communications", ICC 1979, 43.1.1-43.1.10). With N requests under
way the mean time is N / throughput (Little). So a system that serves each within T until its capacity C is reached has
its greatest power at N = C T, where the pipe is full and no queue stands; M/M/1 has it at half of its capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

METHOD = "greatest power, throughput / mean time of a request (Kleinrock 1979)"
"""Method that finds the knee, for captions."""


@dataclass(frozen=True)
class LoadPoint:
    """A load and its result."""

    depth: float
    """Requests in progress."""
    connections: float
    throughput: float
    """Per second, in a unit that all points of a curve share."""
    latency_s: float
    """Mean time of a request."""

    @property
    def power(self) -> float:
        """Throughput over mean time, per s^2; 0 where nothing was done."""
        return self.throughput / self.latency_s if self.latency_s > 0 else 0.0


@dataclass(frozen=True)
class Knee:
    """The knee of a set of points."""

    index: int
    """Of the point."""
    edges: tuple[str, ...]
    """Of "queue depth" and "number of connections" those without a greater value measured: it may lie beyond."""


def knee_of(points: Sequence[LoadPoint | None]) -> Knee | None:
    """Return the point of greatest power, of equal ones that of the least load; None is a point without a result.

    Without two different loads there is no knee: None.
    """
    given = [(index, point) for index, point in enumerate(points) if point is not None and point.power > 0]
    if len({(point.depth, point.connections) for _, point in given}) < 2:
        return None
    index, best = max(given, key=lambda item: (item[1].power, -item[1].depth, -item[1].connections))
    edges = []
    for name, own, all_ in (
        ("queue depth", best.depth, {point.depth for _, point in given}),
        ("number of connections", best.connections, {point.connections for _, point in given}),
    ):
        if len(all_) > 1 and own == max(all_):
            edges.append(name)
    return Knee(index, tuple(edges))


def beyond(edges: Sequence[str]) -> str:
    """Return a sentence about a knee at the edge of the measured loads; "" for one inside."""
    if not edges:
        return ""
    return f"the knee is at the greatest {' and '.join(edges)} measured; it may lie beyond"
