"""Tables as data, with the notes under them, and their printing on a terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elephan.report import load_curve
from elephan.report.metrics import Metric
from elephan.report.notes import derived, grouped_notes
from elephan.report.points import MOST_ENTRIES, Point
from elephan.units import pluralize

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.text import Text

KNEE = "knee"
"""Names the row that is the knee of a load curve."""


MOST_NOTES = 20
"""Lines of notes under a table."""

LONGEST_LABEL = 80
"""Characters of a point's name before a note."""

GAP = 2
"""Columns of the terminal between two of the table."""


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
        """Return True if the best of a column is marked."""
        return any(cell.best for row in self.rows for cell in row.cells)

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
            bounded = workload["kind"] in ("constant_rate", "replicate", "copy") or workload.get("bytes") is not None
            if bounded:
                name = re.sub(r"\.\d+$", "", spec["name"])
                found.setdefault(spec.get("distribution", "each"), {})[name] = None
    texts = {"striped": "connections share the load of {}", "each": "each connection carries the whole load of {}"}
    return "; ".join(texts[kind].format(", ".join(names)) for kind, names in sorted(found.items(), reverse=True))


def notes_of(points: Sequence[Point]) -> tuple[str, ...]:
    """Return every note once, with the points it is about: those of the records, and what follows from them."""

    def name(point: Point) -> str:
        return "" if len(points) == 1 else shortened(point.label)

    own = grouped_notes((name(point), note) for point in points for record in point.records for note in record.notes)
    followed = grouped_notes((name(point), note) for point in points for note in derived(point.records))
    lines = [*own, *followed]
    if len(lines) > MOST_NOTES:
        more = pluralize(len(lines) - MOST_NOTES, "more note")
        lines = [*lines[:MOST_NOTES], f"{more}; `elephan results show ID` has all of a run"]
    return tuple(lines)


def shortened(label: str) -> str:
    """Return a point's name, cut where a table of unlike runs would make it a paragraph."""
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 3]}..."


def bounds(points: Sequence[Point], columns: Sequence[Metric]) -> tuple[str, ...]:
    """Return a note where a flow's percentile is the highest of its connections', as records do not hold more."""
    found = {
        column.title: None
        for column in columns
        for point in points
        for group, _ in point.listed
        if point.is_bound(group, column.name)
    }
    if not found:
        return ()
    return (f"{', '.join(found)} of a flow with several connections: the highest of a connection, so at most this",)


def print_table(table: Table, console: object) -> None:
    """Print the table and its notes on a rich console: upright where it is too wide for it, a run per column."""
    from rich.console import Console
    from rich.text import Text

    assert isinstance(console, Console)
    widths = _widths(table)
    natural = sum(widths) + GAP * (len(widths) - 1)
    if natural <= console.width:
        console.print(_whole(table, widths), soft_wrap=True)
        if table.caption:
            console.print(Text(table.caption, style="table.caption"), justify="left", width=natural)
    else:
        # Numbers folded over several lines cannot be read. Many runs do not fit upright either: then they are folded.
        console.print(_upright(table) if _least_upright_width(table) <= console.width else _folded(table))
    for note in table.notes:
        console.print(Text(f"note: {note}", style="yellow"))


def _widths(table: Table) -> list[int]:
    """Return the least width of each column that folds nothing."""
    from rich.cells import cell_len

    titles = [*table.heads, *(column.title for column in table.columns)]
    rows = [titles, *([*row.heads, *map(_shown, row.cells)] for row in table.rows)]
    return [max(cell_len(line) for text in column for line in text.split("\n")) for column in zip(*rows, strict=True)]


def _whole(table: Table, widths: Sequence[int]) -> Text:
    """Return the table with a run, or a point of a sweep, per row, and nothing folded.

    A rich table would look the same, and takes many times as long: of a sweep's runs, as long as to store them.
    """
    from rich.cells import cell_len
    from rich.text import Text

    left, found = len(table.heads), Text()

    def add(texts: Sequence[str], styles: Sequence[str]) -> None:
        cells = [text.split("\n") for text in texts]
        for number in range(max(map(len, cells), default=0)):
            for place, (lines, style, width) in enumerate(zip(cells, styles, widths, strict=True)):
                line = lines[number] if number < len(lines) else ""
                space = " " * (width - cell_len(line))
                found.append(" " * GAP if place else "")
                found.append(line + space if place < left else space + line, style)
            found.append("\n")

    add([*table.heads, *(column.title for column in table.columns)], ["bold"] * len(widths))
    for row in table.rows:
        style = _style(row, table)
        styles = [style] * left + [f"{style} {_style_of(cell)}".strip() for cell in row.cells]
        add([*row.heads, *map(_shown, row.cells)], styles)
    found.right_crop()
    return found


def _folded(table: Table) -> RichTable:
    """Return the table with a run, or a point of a sweep, per row, for a console that is too narrow for it."""
    from rich.text import Text

    drawn = _empty(table)
    for head in table.heads:
        drawn.add_column(Text(head), overflow="fold")
    for column in table.columns:
        drawn.add_column(column.title, justify="right", overflow="fold")
    for row in table.rows:
        style = _style(row, table)
        # As text of its own: of a plain string rich would take [red] for markup.
        drawn.add_row(*map(Text, row.heads), *map(_text, row.cells), style=style)
    return drawn


def _upright(table: Table) -> RichTable:
    """Return the table with a run, or a point of a sweep, per column. No number is folded; the heads are."""
    from rich.text import Text

    drawn = _empty(table)
    drawn.show_header = False
    drawn.caption = table.caption.replace("per row", "per column")
    drawn.add_column(no_wrap=True)
    for row in table.rows:
        style = _style(row, table)
        drawn.add_column(justify="right", overflow="fold", min_width=_longest(row), style=style)
    for index, head in enumerate(table.heads):
        drawn.add_row(Text(head), *(Text(row.heads[index]) for row in table.rows), style="bold")
    for index, column in enumerate(table.columns):
        drawn.add_row(column.title, *(_text(row.cells[index]) for row in table.rows))
    return drawn


def _style(row: Row, table: Table) -> str:
    if row.is_knee:
        return "bold"
    return "dim" if row.of_run and len(table.rows) > 1 else ""


def _longest(row: Row) -> int:
    """Return the columns of the terminal that a row's widest number takes."""
    return max((len(line) for cell in row.cells for line in _shown(cell).splitlines()), default=1)


def _least_upright_width(table: Table) -> int:
    """Return the width below which `_upright` would fold a number; rich puts one column between two."""
    titles = [*table.heads, *(column.title for column in table.columns)]
    return max(map(len, titles)) + sum(1 + _longest(row) for row in table.rows)


def _empty(table: Table) -> RichTable:
    from rich.table import Table as RichTable

    return RichTable(box=None, header_style="bold", pad_edge=False, caption=table.caption, caption_justify="left")


def _text(cell: Cell) -> Text:
    from rich.text import Text

    return Text(_shown(cell), style=_style_of(cell))


def _shown(cell: Cell) -> str:
    return f"{cell.text}\n± {cell.spread}" if cell.spread else cell.text


def _style_of(cell: Cell) -> str:
    return "bold green" if cell.best else ""
