"""The table: a row per point, or per flow where flows share a run; columns that have something to say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elephan.record import Record, canonical_json
from elephan.report import load_curve
from elephan.report.metrics import Metric, present
from elephan.report.notes import derived, told_together
from elephan.report.points import MOST_ENTRIES, Point, points_of, short, shown
from elephan.report.statistics import Estimate
from elephan.units import pluralize

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.text import Text

SUMMED_OVER_CONNECTIONS = frozenset(
    {
        "goodput_bps",
        "line_share",
        "lag_max_bytes",
        "startup_lag_max_bytes",
        "timeouts",
        "fast_retransmits",
        "reverse_goodput_bps",
        "reverse_timeouts",
        "reverse_fast_retransmits",
        "requests",
        "requests_failed",
        "reads",
        "writes",
    }
)
"""Besides counters (by their unit) what adds up over the connections of one flow entry."""


KNEE = "knee"
"""Names the row that is the knee of a load curve."""


MOST_NOTES = 20
"""Lines of notes under a table."""

LONGEST_LABEL = 80
"""Characters of a point's name before a note."""


@dataclass(frozen=True)
class Cell:
    """A value of the table."""

    text: str
    spread: str
    """Half the 95 % interval, as text; "" for a single run."""
    best: bool
    """Best of its column, where there are several rows and better has a meaning."""
    value: float | None


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    heads: tuple[str, ...]
    """Point's parameters, congestion control, flow: as many as the table has head columns."""
    cells: tuple[Cell, ...]
    of_run: bool
    """True if it sums up a run whose flows follow."""
    is_knee: bool = False
    """True if it is the knee of a load curve."""


@dataclass(frozen=True)
class Table:
    """All that a table shows, for a terminal, HTML and notebooks alike."""

    heads: tuple[str, ...]
    columns: tuple[Metric, ...]
    rows: tuple[Row, ...]
    repetitions: int
    """Most repetitions that a point has."""
    notes: tuple[str, ...]
    beside: str = ""
    """Meaning of the columns, if each is not a metric."""
    load: str = ""
    """Load of each of several connections, if it matters."""

    @property
    def ranks(self) -> bool:
        """Return True if the best of a column is marked: along a load curve the knee is, in its place."""
        cells = [cell for row in self.rows for cell in row.cells]
        return any(cell.best for cell in cells) or not any(row.is_knee for row in self.rows)

    @property
    def caption(self) -> str:
        """Caption: the meaning of the numbers."""
        if self.repetitions > 1:
            text = f"mean ± 95 % confidence interval over {self.repetitions} repetitions (Student's t)"
        else:
            text = "" if self.beside else "one run per row"
            if any(cell.spread for row in self.rows for cell in row.cells):
                text += ", ± half of the 95 % band of what was extrapolated"
        knee = load_curve.CAPTION if any(row.is_knee for row in self.rows) else ""
        return "; ".join(part for part in (text, self.beside, self.load, knee) if part)


def table_of(records: Sequence[Record]) -> Table:
    """Make the table of records: what differs between them in front, then the metrics they have."""
    points = points_of(records)
    if any(point.backend for point in points):
        # Not above: it makes a table of this module.
        from elephan.report import backend_comparison

        return backend_comparison.table_of(points)
    columns = present(record.metrics for record in records)
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
                    [point.flow_metric(group, item.name, adds_up(item)) for item in columns],
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
                _cell(column, value, best.get((number, column.name)))
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
        notes=(*notes_of(points), *unlisted(points), *load_curve.edges(curves)),
        load=load_of(points),
    )


def unlisted(points: Sequence[Point]) -> tuple[str, ...]:
    """Return a note where a run has more flow entries than a table lists."""
    most = max((len(point.entities()) for point in points), default=0)
    if most <= MOST_ENTRIES:
        return ()
    return (f"the first {MOST_ENTRIES} of {most} flows are listed; elephan results export --format json has all",)


def load_of(points: Sequence[Point]) -> str:
    """Return what each connection carries of flows that have several and a load that this multiplies, or does not."""
    found: dict[str, dict[str, None]] = {}
    for record in (record for point in points for record in point.records):
        specs = record.spec["flows"]
        connections = Counter(spec["group"] for spec in specs)
        for spec in specs:
            if connections[spec["group"]] < 2:
                continue
            workload = spec["workload"]
            bounded = workload["kind"] in ("constant_rate", "replicate") or workload.get("bytes") is not None
            if bounded:
                name = re.sub(r"\.\d+$", "", spec["name"])
                found.setdefault(spec.get("distribution", "each"), {})[name] = None
    texts = {"striped": "connections share the load of {}", "each": "each connection carries the whole load of {}"}
    return "; ".join(texts[kind].format(", ".join(names)) for kind, names in sorted(found.items(), reverse=True))


def notes_of(points: Sequence[Point]) -> tuple[str, ...]:
    """Return every note once, with the points it is about: those of the records, and what follows from them."""

    def name(point: Point) -> str:
        return "" if len(points) == 1 else shortened(point.label)

    own = told_together((name(point), note) for point in points for record in point.records for note in record.notes)
    followed = told_together((name(point), note) for point in points for note in derived(point.records))
    lines = [*own, *followed]
    if len(lines) > MOST_NOTES:
        more = pluralize(len(lines) - MOST_NOTES, "more note")
        lines = [*lines[:MOST_NOTES], f"{more}; `elephan results show ID` has all of a run"]
    return tuple(lines)


def shortened(label: str) -> str:
    """Return a point's name, cut where a table of unlike runs would make it a paragraph."""
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 3]}..."


def adds_up(column: Metric) -> bool:
    """Return True if a flow entry's value is the sum over its connections, and not their mean."""
    return column.name in SUMMED_OVER_CONNECTIONS or column.unit in ("packets", "segments", "ACKs", "B/s", "1/s")


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
            if column.better == "neither" or len(given) < 2 or min(given) == max(given):
                continue
            best = max(given) if column.better == "higher" else min(given)
            found.update({(n, column.name): best for n in numbers})
    return found


def _cell(column: Metric, value: Estimate | None, best: float | None) -> Cell:
    if value is None:
        return Cell(column.show(None), "", False, None)
    spread = "" if value.half_width is None else column.show(value.half_width)
    return Cell(column.show(value.mean), spread, best is not None and value.mean == best, value.mean)


def print_table(table: Table, console: object) -> None:
    """Print the table and its notes on a rich console: upright where it is too wide for it, a run per column."""
    from rich.console import Console
    from rich.text import Text

    assert isinstance(console, Console)
    drawn = _lying(table)
    natural = console.measure(drawn, options=console.options.update(max_width=10_000)).maximum
    # Numbers folded over several lines cannot be read. Many runs do not fit upright either: then they are folded.
    if natural > console.width and _least_upright_width(table) <= console.width:
        drawn = _upright(table)
    console.print(drawn)
    for note in table.notes:
        console.print(Text(f"note: {note}", style="yellow"))


def _lying(table: Table) -> RichTable:
    """Return the table with a run, or a point of a sweep, per row."""
    drawn = _empty(table)
    for head in table.heads:
        drawn.add_column(head, overflow="fold")
    for column in table.columns:
        drawn.add_column(column.title, justify="right", overflow="fold")
    for row in table.rows:
        style = _style(row, table)
        drawn.add_row(*row.heads, *(_text(cell) for cell in row.cells), style=style)
    return drawn


def _upright(table: Table) -> RichTable:
    """Return the table with a run, or a point of a sweep, per column. No number is folded; the heads are."""
    drawn = _empty(table)
    drawn.show_header = False
    drawn.caption = table.caption.replace("per row", "per column")
    drawn.add_column(no_wrap=True)
    for row in table.rows:
        style = _style(row, table)
        drawn.add_column(justify="right", overflow="fold", min_width=_longest(row), style=style)
    for index, head in enumerate(table.heads):
        drawn.add_row(head, *(row.heads[index] for row in table.rows), style="bold")
    for index, column in enumerate(table.columns):
        drawn.add_row(column.title, *(_text(row.cells[index]) for row in table.rows))
    return drawn


def _style(row: Row, table: Table) -> str:
    if row.is_knee:
        return "bold"
    return "dim" if row.of_run and len(table.rows) > 1 else ""


def _longest(row: Row) -> int:
    """Return the columns of the terminal that a row's widest number takes."""
    return max((len(line) for cell in row.cells for line in _text(cell).plain.splitlines()), default=1)


def _least_upright_width(table: Table) -> int:
    """Return the width below which `_upright` would fold a number; rich puts one column between two."""
    titles = [*table.heads, *(column.title for column in table.columns)]
    return max(map(len, titles)) + sum(1 + _longest(row) for row in table.rows)


def _empty(table: Table) -> RichTable:
    from rich.table import Table as RichTable

    return RichTable(box=None, header_style="bold", pad_edge=False, caption=table.caption, caption_justify="left")


def _text(cell: Cell) -> Text:
    from rich.text import Text

    style = "bold green" if cell.best else ""
    return Text(f"{cell.text}\n± {cell.spread}" if cell.spread else cell.text, style=style)
