"""Loads of several depths and connections on a target, one after the other, and the knee among them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from elephan.errors import RunError
from elephan.iscsi.load import CONNECTIONS_MAX, INTERRUPTED, Load, Result, measure
from elephan.iscsi.url import Url
from elephan.report.knee import Knee, LoadPoint, knee_of
from elephan.signals import termination_requested


@dataclass(frozen=True)
class Measured:
    """A point of a sweep."""

    depth: int
    """Commands under way, of all connections together."""
    connections: int
    """Connections that the session had."""
    result: Result

    @property
    def load_point(self) -> LoadPoint | None:
        """Throughput in B/s and mean time; None where not all commands were done, or none."""
        mean_s, core = self.result.latency_mean_s, self.result.core
        if mean_s is None or core["ended"] is not None or core["failed"] or core["unfinished"]:
            return None
        return LoadPoint(self.depth, self.connections, self.result.bytes_per_s, mean_s)


@dataclass(frozen=True)
class Sweep:
    """Points by connections and depth, and notes for their reader."""

    points: tuple[Measured, ...]
    knee: Knee | None
    notes: tuple[str, ...]
    ended: str | None
    """The reason that it ended before its time; None if all was measured."""

    def as_json(self) -> dict[str, Any]:
        """Return all that was measured, as the core gives it, and the knee's depth and connections."""
        at = None if self.knee is None else self.points[self.knee.index]
        points = [{"depth": one.depth, **one.result.core} for one in self.points]
        return {"points": points, "knee": at and {"depth": at.depth, "connections": at.connections}}


def sweep(
    url: Url,
    load: Load,
    depths: Sequence[int],
    connections: Sequence[int],
    on_progress: Callable[[Measured, int, int], None] | None = None,
) -> Sweep:
    """Put `load` on a unit with each number of connections and each depth, until a signal comes or the session ends.

    A number of connections that the target does not allow (MaxConnections) is measured as the most that it allows, and
    once. `on_progress` receives each point, its number and how many there are. Raises `InputError` for what is wrong,
    all of it before the first command, and `RunError` for what the target refuses before that.
    """
    wanted = [(count, depth) for count in sorted(set(connections)) for depth in sorted(set(depths))]
    for count, depth in wanted:
        replace(load, depth=depth, connections=count).check()
    # Only the main thread receives signals.
    is_main = threading.current_thread() is threading.main_thread()
    done: dict[tuple[int, int], Measured] = {}
    most = CONNECTIONS_MAX
    ended: str | None = None
    with termination_requested() if is_main else nullcontext() as wait_for_termination:
        for number, (asked, depth) in enumerate(wanted, 1):
            count = min(asked, most)
            if (count, depth) in done:
                continue
            try:
                result = measure(url, replace(load, depth=depth, connections=count), wait_for_termination)
            except (KeyboardInterrupt, RunError) as error:
                # Points that were measured are not lost for one that was not.
                if not done:
                    raise
                ended = INTERRUPTED if isinstance(error, KeyboardInterrupt) else str(error)
                break
            if result.connections < count:
                most = result.connections
            point = Measured(depth, result.connections, result)
            is_new = done.setdefault((point.connections, depth), point) is point
            if on_progress is not None and is_new:
                on_progress(point, number, len(wanted))
            if result.ended is not None:
                ended = result.ended
                break
    points = tuple(done.values())
    return Sweep(points, knee_of([point.load_point for point in points]), _notes(points, most), ended)


def _notes(points: Sequence[Measured], most: int) -> tuple[str, ...]:
    found = []
    if most < CONNECTIONS_MAX:
        allowed = "1 connection" if most == 1 else f"{most} connections"
        found.append(f"the target allows a session {allowed} (MaxConnections): more were not measured")
    if len(points) > 1:
        for point in points:
            about = f"depth {point.depth}, connections {point.connections}"
            found += [f"{about}: {line}" for line in point.result.remarks()]
    return tuple(found)
