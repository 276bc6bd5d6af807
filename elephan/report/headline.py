"""The first numbers for a storage engineer: lag of the copy, data at risk, and their price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elephan.record import canonical_json
from elephan.report import backend_comparison, load_curve
from elephan.report.figures import MOST_CURVES, Colours, track_label
from elephan.report.limits import MISSING, missing_share
from elephan.report.metrics import Metric, metric
from elephan.report.points import Point
from elephan.report.ranked import is_ranked
from elephan.report.statistics import Estimate
from elephan.units import pluralize

LAG = ("lag_p99_s", "lag_max_bytes", "goodput_bps", "retransmitted_segments")
LATENCY = ("latency_p99_s", "latency_p50_s", "goodput_bps", "retransmitted_segments")
REQUESTS = ("io_bytes_per_s", "iops", "read_latency_p99_s", "write_latency_p99_s")
BULK = ("goodput_bps", "line_share", "retransmitted_segments", "timeouts")


@dataclass(frozen=True)
class Bar:
    """A point's value and its part of the largest."""

    label: str
    colour: int
    text: str
    part: float | None
    """None: the point has no such value, and no bar."""
    best: bool


@dataclass(frozen=True)
class Tile:
    """One metric compared over all points."""

    metric: Metric
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Headline:
    """A sentence and the tiles below it."""

    sentence: str
    tiles: tuple[Tile, ...]


def headline_of(points: Sequence[Point], colours: Colours) -> Headline | None:
    """Return the headline; of more points than there are colours only the sentence."""
    if not points:
        return None
    names = _names(points)
    mixed = any(len(point.entities()) > 1 for point in points)
    tiles: tuple[Tile, ...] = ()
    if mixed and len(points) == 1:
        tiles = tuple(tile for name in names if (tile := _tile_of_flows(points[0], metric(name), colours)) is not None)
    elif len(points) <= MOST_CURVES:
        tiles = tuple(tile for name in names if (tile := _tile(points, metric(name), colours, mixed)) is not None)
    return Headline(_sentence(points, names), tiles)


def _names(points: Sequence[Point]) -> tuple[str, ...]:
    # A sentence about one protocol's frames says nothing of a run that has none.
    for has in (all, any):
        for names in (LAG, LATENCY, REQUESTS):
            if has(point.metric(names[0]) is not None for point in points):
                return names
    return BULK


def _tile(points: Sequence[Point], what: Metric, colours: Colours, mixed: bool) -> Tile | None:
    """Compare points."""
    values = []
    for point in points:
        # Runs of several flows have their flows' colours below; a colour for the run would promise a line.
        colour = 0 if mixed else colours.of(point.curve)
        values.append((_label(point, points), colour, point.metric(what.name)))
    return _tile_of(what, values)


def _tile_of_flows(point: Point, what: Metric, colours: Colours) -> Tile | None:
    """Compare the flows of one run."""
    values = []
    for group, entity in point.listed:
        label = track_label(entity, point.backend)
        values.append((label, colours.of(label), point.flow_metric(group, what.name)))
    return _tile_of(what, values)


def _tile_of(what: Metric, values: Sequence[tuple[str, int, Estimate | None]]) -> Tile | None:
    given = [value.mean for _, _, value in values if value is not None]
    if not given:
        return None
    largest = max(given)
    best = (max if what.better == "higher" else min)(given) if is_ranked(what) and max(given) > min(given) else None
    return Tile(
        what,
        tuple(
            Bar(
                label=label,
                colour=colour,
                text=what.show(None if value is None else value.mean),
                part=None if value is None else 0.0 if largest <= 0 else value.mean / largest,
                best=value is not None and value.mean == best,
            )
            for label, colour, value in values
        ),
    )


def _label(point: Point, points: Sequence[Point]) -> str:
    """Return the same label that the point's curve has when its panel shows nothing but congestion controls."""
    return point.cc if point.names_cc and len({p.cc for p in points}) == len(points) else point.label


def _sentence(points: Sequence[Point], names: tuple[str, ...]) -> str:
    """Name the best point in the first metric, and compare it with the worst."""
    what = metric(names[0])
    if any(point.backend for point in points):
        return backend_comparison.sentence(points, what)
    if names is REQUESTS and 0 < len(curves := load_curve.load_curves(points)) <= MOST_CURVES:
        return load_curve.sentence(curves)
    ranked = sorted(
        ((value.mean, point) for point in points if (value := point.metric(what.name)) is not None),
        key=lambda item: item[0],
        reverse=what.better == "higher",
    )
    if not ranked:
        return ""
    if any(item.names_cc and item.varied for item in points):
        return _wins(points, what)
    best, point = ranked[0]
    clause = {
        "lag_p99_s": "99 of 100 writes reach the far site within {}",
        "latency_p99_s": "99 of 100 frames are delivered within {}",
        "io_bytes_per_s": "requests move {}",
        "goodput_bps": "the path gives {} of payload",
    }[what.name].format(what.show(best))
    if what.name == "latency_p99_s" and any(missing_share(record.flows) >= MISSING for record in point.records):
        clause = f"99 of 100 frames that arrived before the run ended took at most {what.show(best)}"
    if what.name == "lag_p99_s" and (risk := point.metric("lag_max_bytes")) is not None:
        clause += f", and at the worst instant {metric('lag_max_bytes').show(risk.mean)} were at risk"
    if names is REQUESTS:
        clause += _times(point)
    if len(ranked) == 1:
        return f"{clause[0].upper()}{clause[1:]}."
    worst, other = ranked[-1]
    if worst == best:
        return f"With every setting {clause}."
    return f"With {point.label} {clause}. Worst is {other.label}: {what.show(worst)}."


def _times(point: Point) -> str:
    """Return the times of a point's requests, that of reads and of writes."""
    times = [
        f"{word} {what.show(found.mean)}"
        for word, what in (("reads", metric("read_latency_p99_s")), ("writes", metric("write_latency_p99_s")))
        if (found := point.metric(what.name)) is not None
    ]
    return f"; of 100 requests 99 take at most: {', '.join(times)}" if times else ""


def _wins(points: Sequence[Point], what: Metric) -> str:
    """Name at how many points of a sweep each congestion control is best: a value of one point says nothing of the
    others.
    """
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(canonical_json(point.varied), []).append(point)
    wins: dict[str, int] = {}
    compared = 0
    for members in groups.values():
        given = [(value.mean, point.cc) for point in members if (value := point.metric(what.name)) is not None]
        if len(given) < 2:
            continue
        compared += 1
        best = (max if what.better == "higher" else min)(mean for mean, _ in given)
        for mean, cc in given:
            if mean == best:
                wins[cc] = wins.get(cc, 0) + 1
    if not compared:
        return ""
    order = "highest" if what.better == "higher" else "lowest"
    (first, most), *rest = sorted(wins.items(), key=lambda item: -item[1])
    listed = "".join(f", {cc} at {count}" for cc, count in rest)
    where = f"at {most} of {pluralize(compared, 'point')}{listed}"
    return f"{what.title[0].upper()}{what.title[1:]} is {order} with {first} {where}."
