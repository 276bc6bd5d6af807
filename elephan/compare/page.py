"""The comparison as one HTML page that needs nothing else, and its figures as PNG beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from elephan.compare import trade
from elephan.compare.running import Comparison
from elephan.compare.table import Column, caption, columns, deciding, heading_in_use, in_use, notes, winners
from elephan.report import draw, html_table
from elephan.report.cdf import distribution_panels
from elephan.report.figures import MOST_CURVES, Colours, panels_of
from elephan.report.html import PAGE as REPORT_PAGE
from elephan.report.html import OnProgress, facts_of, scenarios_of
from elephan.report.html_table import Cell, Head, Line
from elephan.report.points import points_of
from elephan.store.files import write_atomically

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

PAGE = Path(__file__).parent / "page"


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("compare.html.j2")


def write(done: Comparison, folder: Path, on_progress: OnProgress | None = None) -> tuple[Path, list[Path]]:
    """Write compare.html and its PNGs into `folder`; return their paths. Raises `StoreError`.

    Over time the best are drawn, as many as there are colours that can be told apart.
    """
    first = done.plan.repetitions * min(MOST_CURVES, len(done.rows))
    points = points_of(done.alone.records[:first])
    colours = Colours()
    parts = [
        ("Distribution, alone", distribution_panels(points, colours)),
        ("Over time, alone", panels_of(points, done.alone.series_of, colours)),
    ]
    figures = [figure for _, panels in parts for panel in panels for figure in panel.figures]
    total = 1 + len(figures)
    images = [folder / "trade.png"]
    if on_progress is not None:
        on_progress(0, total)
    write_atomically(images[0], trade.png(done))
    svgs: dict[str, str] = {}
    for number, figure in enumerate(figures, 1):
        if on_progress is not None:
            on_progress(number, total)
        images.append(folder / f"{figure.key}.png")
        write_atomically(images[-1], draw.png(figure))
        svgs[figure.key] = draw.svg(figure, f"f{number}")
    heads = columns(done)
    page = folder / "compare.html"
    text = _template().render(
        title=done.title,
        lead=lead(done),
        caption=caption(done),
        notes=notes(done),
        use=in_use(done, done.rows[0]) if winners(done) else [],
        heading=heading_in_use(done),
        heads=heads,
        table=ranking(done, deciding(done, heads), "ranking"),
        everything=ranking(done, heads, "everything", with_words=False),
        trade={
            "title": trade.TITLE,
            "broad": trade.svg(done, "trade", trade.SIZE_INCHES),
            "narrow": trade.svg(done, "small-trade", trade.NARROW_INCHES),
        },
        parts=[(title, panel) for title, panels in parts for panel in panels],
        svgs=svgs,
        left_out=len(done.rows) - MOST_CURVES,
        facts=facts_of(done.alone.records),
        scenarios=scenarios_of([done.alone.records[0], done.beside.records[0]]),
        light=draw.LIGHT,
        dark=draw.DARK,
        style=(REPORT_PAGE / "style.css").read_text(),
    )
    write_atomically(page, text.encode())
    return page, images


def ranking(done: Comparison, heads: Sequence[Column], name: str, *, with_words: bool = True) -> Markup:
    """Return a ranked table of the page with these columns; `with_words`: the words of a row below it."""
    titles = [Head(head.title, head.text, of_row=head.title == "congestion control") for head in heads]
    lines = [
        Line(
            tuple(Cell(head.show(row), f"± {spread}" if (spread := head.spread(row)) else "") for head in heads),
            below="; ".join(row.why) if with_words else "",
        )
        for row in done.rows
    ]
    return html_table.html(name, titles, lines)


def lead(done: Comparison) -> str:
    """Return the first place in a sentence; "" when all share it."""
    from elephan.compare.rank import HARM_TIE, KEYS, TIE

    key, best = KEYS[done.by], done.rows[0]
    firsts = [row.cc for row in done.rows if row.rank == 1]
    certain = "" if done.plan.exact else "certain and "
    is_mixed = any(row.yields for row in done.rows if row.rank == 1)
    if len(firsts) == len(done.rows) > 1 and not is_mixed:
        return f"By {key.title} all are equal: no difference is {certain}more than {TIE * 100:g} %."
    shown = key.show(key.value(best.numbers))
    equal = (
        f"within {(HARM_TIE if is_mixed else TIE) * 100:g} %" if done.plan.exact else "without a significant difference"
    )
    others = f" (and, {equal}, {', '.join(firsts[1:])})" if len(firsts) > 1 else ""
    why = f": {'; '.join(best.why)}" if best.why else ""
    return f"First by {key.title}: {best.cc}, {shown}{others}{why}."
