"""Draw figures with matplotlib, without a window: PNG for files, SVG that takes its colours from the page."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from elephan.report import end_labels
from elephan.report.end_labels import End
from elephan.report.figures import (
    MOST_CURVES,
    DistributionFigure,
    Figure,
    HistogramFigure,
    LoadFigure,
    SweepFigure,
    TimeFigure,
)
from elephan.report.timeline import Line

LIGHT = ("#0072B2", "#D55E00", "#009E73", "#B0609A", "#B98500", "#3A9BD6", "#6B6B6B", "#8C3B1A")
"""Curves on white: Okabe and Ito's colours for the colour-blind (2008), the bright ones darkened."""

DARK = ("#56B4E9", "#F58A4B", "#2CC79A", "#E39CC5", "#F0C04A", "#9AD0F5", "#B5B5B5", "#D9825B")
"""The same on black, lightened."""

assert len(LIGHT) == len(DARK) == MOST_CURVES

# Colours that stand for a CSS variable in SVG; none is used for anything else.
INK, MUTED, GRID = "#010101", "#020202", "#030303"
_VARIABLES = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)"} | {
    f"#0a00{index:02x}": f"var(--c{index})" for index in range(MOST_CURVES)
}

SIZE_INCHES = (6.4, 2.7)
PNG_DPI = 160

LABEL_PAD = 6.0
"""Between ticks and title of an axis, points: on a telephone the page enlarges both (style.css)."""


class Ink:
    """The colours of one drawing."""

    def __init__(self, themed: bool) -> None:
        """`themed`: for SVG in a page, whose style sheet decides; else for white paper."""
        self.themed = themed
        self.text = INK if themed else "#1A1A1A"
        self.muted = MUTED if themed else "#5F5F5F"
        self.grid = GRID if themed else "#DDDDDD"

    def curve(self, index: int) -> str:
        """Return the colour of a curve."""
        return f"#0a00{index:02x}" if self.themed else LIGHT[index]


def svg(figure: Figure, name: str) -> str:
    """Return an SVG element for a page; `name` makes its ids unique there."""
    ink = Ink(themed=True)
    return for_page(rendered(lambda drawing: _draw(drawing, figure, ink), ink, "svg").decode(), name, figure.title)


def png(figure: Figure) -> bytes:
    """Return a PNG with title and legend, for a document or a chat."""
    ink = Ink(themed=False)
    return rendered(lambda drawing: _draw(drawing, figure, ink), ink, "png")


def for_page(text: str, name: str, title: str) -> str:
    """Return matplotlib's SVG as an element whose colours the page decides; `name` makes its ids unique there."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    text = re.sub(r'\b(id="|xlink:href="#|href="#|url\(#)', lambda found: f"{found[1]}{name}-", text)
    for sentinel, variable in _VARIABLES.items():
        text = text.replace(sentinel, variable)
    # The page decides how wide it is; the view box keeps its shape.
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(title)}" ', 1).strip()


def rendered(draw: Callable[[Any], None], ink: Ink, form: str, size_inches: tuple[float, float] = SIZE_INCHES) -> bytes:
    """Return what `draw` puts on a matplotlib figure, as "svg" or "png"."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with _style(ink):
        drawing = Figure(figsize=size_inches, layout="constrained")
        FigureCanvasAgg(drawing)
        draw(drawing)
        buffer = io.BytesIO()
        # No date, no version: the same figure gives the same bytes.
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        drawing.savefig(buffer, format=form, dpi=PNG_DPI, transparent=ink.themed, metadata=metadata)
    return buffer.getvalue()


def _draw(drawing: Any, figure: Figure, ink: Ink) -> None:
    axes = drawing.add_subplot()
    frame(axes, ink)
    match figure:
        case TimeFigure():
            _draw_time(axes, figure, ink)
        case SweepFigure():
            _draw_sweep(axes, figure, ink)
        case DistributionFigure():
            _draw_distribution(axes, figure, ink)
        case LoadFigure():
            _draw_load(axes, figure, ink)
        case HistogramFigure():
            _draw_histogram(axes, figure, ink)
    if not ink.themed:
        axes.set_title(figure.title, loc="left", color=ink.text, fontsize=11, fontweight="bold", pad=10)
        _legend(drawing, axes, ink)


@contextmanager
def _style(ink: Ink) -> Iterator[None]:
    import matplotlib

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "elephan",
        "font.family": "DejaVu Sans",
        "font.size": 9.0,
        "path.simplify": True,
        "path.simplify_threshold": 0.3,
    }
    with matplotlib.rc_context(settings):
        yield


def frame(axes: Any, ink: Ink) -> None:
    """Give axes the look of all figures: a baseline, horizontal grid lines, quiet ticks."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(ink.muted)
    axes.tick_params(colors=ink.muted, labelcolor=ink.muted, length=3, which="both")
    axes.tick_params(axis="x", pad=LABEL_PAD)
    axes.tick_params(axis="y", length=0, which="both")
    axes.grid(axis="y", color=ink.grid, linewidth=0.8)
    axes.set_axisbelow(True)


def _shown(show: Callable[[float | None], str]) -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", show(value)).replace(". ", " "))


def _vertical(axes: Any, show: Callable[[float | None], str], log: bool) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=6))
        axes.yaxis.set_minor_formatter(NullFormatter())
        # Less than a decade would show one label or none.
        low, high = axes.get_ylim()
        if high / low < 30:
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(_shown(show))


def curve_id(colour: int, number: int) -> str:
    """Return the id of a curve's element in its drawing: the page dims all of other colours."""
    return f"curve-{colour}-{number}"


def _draw_time(axes: Any, figure: TimeFigure, ink: Ink) -> None:
    for number, curve in enumerate(figure.curves):
        axes.plot(
            curve.line.time_s,
            curve.line.values,
            color=ink.curve(curve.colour),
            linewidth=0.9 if curve.secondary else 1.3,
            linestyle=(0, (3, 2)) if curve.secondary else "-",
            alpha=0.7 if curve.secondary else 1.0,
            label="_" if curve.secondary else curve.label,
            solid_joinstyle="round",
            gid=curve_id(curve.colour, number),
        )
    end = figure.end_s
    start = min(float(curve.line.time_s[0]) for curve in figure.curves)
    axes.set_xlim(min(start, 0.02 * end) if start < 0.02 * end else start, end)
    written = [-float("inf")] * 3
    for time_s, what in figure.events:
        axes.axvline(time_s, color=ink.muted, linewidth=0.8, linestyle=":")
        # The first of three lines of text that is free here: a letter takes about 1.1 % of the width.
        row = next((row for row in range(3) if written[row] <= time_s), written.index(min(written)))
        written[row] = time_s + 0.011 * end * (len(what) + 1)
        axes.annotate(
            what,
            (time_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -2 - 9 * row),
            textcoords="offset points",
            va="top",
            color=ink.muted,
            fontsize=7.5,
        )
    axes.set_xlabel(f"time, {figure.time_unit}", color=ink.muted, loc="right", labelpad=LABEL_PAD)
    _vertical(axes, figure.show, figure.log)
    ends = [
        End(curve.label, ink.curve(curve.colour), curve_id(curve.colour, number), *_end(curve.line))
        for number, curve in enumerate(figure.curves)
        if not curve.secondary
    ]
    end_labels.draw(axes, ends)


def _end(line: Line) -> tuple[float, float]:
    """Return the last point of a line that has a value."""
    there = np.flatnonzero(np.isfinite(line.values))
    return float(line.time_s[there[-1]]), float(line.values[there[-1]])


def _draw_distribution(axes: Any, figure: DistributionFigure, ink: Ink) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    for number, (label, colour, found) in enumerate(figure.curves):
        axes.plot(
            found.values_s,
            found.shares,
            color=ink.curve(colour),
            linewidth=1.4,
            label=label,
            solid_joinstyle="round",
            gid=curve_id(colour, number),
        )
    if figure.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=7))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(_shown(figure.show))
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[2, 2.5, 5]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))


def _draw_histogram(axes: Any, figure: HistogramFigure, ink: Ink) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = figure.edges[0], figure.edges[-1]
    axes.bar(
        figure.edges[:-1],
        figure.shares,
        width=[0.92 * (end - start) for start, end in zip(figure.edges, figure.edges[1:], strict=False)],
        align="edge",
        color=ink.curve(0),
    )
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(_shown(figure.show))
    axes.set_ylim(0, 1.02 * max(figure.shares))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.4g}%"))


def _draw_load(axes: Any, figure: LoadFigure, ink: Ink) -> None:
    from matplotlib.ticker import MaxNLocator

    ends = []
    for number, (label, colour, line) in enumerate(figure.lines):
        gid = curve_id(colour, number)
        axes.plot(
            [x for x, _ in line],
            [y for _, y in line],
            color=ink.curve(colour),
            marker="o",
            markersize=4.0,
            linewidth=1.5,
            label=label,
            gid=gid,
        )
        ends.append(End(label, ink.curve(colour), gid, *line[-1]))
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(_shown(figure.show_x))
    _vertical(axes, figure.show_y, figure.y_log)
    for x, y, text in figure.knees:
        axes.plot([x], [y], marker="o", markersize=11, fillstyle="none", color=ink.text, linestyle="", label="_")
        axes.annotate(
            text, (x, y), xytext=(-8, 8), textcoords="offset points", ha="right", color=ink.text, fontsize=7.5
        )
    end_labels.draw(axes, ends)


def _draw_sweep(axes: Any, figure: SweepFigure, ink: Ink) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    smallest = min((x for x, _ in figure.x_names if x > 0), default=1.0)
    if figure.x_log and any(x <= 0 for x, _ in figure.x_names):
        axes.set_xscale("symlog", linthresh=smallest, linscale=0.6)
    elif figure.x_log:
        axes.set_xscale("log")
    ends = []
    for number, (label, colour, line) in enumerate(figure.lines):
        spread = [item.half_width or 0.0 for _, item in line]
        gid = curve_id(colour, number)
        drawn = axes.errorbar(
            [x for x, _ in line],
            [item.mean for _, item in line],
            yerr=spread if any(spread) else None,
            color=ink.curve(colour),
            marker="o",
            markersize=4.5,
            linewidth=1.5,
            elinewidth=1.1,
            capsize=2.5,
            label=label,
        )
        for part, artist in enumerate(drawn.get_children()):
            artist.set_gid(f"{gid}-{part}")
        ends.append(End(label, ink.curve(colour), gid, line[-1][0], line[-1][1].mean))
    step = -(-len(figure.x_names) // 9)
    ticks = figure.x_names[::step]
    axes.xaxis.set_major_locator(FixedLocator([x for x, _ in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([name for _, name in ticks])
    axes.set_xlabel(figure.x_label, color=ink.muted, loc="right", labelpad=LABEL_PAD)
    _vertical(axes, figure.metric.show, figure.y_log)
    end_labels.draw(axes, ends)


def _legend(drawing: Any, axes: Any, ink: Ink) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    columns = min(len(handles), 4 if max(map(len, labels)) < 26 else 2)
    place = "outside lower left"
    drawing.legend(handles, labels, loc=place, ncols=columns, frameon=False, labelcolor=ink.text, fontsize=8)
