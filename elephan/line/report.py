"""The report of a line test: one HTML page that needs nothing else, and a PNG of each figure beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan.core import build_digest, version
from elephan.line.page import Page
from elephan.line.tables import Table
from elephan.report import draw, html_table
from elephan.report.figures import Figure, HistogramFigure, SweepFigure, TimeFigure
from elephan.report.html import PAGE as REPORT_PAGE
from elephan.report.html_table import Cell, Head, Line
from elephan.store.files import write_atomically

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

FOLDER = Path(__file__).parent / "template"


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("line.html.j2")


def write(page: Page, file: Path) -> list[Path]:
    """Write a page and its PNGs, STEM-KEY.png; return all paths, the page first. Raises `StoreError`."""
    images = []
    drawn: list[dict[str, Any]] = []
    for number, figure in enumerate(page.figures):
        images.append(file.with_name(f"{file.stem}-{figure.key}.png"))
        write_atomically(images[-1], draw.png(figure))
        svg = draw.svg(figure, f"f{number}")
        drawn.append({"title": figure.title, "caption": figure.caption, "svg": svg, "legend": _legend(figure)})
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    text = _template().render(
        title=page.title,
        lead=page.lead,
        notes=page.notes,
        figures=drawn,
        tables=[(table, _html(table, f"table{number}")) for number, table in enumerate(page.tables)],
        facts=[*page.facts, ("elephan", f"{version()} (core {build_digest()})"), ("written", now)],
        light=draw.LIGHT,
        dark=draw.DARK,
        style=(REPORT_PAGE / "style.css").read_text(encoding="utf-8"),
    )
    write_atomically(file, text.encode())
    return [file, *images]


def _legend(figure: Figure) -> list[tuple[str, int]]:
    match figure:
        case TimeFigure():
            found = [(curve.label, curve.colour) for curve in figure.curves]
        case HistogramFigure():
            found = []
        case SweepFigure():
            found = [line[:2] for line in figure.lines]
        case _:
            found = []
    return found if len(found) > 1 else []


def _html(table: Table, name: str) -> Markup:
    heads = [Head(head, of_row=number == 0) for number, head in enumerate(table.heads)]
    return html_table.html(name, heads, [Line(tuple(Cell(text) for text in row)) for row in table.rows])
