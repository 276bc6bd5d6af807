"""The same scenario on two or more backends, side by side: a row per metric, a column per backend, and their ratio."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from elephan.record import canonical_json
from elephan.report.metrics import HEADLINE, Metric, present
from elephan.report.points import Point, short, shown
from elephan.report.statistics import Estimate
from elephan.report.table import Cell, Row, Table, bounds, load_of, notes_of, unlisted
from elephan.report.windows import columns_of, metrics_of
from elephan.units import NOTHING, digits, pluralize

Group = object
"""A flow entry's number; None for the whole run."""


def table_of(points: Sequence[Point]) -> Table:
    """Return the table of points that ran on several backends; the others are divided by the first."""
    backends = backends_of(points)
    records = [record for point in points for record in point.records]
    metrics = present(map(metrics_of, records), (*HEADLINE, *columns_of(records)))
    keys = list(points[0].varied)
    several = any(len(point.entities()) > 1 for point in points)
    rows: list[Row] = []
    for members in settings_of(points):
        first = members[0]
        heads = [shown(value) for value in first.varied.values()]
        entities: list[tuple[Group, list[str]]] = [(None, (["all"] if several else []) + [first.cc])]
        if len(first.entities()) > 1:
            entities[0] = (None, ["all", ""])
            entities += [(group, [entity.name, entity.cc]) for group, entity in first.listed]
        for group, names in entities:
            head = (*heads, *names)
            for what in metrics:
                values = [_value(_of(members, backend), group, what) for backend in backends]
                if any(value is not None for value in values):
                    rows.append(Row((*head, what.title), _cells(what, values), False))
                    # A row of its own is read with those below it, so the title stands once.
                    head = ("",) * len(head)
    return Table(
        heads=(*(short(key) for key in keys), *(("flow",) if several else ()), "congestion control", "metric"),
        columns=(
            *(_column(backend) for backend in backends),
            *(_ratio(backend, backends[0]) for backend in backends[1:]),
        ),
        rows=tuple(rows),
        repetitions=max(len(point.records) for point in points),
        notes=(*notes_of(points), *bounds(points, metrics), *unlisted(points)),
        beside=f"a ratio is that to {backends[0]}",
        load=load_of(points),
    )


def sentence(points: Sequence[Point], what: Metric) -> str:
    """Compare the backends in one metric, as a sentence."""
    first, *others = backends_of(points)
    parts = []
    for other in others:
        ratios = []
        for members in settings_of(points):
            value = _quotient(_value(_of(members, other), None, what), _value(_of(members, first), None, what))
            if value is not None:
                ratios.append(value)
        if ratios:
            many = f" (median of {pluralize(len(ratios), 'point')}, {digits(min(ratios))} to {digits(max(ratios))})"
            middle = digits(statistics.median(ratios))
            parts.append(f"on {other}, {what.title} is {middle} of that on {first}{many if len(ratios) > 1 else ''}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def backends_of(points: Sequence[Point]) -> list[str]:
    """Return the backends in order of their first run."""
    return list(dict.fromkeys(point.backend for point in points))


def settings_of(points: Sequence[Point]) -> list[list[Point]]:
    """Return the points by their common settings: everything but the backend."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(canonical_json([point.cc, point.varied]), []).append(point)
    return list(found.values())


def _of(members: Sequence[Point], backend: str) -> Point | None:
    return next((point for point in members if point.backend == backend), None)


def _value(point: Point | None, group: Group, what: Metric) -> Estimate | None:
    if point is None:
        return None
    return point.metric(what.name) if group is None else point.flow_metric(group, what.name)


def _quotient(value: Estimate | None, of: Estimate | None) -> float | None:
    return None if value is None or of is None or of.mean == 0 else value.mean / of.mean


def _cells(what: Metric, values: Sequence[Estimate | None]) -> tuple[Cell, ...]:
    shown_values = [
        Cell(
            what.show(None if value is None else value.mean),
            "" if value is None or value.half_width is None else what.show(value.half_width),
            False,
            None if value is None else value.mean,
        )
        for value in values
    ]
    ratios = [_quotient(value, values[0]) for value in values[1:]]
    return (*shown_values, *(Cell(NOTHING if r is None else digits(r), "", False, r) for r in ratios))


def _column(backend: str) -> Metric:
    text = {
        "sim": "In virtual time, by elephan's own model of TCP.",
        "kernel": "This machine's own TCP, in real time.",
        "hosts": "Between two hosts, over their real path.",
    }
    return Metric(backend, backend, "", str, "neither", text.get(backend, ""))


def _ratio(backend: str, first: str) -> Metric:
    title = f"{backend}/{first}"
    return Metric(title, title, "1", str, "neither", f"The value on {backend} divided by that on {first}.")
