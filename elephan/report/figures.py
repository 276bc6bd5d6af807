"""Choose the figures, apart from their drawing: figures over time for each panel, and figures of metrics against swept
parameters.

A panel puts together what belongs side by side: the congestion controls at one point of a sweep, or the flows of one
run.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from elephan import units
from elephan.record import Record
from elephan.report.distributions import Distribution
from elephan.report.metrics import Metric, metric
from elephan.report.points import Entity, Point, number, short, shown
from elephan.report.statistics import Estimate
from elephan.report.timeline import Floats, Line, averaged, bottleneck, flow_line, group_rows, link_line, thinned
from elephan.store.series import Series, values_of

MOST_CURVES = 8
"""Curves in one figure: as many as there are colours that can be told apart."""

MOST_PANELS = 6
"""Panels of one report; of more points, evenly spread ones are drawn."""

LOG_FROM = 30.0
"""Largest over smallest value from which an axis is logarithmic."""

LONG_TAIL = 4.0
"""The tail of a figure is left out if its longest run is longer than this many times the shortest."""

ZOOM = 2.0
"""Then the figure ends at so many times the shortest run."""

Loader = Callable[[Record], Series | None]
"""Gives the series of a record."""


@dataclass(frozen=True)
class Curve:
    """A line over time."""

    label: str
    colour: int
    line: Line
    secondary: bool = False
    """Thin and dashed, beside the main line of the same colour (ssthresh beside cwnd)."""


@dataclass(frozen=True)
class TimeFigure:
    """Curves over time with the unit of the vertical axis."""

    key: str
    title: str
    caption: str
    show: Callable[[float | None], str]
    curves: tuple[Curve, ...]
    log: bool
    end_s: float
    """End of the time axis."""
    events: tuple[tuple[float, str], ...] = ()
    """Changes of the path: time in s and what changed."""
    time_unit: str = "s"
    """Unit of all times."""


@dataclass(frozen=True)
class SweepFigure:
    """A metric against a swept parameter."""

    key: str
    title: str
    caption: str
    x_label: str
    x_names: tuple[tuple[float, str], ...]
    """Each value on the axis and how the scenario writes it."""
    metric: Metric
    lines: tuple[tuple[str, int, tuple[tuple[float, Estimate], ...]], ...]
    """Label, colour, and points in ascending order."""
    x_log: bool
    y_log: bool


@dataclass(frozen=True)
class DistributionFigure:
    """Cumulative distributions: the part of all that is at most a value."""

    key: str
    title: str
    caption: str
    show: Callable[[float | None], str]
    curves: tuple[tuple[str, int, Distribution], ...]
    """Label, colour and distribution."""
    log: bool


@dataclass(frozen=True)
class LoadFigure:
    """Mean time of a request against throughput, along ascending loads."""

    key: str
    title: str
    caption: str
    show_x: Callable[[float | None], str]
    show_y: Callable[[float | None], str]
    lines: tuple[tuple[str, int, tuple[tuple[float, float], ...]], ...]
    """Label, colour, and points in the order of the load."""
    knees: tuple[tuple[float, float, str], ...]
    """Points to be marked, with a text."""
    y_log: bool


@dataclass(frozen=True)
class HistogramFigure:
    """Values by intervals of equal width: the share of all that lies in each."""

    key: str
    title: str
    caption: str
    show: Callable[[float | None], str]
    edges: tuple[float, ...]
    """Ascending, one more than intervals."""
    shares: tuple[float, ...]


Figure = TimeFigure | SweepFigure | DistributionFigure | LoadFigure | HistogramFigure


@dataclass(frozen=True)
class Panel:
    """Figures that share their curves' labels and colours."""

    title: str
    slug: str
    legend: tuple[tuple[str, int], ...]
    figures: tuple[Figure, ...]
    seed: int


@dataclass
class Colours:
    """One colour per name for a whole report."""

    known: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        """Return the colour's number for `name`."""
        return self.known.setdefault(name, len(self.known) % MOST_CURVES)


@dataclass(frozen=True)
class _Track:
    """A run, or a flow entry of it, to be drawn in one colour."""

    label: str
    record: Record
    series: Series
    rows: list[int]


def panels_of(points: Sequence[Point], load: Loader, colours: Colours) -> list[Panel]:
    """Return the panels over time; empty when nothing has series."""
    groups = grouped(points)
    chosen = spread(groups, MOST_PANELS)
    panels = []
    for title, members in chosen:
        tracks = [track for member in members for track in _tracks(member, load, len(members) > 1)][:MOST_CURVES]
        if not tracks:
            continue
        figures = _time_figures(tracks, colours)
        if figures:
            legend = tuple((track.label, colours.of(track.label)) for track in tracks)
            panels.append(Panel(title, slug(title), legend, figures, members[0].first.seed))
    return panels


def grouped(points: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    """Put points that differ only in congestion control or backend into one panel; runs of several flows have one per
    setting."""
    several = len({point.setting for point in points}) > 1
    groups: dict[str, list[Point]] = {}
    for point in points:
        if len(point.entities()) > 1:
            title = point.setting if several else ""
        elif point.names_cc:
            title = ", ".join(f"{short(key)} {shown(value)}" for key, value in point.varied.items())
        else:
            title = ""
        groups.setdefault(title, []).append(point)
    return list(groups.items())


def spread(groups: list[tuple[str, list[Point]]], most: int) -> list[tuple[str, list[Point]]]:
    if len(groups) <= most:
        return groups
    return [groups[round(index * (len(groups) - 1) / (most - 1))] for index in range(most)]


def _tracks(point: Point, load: Loader, several: bool) -> list[_Track]:
    series = load(point.first)
    if not series:
        return []
    entities = point.entities()
    if len(entities) <= 1:
        return [_Track(point.curve, point.first, series, group_rows(point.first, None))]
    return [
        _Track(track_label(entity, point.backend), point.first, series, group_rows(point.first, group))
        for group, entity in islice(point.by_group.items(), MOST_CURVES)
    ]


def track_label(entity: Entity, backend: str) -> str:
    """Return the name of a flow beside others."""
    return f"{entity.name} ({entity.cc})" + (f", {backend}" if backend else "")


def _time_figures(tracks: Sequence[_Track], colours: Colours) -> tuple[TimeFigure, ...]:
    messages = any("lag_max_s" in track.record.metrics for track in tracks)
    frames = any("latency_max_s" in track.record.metrics for track in tracks)
    events = _events(tracks[0].record)
    until = _end_of_interest(tracks)
    first = f" The first {units.duration(until)}." if math.isfinite(until) else ""
    found: list[TimeFigure | None] = []
    if messages or frames:
        found.append(
            _figure(
                "lag",
                "Replication lag" if messages else "Age of the oldest frame",
                "How far the far copy is behind: age of the oldest write that is not there yet."
                if messages
                else "Age of the oldest frame that was offered and not yet delivered.",
                units.duration,
                [_curve(track, colours, "lag_s", "max") for track in tracks],
                events,
                may_log=True,
            )
        )
        found.append(
            _figure(
                "at-risk",
                "Data at risk" if messages else "Backlog",
                "Bytes written here and not yet there: what a disaster at this instant would lose."
                if messages
                else "Bytes offered and not yet delivered.",
                units.size,
                [_curve(track, colours, "lag_bytes", "sum") for track in tracks],
                events,
                may_log=True,
            )
        )
    found.append(
        _figure(
            "goodput",
            "Goodput",
            "Payload delivered in order, averaged over each step of the line." + first,
            units.rate,
            [_curve(track, colours, "goodput_bps", "sum", until, average=True) for track in tracks],
            events,
        )
    )
    found.append(
        _figure(
            "cwnd",
            "Congestion window",
            "Packets that the congestion control allows in flight; dashed: slow-start threshold." + first,
            units.count,
            [curve for track in tracks for curve in _window(track, colours, until)],
            events,
        )
    )
    # Flows without data that way have zeros there.
    both = [track for track in tracks if track.record.flows[track.rows[0]].get("workload") in ("iscsi", "fcp")]
    found.append(
        _figure(
            "goodput-back",
            "Goodput from the target",
            "Read data and answers delivered to the initiator, averaged over each step of the line." + first,
            units.rate,
            [_curve(track, colours, "reverse_goodput_bps", "sum", until, average=True) for track in both],
            events,
        )
    )
    found.append(
        _figure(
            "cwnd-back",
            "Congestion window of the target",
            "Packets that the congestion control at the target's end allows in flight." + first,
            units.count,
            [_curve(track, colours, "reverse_cwnd_packets", "sum", until) for track in both],
            events,
        )
    )
    found.append(
        _figure(
            "rtt",
            "Round-trip time",
            "The sender's smoothed estimate (RFC 6298)." + first,
            units.duration,
            [_curve(track, colours, "srtt_s", "mean", until) for track in tracks],
            events,
        )
    )
    found.append(
        _figure(
            "queue",
            "Queue at the bottleneck",
            "Packets waiting for the line." + _whose_queue(tracks) + first,
            units.count,
            _queues(tracks, colours, until),
            events,
        )
    )
    return tuple(figure for figure in found if figure is not None)


def _end_of_interest(tracks: Sequence[_Track]) -> float:
    """Return where figures of the transport end, s: infinity, or soon after the shortest run when others drain long."""
    ends = [float(values_of(track.series.flow, "time_s").max(initial=0.0)) for track in tracks]
    return ZOOM * min(ends) if min(ends) > 0 and max(ends) > LONG_TAIL * min(ends) else math.inf


def _curve(
    track: _Track, colours: Colours, column: str, combine: str, until: float = math.inf, average: bool = False
) -> Curve:
    line = flow_line(track.series, track.rows, column, combine).until(until)
    return Curve(track.label, colours.of(track.label), averaged(line) if average else thinned(line))


def _window(track: _Track, colours: Colours, until: float) -> list[Curve]:
    curves = [_curve(track, colours, "cwnd_packets", "sum", until)]
    # The sum of thresholds means nothing while some connections have none.
    if len(track.rows) == 1:
        line = thinned(flow_line(track.series, track.rows, "ssthresh_packets", "sum").until(until))
        curves.append(Curve(track.label, colours.of(track.label), line, secondary=True))
    return curves


def _queues(tracks: Sequence[_Track], colours: Colours, until: float) -> list[Curve]:
    """Return a curve per run: flows of one run share the queue."""
    curves: list[Curve] = []
    runs = {id(track.record): track for track in reversed(tracks)}
    for track in reversed(runs.values()):
        link = bottleneck(track.record, track.series)
        if link is None:
            continue
        name = str(track.record.links[link]["name"])
        if len(runs) == len(tracks):
            name = track.label
        elif len(runs) > 1:
            name += f", {track.record.backend}"
        line = link_line(track.series, link, "queue_packets").until(until)
        curves.append(Curve(name, colours.of(track.label), thinned(line)))
    return curves


def _whose_queue(tracks: Sequence[_Track]) -> str:
    """Return a text that tells the queues of several runs apart, if the legend has their flows."""
    runs = len({id(track.record) for track in tracks})
    return " In the colour of each run's first flow." if 1 < runs < len(tracks) else ""


def _figure(
    key: str,
    title: str,
    caption: str,
    show: Callable[[float | None], str],
    curves: Sequence[Curve],
    events: tuple[tuple[float, str], ...],
    may_log: bool = False,
) -> TimeFigure | None:
    drawn = [curve for curve in curves if curve.line]
    if not any(not curve.secondary for curve in drawn):
        return None
    log = may_log and _wide([curve.line.values for curve in drawn])
    if log:
        drawn = _floored(drawn)
        caption += " Logarithmic; zero is drawn at the bottom."
    end_s = max(float(curve.line.time_s[-1]) for curve in drawn)
    return TimeFigure(key, title, caption, show, tuple(drawn), log, end_s, events)


def _wide(values: Sequence[Floats]) -> bool:
    """Return True if typical values of the curves are so far apart that one would lie on the axis."""
    typical = [float(np.median(item[item > 0])) for item in values if np.any(item > 0)]
    largest = max((float(np.nanmax(item)) for item in values), default=0.0)
    return bool(typical) and min(typical) > 0 and largest / min(typical) > LOG_FROM


def _floored(curves: Sequence[Curve]) -> list[Curve]:
    """Lift zeros to the smallest positive value, so that a line on a logarithmic axis does not break."""
    positive = np.concatenate([curve.line.values[curve.line.values > 0] for curve in curves])
    # Four decades are enough to see; a single byte at risk is as good as none.
    floor = max(float(positive.min()), float(positive.max()) / 1e4)
    return [
        Curve(c.label, c.colour, Line(c.line.time_s, np.maximum(c.line.values, floor)), c.secondary) for c in curves
    ]


def _events(record: Record) -> tuple[tuple[float, str], ...]:
    """Return changes when they happened; what happens to both directions of a link at once is one change."""
    warmup_s = record.spec.get("measure", {}).get("warmup_ns", 0) / 1e9
    # End of the start-up: metrics are of the time after it.
    found: dict[tuple[float, str], None] = {(warmup_s, "end of warm-up"): None} if warmup_s else {}
    for index, event in enumerate(record.spec.get("events", [])):
        when, action = event["when"], event["action"]
        # Older records do not say when an event happened that waited for a flow.
        time_s = when["time_ns"] / 1e9 if when["kind"] == "at" else None
        if index < len(record.event_times_s):
            time_s = record.event_times_s[index]
        if time_s is not None:
            found[time_s, str(action["kind"]).replace("_", " ")] = None
    return tuple(sorted(found))


def sweep_figures(points: Sequence[Point], colours: Colours) -> list[SweepFigure]:
    """Return metrics against each parameter that has at least two numbers."""
    if not points or any(len(point.entities()) > 1 for point in points):
        names: tuple[str, ...] = ("goodput_bps", "jain_index", "retransmitted_segments")
    else:
        names = ("lag_p99_s", "lag_max_bytes", "latency_p99_s", "goodput_bps", "retransmitted_segments")
    figures = []
    for key in points[0].varied if points else ():
        numbers = {shown(point.varied[key]): number(point.varied[key]) for point in points}
        if any(value is None for value in numbers.values()) or len(set(numbers.values())) < 2:
            continue
        for name in names:
            figure = _sweep_figure(points, key, metric(name), colours)
            if figure is not None:
                figures.append(figure)
    return figures


def _sweep_figure(points: Sequence[Point], key: str, what: Metric, colours: Colours) -> SweepFigure | None:
    lines: dict[str, list[tuple[float, Estimate]]] = {}
    names: dict[float, str] = {}
    for point in points:
        x, y = number(point.varied[key]), point.metric(what.name)
        if x is None or y is None:
            continue
        names[x] = shown(point.varied[key])
        lines.setdefault(_others(point, key), []).append((x, y))
    if len(names) < 2 or not lines:
        return None
    left_out = len(lines) - MOST_CURVES
    kept = list(lines.items())[:MOST_CURVES]
    values = [y.mean for _, line in kept for _, y in line]
    caption = what.text
    if left_out > 0:
        caption += f" {left_out} more {'line is' if left_out == 1 else 'lines are'} not drawn."
    return SweepFigure(
        key=f"{slug(what.name)}-by-{slug(key)}",
        title=f"{what.title[0].upper()}{what.title[1:]} by {short(key)}",
        caption=caption,
        x_label=short(key),
        x_names=tuple(sorted(names.items())),
        metric=what,
        lines=tuple((label, colours.of(label), tuple(sorted(line, key=lambda item: item[0]))) for label, line in kept),
        x_log=_ratio([x for x in names if x > 0]) > LOG_FROM / 2,
        y_log=_ratio([value for value in values if value > 0]) > LOG_FROM,
    )


def _others(point: Point, key: str) -> str:
    """Return the label of a point without one of its parameters."""
    parts = [point.cc] if point.names_cc else []
    parts += [f"{short(name)} {shown(value)}" for name, value in point.varied.items() if name != key]
    return ", ".join([", ".join(parts) or point.cc, *([point.backend] if point.backend else [])])


def _ratio(values: Sequence[float]) -> float:
    return max(values) / min(values) if values and min(values) > 0 else 1.0


SLUG_CHARACTERS_MAX = 100
"""Two of them, and an ending, stay below the 255 bytes that file systems give a name (Linux NAME_MAX)."""


def slug(text: Any) -> str:
    """Return text as a part of a file name: shortened, with a digest of all of it, where it is long."""
    whole = re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-")
    if len(whole) <= SLUG_CHARACTERS_MAX:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{whole[: SLUG_CHARACTERS_MAX - len(digest) - 1].rstrip('-')}-{digest}"
