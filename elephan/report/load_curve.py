"""Load curves of requests: runs that differ in queue depth and connections alone, and each curve's knee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from elephan.record import Record, canonical_json
from elephan.report.knee import METHOD, Knee, LoadPoint, beyond, knee_of
from elephan.report.metrics import metric
from elephan.report.points import Point, number, short, shown
from elephan.report.statistics import estimate
from elephan.units import duration

DEPTH, CONNECTIONS = "queue_depth", "connections"
"""Last parts of the parameters that are a load."""

VOLUMES = ("iscsi", "fcp")
"""Workloads whose load is a queue depth."""

CAPTION = f"knee: {METHOD}"


@dataclass(frozen=True)
class LoadCurve:
    """Points that differ in queue depth and connections alone."""

    name: str
    """Other varied parameter, with its value; "" if there is none."""
    points: tuple[Point, ...]
    loads: tuple[LoadPoint | None, ...]
    """Of each point."""
    knee: Knee
    keys: tuple[str, ...]
    """Parameters that are the load."""

    @property
    def at(self) -> Point:
        """The point at the knee."""
        return self.points[self.knee.index]

    @property
    def load(self) -> str:
        """Queue depth and connections at the knee, as far as they were varied."""
        return ", ".join(f"{short(key)} {shown(self.at.varied[key])}" for key in self.keys)


def load_curves(points: Sequence[Point]) -> list[LoadCurve]:
    """Return the curves that have a knee; empty where neither queue depth nor connections of a session were swept.

    Points of several backends have none: the workload runs on one.
    """
    keys = tuple(key for key in (points[0].varied if points else ()) if _is_load(key, points[0].first))
    if not keys or any(point.backend for point in points):
        return []
    groups: dict[str, list[Point]] = {}
    for point in points:
        others = {key: value for key, value in point.varied.items() if key not in keys}
        groups.setdefault(canonical_json([point.cc, others]), []).append(point)
    curves = []
    for members in groups.values():
        loads = tuple(_load(point, keys) for point in members)
        knee = knee_of(loads)
        if knee is not None:
            curves.append(LoadCurve(_name(members[0], keys), tuple(members), loads, knee, keys))
    return curves


def _is_load(key: str, record: Record) -> bool:
    """Return True if a parameter is a load of a session. In a run with other flows too, connections are those of a
    session that the key names.
    """
    *path, last = key.split(".")
    sessions = {str(flow["name"]).split(".")[0] for flow in record.flows if flow.get("workload") in VOLUMES}
    others = [flow for flow in record.flows if flow.get("workload") not in VOLUMES]
    if last == DEPTH:
        return bool(sessions)
    return last == CONNECTIONS and bool(sessions) and (not others or any(part in sessions for part in path))


def _load(point: Point, keys: Sequence[str]) -> LoadPoint | None:
    """Return throughput in B/s and mean time over the repetitions; None where no request was done."""
    throughput = point.metric("io_bytes_per_s")
    latency = estimate([_mean_s(record.metrics) for record in point.records])
    if throughput is None or latency is None:
        return None
    depth, connections = (
        sum(number(point.varied[key]) or 0.0 for key in keys if key.rsplit(".", 1)[-1] == last)
        for last in (DEPTH, CONNECTIONS)
    )
    return LoadPoint(depth, connections, throughput.mean, latency.mean)


def _mean_s(metrics: dict[str, Any]) -> float | None:
    """Return the mean time of reads and writes together, s."""
    kinds = [(metrics.get(f"{kind}s"), metrics.get(f"{kind}_latency_mean_s")) for kind in ("read", "write")]
    given = [(done, mean_s) for done, mean_s in kinds if done and mean_s is not None]
    total = sum(done for done, _ in given)
    return sum(done * mean_s for done, mean_s in given) / total if total else None


def _name(point: Point, keys: Sequence[str]) -> str:
    parts = [point.cc] if point.names_cc else []
    parts += [f"{short(key)} {shown(value)}" for key, value in point.varied.items() if key not in keys]
    return ", ".join(parts)


def edges(curves: Sequence[LoadCurve]) -> tuple[str, ...]:
    """Return a note for each knee at the edge of the sweep."""
    return tuple(
        ": ".join(part for part in (curve.name, beyond(curve.knee.edges)) if part)
        for curve in curves
        if curve.knee.edges
    )


def sentence(curves: Sequence[LoadCurve]) -> str:
    """Name the knees."""
    places = [f"{curve.load}{f' with {curve.name}' if curve.name else ''}" for curve in curves]
    if len(curves) > 1:
        return f"The knee is at {', at '.join(places[:-1])}, and at {places[-1]}."
    moved = curves[0].at.metric("io_bytes_per_s")
    load = curves[0].loads[curves[0].knee.index]
    assert moved is not None and load is not None
    rate = metric("io_bytes_per_s").show(moved.mean)
    return f"The knee is at {places[0]}: requests move {rate}, and take {duration(load.latency_s)} on average."
