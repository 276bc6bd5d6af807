"""The table of records: a row per point, or per flow where flows share a run; columns that have something to say."""

from __future__ import annotations

from collections.abc import Sequence

from elephan.record import Record, canonical_json
from elephan.report import backend_comparison, load_curve
from elephan.report.metrics import HEADLINE, Metric, present
from elephan.report.points import Point, points_of, short, shown
from elephan.report.ranked import is_ranked
from elephan.report.statistics import Estimate
from elephan.report.table import KNEE, Cell, Row, Table, bounds, load_of, notes_of, unlisted
from elephan.report.windows import columns_of, metrics_of


def table_of(records: Sequence[Record]) -> Table:
    """Make the table of records: what differs between them in front, then the metrics they have."""
    points = points_of(records)
    if any(point.backend for point in points):
        return backend_comparison.table_of(points)
    columns = present(map(metrics_of, records), (*HEADLINE, *columns_of(records)))
    several = any(len(point.entities()) > 1 for point in points)
    keys = list(points[0].varied) if points else []
    # Rows of a sweep over parameters alone need no column that says the same congestion control in every line.
    with_cc = several or (bool(points) and (points[0].names_cc or not keys))
    curves = load_curve.load_curves(points)
    knees = {id(curve.at) for curve in curves}
    heads = (
        tuple(short(key) for key in keys)
        + (("flow",) if several else ())
        + (("congestion control",) if with_cc else ())
    )
    drafts: list[tuple[tuple[str, ...], list[Estimate | None], bool, bool]] = []
    for point in points:
        mixed = len(point.entities()) > 1
        values = tuple(shown(value) for value in point.varied.values())
        head = values + (("all",) if several else ()) + ((("" if mixed else point.cc),) if with_cc else ())
        drafts.append((head, [point.metric(column.name) for column in columns], mixed, id(point) in knees))
        for group, entity in point.listed:
            drafts.append(
                (
                    (*values, entity.name, entity.cc),
                    [point.flow_metric(group, item.name) for item in columns],
                    False,
                    False,
                )
            )
    # Along a load curve the highest throughput and the shortest time are its two ends.
    ranks = not several and (not curves or points[0].names_cc)
    best = _best_of_each(points, columns) if ranks else {}
    rows = tuple(
        Row(
            (*head, *([KNEE if is_knee else ""] if curves else [])),
            tuple(
                cell(column, value, best.get((number, column.name)))
                for column, value in zip(columns, row, strict=True)
            ),
            mixed,
            is_knee,
        )
        for number, (head, row, mixed, is_knee) in enumerate(drafts)
    )
    return Table(
        heads=(*heads, *([""] if curves else [])),
        columns=tuple(columns),
        rows=rows,
        repetitions=max((len(point.records) for point in points), default=0),
        notes=(*notes_of(points), *bounds(points, columns), *unlisted(points), *load_curve.edges(curves)),
        load=load_of(points),
    )


def _best_of_each(points: Sequence[Point], columns: Sequence[Metric]) -> dict[tuple[int, str], float]:
    """Return the best value of a column for each row: among the congestion controls at one point of a sweep, else among
    all."""
    groups: dict[str, list[int]] = {}
    for number, point in enumerate(points):
        groups.setdefault(canonical_json(point.varied) if point.names_cc else "", []).append(number)
    found = {}
    for numbers in groups.values():
        for column in columns:
            given = [value.mean for n in numbers if (value := points[n].metric(column.name)) is not None]
            if not is_ranked(column) or len(given) < 2 or min(given) == max(given):
                continue
            best = max(given) if column.better == "higher" else min(given)
            found.update({(n, column.name): best for n in numbers})
    return found


def cell(column: Metric, value: Estimate | None, best: float | None) -> Cell:
    """Return a value with its spread; `best`: the value that is marked."""
    if value is None:
        return Cell(column.show(None), "", False, None)
    spread = "" if value.half_width is None else column.show(value.half_width)
    return Cell(column.show(value.mean), spread, best is not None and value.mean == best, value.mean)
