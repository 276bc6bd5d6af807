"""The sheet: every congestion control's response function, all together and each beside its published one."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from elephan.report import draw
from elephan.report.draw import Ink
from evaluation.congestion_control.judge import Point

COLUMNS = 5
STYLES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)))


@dataclass(frozen=True)
class Curve:
    """A congestion control on the sheet."""

    name: str
    points: Sequence[Point]
    independent: dict[float, list[float]]
    published: Sequence[tuple[float, float]]
    """Loss and window; empty where nothing is published."""


def png(curves: Sequence[Curve], largest_window: float) -> bytes:
    """Return the sheet."""
    rows = math.ceil(len(curves) / COLUMNS)
    ink = Ink(themed=False)

    def whole(drawing: Any) -> None:
        drawing.suptitle(
            "Response functions: mean window against loss", x=0.008, ha="left", color=ink.text, fontsize=12,
            fontweight="bold",
        )  # fmt: skip
        above, below = drawing.subfigures(2, 1, height_ratios=(2.2, 1.15 * rows))
        _together(above.add_subplot(), ink, curves, largest_window)
        _each(below, ink, rows, curves)

    return _small(draw.rendered(whole, ink, "png", (10.0, 5.4 + 1.75 * rows)))


def _small(picture: bytes) -> bytes:
    """Return a PNG with a palette: a drawing has few colours, and the repository keeps every version."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128).save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def _axes(axes: Any, ink: Ink, largest_window: float | None = None) -> None:
    draw.frame(axes, ink)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    # Rarer loss to the right: a better path.
    axes.set_xlim(1.4e-2, 0.7e-7)
    axes.set_ylim(5, 2e6)
    if largest_window is not None:
        axes.axhline(largest_window, color=ink.muted, linewidth=0.8, linestyle=(0, (1, 2)))


def _together(axes: Any, ink: Ink, curves: Sequence[Curve], largest_window: float) -> None:
    _axes(axes, ink, largest_window)
    axes.set_xlabel("loss rate (periodic)", color=ink.muted, loc="left", labelpad=2)
    axes.set_title("mean window, segments, measured; RTT 100 ms", loc="left", color=ink.muted, fontsize=8.5, pad=6)
    axes.text(1.3e-2, largest_window * 1.1, "largest window of TCP", color=ink.muted, fontsize=7.5, va="bottom")
    # Names at the right end, from the top down, each at least a step below the one before.
    ends = sorted(((curve.points[-1].measured, index) for index, curve in enumerate(curves)), reverse=True)
    step = (math.log10(2e6) - math.log10(5)) / max(30, len(curves) * 1.05)
    places: dict[int, float] = {}
    last = math.inf
    for window, index in ends:
        last = min(math.log10(window), last - step)
        places[index] = last
    lift = max(0.0, math.log10(7) - last)
    for index, curve in enumerate(curves):
        colour, style = ink.curve(index % len(draw.LIGHT)), STYLES[index // len(draw.LIGHT) % len(STYLES)]
        axes.plot(
            [point.loss for point in curve.points],
            [point.measured for point in curve.points],
            color=colour,
            linestyle=style,
            linewidth=1.5,
            marker="o",
            markersize=3,
        )
        axes.annotate(
            curve.name,
            (1e-7, curve.points[-1].measured),
            xytext=(0.55e-7, 10 ** (places[index] + lift)),
            color=colour,
            fontsize=7.8,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2},
        )


def _each(figure: Any, ink: Ink, rows: int, curves: Sequence[Curve]) -> None:
    grid = figure.subplots(rows, COLUMNS, sharex=True, sharey=True, squeeze=False).flatten()
    for axes, curve in zip(grid, curves, strict=False):
        _axes(axes, ink)
        axes.set_title(curve.name, loc="left", color=ink.text, fontsize=8.5, pad=3)
        if curve.published:
            axes.plot(
                *zip(*curve.published, strict=True),
                color=ink.curve(1),
                linewidth=1.6,
                label="published, or its equations",
            )
        axes.plot(
            [point.loss for point in curve.points],
            [point.measured for point in curve.points],
            "o",
            color=ink.curve(0),
            markersize=4,
            label="periodic loss",
        )
        for number, (loss, windows) in enumerate(curve.independent.items()):
            middle = windows[len(windows) // 2]
            axes.plot([loss], [middle], "D", markerfacecolor="none", markeredgecolor=ink.curve(2), markersize=5.5,
                      label="independent loss" if number == 0 else None)  # fmt: skip
        axes.tick_params(labelsize=7)
    for axes in grid[len(curves) :]:
        axes.set_visible(False)
    # The last row may be short: the lowest panel of each column has the loss rates.
    for axes in grid[max(0, len(curves) - COLUMNS) : len(curves)]:
        axes.tick_params(labelbottom=True)
    # A panel with all three kinds of marks has the legend.
    for axes, curve in zip(grid, curves, strict=False):
        if curve.published:
            axes.legend(loc="upper left", fontsize=6.3, frameon=False, labelcolor=ink.text, handlelength=1.2)
            break
