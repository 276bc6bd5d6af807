"""The comparison as one HTML page that needs nothing else, and its figures as PNG beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan.compare.rank import Row
from elephan.compare.running import Comparison
from elephan.compare.table import caption, columns, in_use, notes
from elephan.report import draw, units
from elephan.report.draw import Ink
from elephan.report.figures import MOST_CURVES, Colours, panels_of
from elephan.report.html import PAGE as REPORT_PAGE
from elephan.report.html import Tell, facts_of, scenarios_of
from elephan.report.points import points_of
from elephan.store.series import write_atomically

if TYPE_CHECKING:
    from jinja2 import Template

PAGE = Path(__file__).parent / "page"

LABEL_WIDTH, LABEL_HEIGHT = 0.0135, 0.044
"""Of a letter and of a line of the names in the trade's figure, in parts of its axes."""

TRADE_TITLE = "What each stack gets, and what it leaves a reno neighbour"


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("compare.html.j2")


def write(done: Comparison, folder: Path, tell: Tell | None = None) -> tuple[Path, list[Path]]:
    """Write compare.html and its PNGs into `folder`; return their paths. Raises `StoreError`.

    Over time the best are drawn, as many as there are colours that can be told apart.
    """
    first = done.plan.repetitions * min(MOST_CURVES, len(done.rows))
    points = points_of(done.alone.records[:first])
    panels = panels_of(points, done.alone.series_of, Colours())
    over_time = [figure for panel in panels for figure in panel.figures]
    total = 1 + len(over_time)
    images = [folder / "trade.png"]
    if tell is not None:
        tell(0, total)
    size = (7.4, 4.4)
    plain, themed = Ink(False), Ink(True)
    write_atomically(images[0], draw.rendered(lambda drawing: _trade(drawing, done, plain), plain, "png", size))
    trade = draw.rendered(lambda drawing: _trade(drawing, done, themed), themed, "svg", size).decode()
    figures: list[dict[str, Any]] = []
    for number, figure in enumerate(over_time, 1):
        if tell is not None:
            tell(number, total)
        images.append(folder / f"{figure.key}.png")
        write_atomically(images[-1], draw.png(figure))
        figures.append({"title": figure.title, "caption": figure.caption, "svg": draw.svg(figure, f"f{number}")})
    heads = columns(done)
    page = folder / "compare.html"
    text = _template().render(
        title=done.title,
        lead=lead(done),
        caption=caption(done),
        notes=notes(done),
        use=in_use(done, done.rows[0]),
        best=done.rows[0].stack,
        heads=heads,
        rows=[([(head.show(row), head.spread(row)) for head in heads], "; ".join(row.why)) for row in done.rows],
        trade={"title": TRADE_TITLE, "svg": draw.for_page(trade, "trade", TRADE_TITLE)},
        figures=figures,
        legend=panels[0].legend if panels else (),
        left_out=len(done.rows) - MOST_CURVES,
        facts=facts_of(done.alone.records),
        scenarios=scenarios_of([done.alone.records[0], done.beside.records[0]]),
        light=draw.LIGHT,
        dark=draw.DARK,
        style=(REPORT_PAGE / "style.css").read_text(),
    )
    write_atomically(page, text.encode())
    return page, images


def lead(done: Comparison) -> str:
    """Return the first place in a sentence; "" when all share it."""
    from elephan.compare.rank import KEYS, TIE

    key, best = KEYS[done.by], done.rows[0]
    firsts = [row.stack for row in done.rows if row.rank == 1]
    if len(firsts) == len(done.rows) > 1:
        return f"By {key.title} all are equal: no difference is certain and more than {TIE * 100:g} %."
    shown = key.show(key.value(best.numbers))
    others = f" (and, not to be told from it, {', '.join(firsts[1:])})" if len(firsts) > 1 else ""
    why = f" It {'; '.join(best.why)}." if best.why else ""
    return f"First by {key.title}: {best.stack}, {shown}{others}.{why}"


def label_places(dots: Sequence[tuple[float, float]], labels: Sequence[str]) -> list[tuple[float, float]]:
    """Return where each label begins, in parts of the axes: right of its dot, or the nearest height that is free.

    A label covers neither another one nor a dot.
    """
    taken: list[tuple[float, float, float]] = []
    places = []
    for (x, y), label in zip(dots, labels, strict=True):
        begin, end = x + 0.016, x + 0.016 + LABEL_WIDTH * len(label)
        heights = [y] + [y + sign * step * LABEL_HEIGHT / 2 for step in range(1, 40) for sign in (-1, 1)]

        def free(height: float, begin: float = begin, end: float = end) -> bool:
            if not LABEL_HEIGHT / 2 <= height <= 1:
                return False
            apart = all(abs(height - other) >= LABEL_HEIGHT or end < a or begin > b for a, b, other in taken)
            return apart and not any(begin - 0.01 < a < end and abs(height - b) < LABEL_HEIGHT * 0.7 for a, b in dots)

        height = next((height for height in heights if free(height)), y)
        taken.append((begin, end, height))
        places.append((begin, height))
    return places


def kept_of(row: Row) -> float:
    """Return what the neighbour keeps beside a row's stack; 0 where that is not known."""
    kept = row.numbers.neighbour_kept
    return 0.0 if kept is None else kept.mean


def goodput_of(row: Row) -> float:
    """Return a row's mean goodput, bit/s."""
    return row.numbers.mean(lambda run: run.goodput_bps) or 0.0


def _trade(drawing: Any, done: Comparison, ink: Ink) -> None:
    """Draw goodput against what the neighbour keeps: above and to the right is good for both."""
    axes = drawing.add_subplot()
    draw.frame(axes, ink)
    given = [row for row in done.rows if row.numbers.neighbour_kept is not None]
    right = 1.25 * max([1.0, *(kept_of(row) for row in given)])
    top = 1.12 * (max(goodput_of(row) for row in done.rows) or 1.0)
    dots = [(kept_of(row) / right, goodput_of(row) / top) for row in given]
    places = label_places(dots, [row.stack for row in given])
    for row, (x, y), (label_x, label_y) in zip(given, dots, places, strict=True):
        colour = ink.curve(0) if row.stack != "reno" else ink.curve(1)
        axes.plot([x * right], [y * top], marker="o", markersize=6, color=colour, linestyle="none")
        line = {"arrowstyle": "-", "color": ink.muted, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
        axes.annotate(
            row.stack,
            (x * right, y * top),
            xytext=(label_x, label_y),
            textcoords="axes fraction",
            va="center",
            color=ink.text,
            fontsize=8,
            arrowprops=line if abs(label_y - y) > LABEL_HEIGHT / 2 else None,
        )
    axes.axvline(1.0, color=ink.muted, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, right)
    axes.set_ylim(0, top)
    axes.set_xlabel("what a reno neighbour keeps, of what it gets beside reno", color=ink.muted, loc="right")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.yaxis.set_major_formatter(lambda value, _: units.rate(value).replace(".00", "").replace(".0 ", " "))
    axes.set_title("goodput", loc="left", color=ink.muted, fontsize=8.5, pad=6)
    if not ink.themed:
        drawing.suptitle(TRADE_TITLE, x=0.008, ha="left", color=ink.text, fontsize=11, fontweight="bold")
