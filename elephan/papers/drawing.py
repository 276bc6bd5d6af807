"""Figures of papers in the look of the report: to PNG with a title, to SVG for the page, which has its own titles."""

from __future__ import annotations

from typing import Any

from elephan.papers.evaluation import Figure
from elephan.report import draw
from elephan.report.draw import Ink

PAPER_LABEL = "the paper"
"""Name of the paper's own numbers in every legend."""


def png(figure: Figure) -> bytes:
    """Return a PNG with its title."""
    ink = Ink(themed=False)

    def whole(drawing: Any) -> None:
        # As a suptitle it would be centred over the axes; at x = 0 it lines up with the left edge of the picture.
        drawing.suptitle(figure.title, x=0.008, ha="left", color=ink.text, fontsize=11, fontweight="bold")
        figure.draw(drawing, ink)

    return draw.rendered(whole, ink, "png", figure.size_inches)


def svg(figure: Figure) -> str:
    """Return an SVG element whose colours follow the page."""
    ink = Ink(themed=True)
    text = draw.rendered(lambda drawing: figure.draw(drawing, ink), ink, "svg", figure.size_inches).decode()
    return draw.for_page(text, figure.key, figure.title)


def framed(axes: Any, ink: Ink, x_label: str, y_label: str) -> None:
    """Give axes the report's look, with the units at the ends of the axes."""
    draw.frame(axes, ink)
    axes.set_xlabel(x_label, color=ink.muted, loc="right", labelpad=6)
    axes.set_title(y_label, loc="left", color=ink.muted, fontsize=8.5, pad=6)


def mark_paper(axes: Any, ink: Ink, x: Any, y: Any, label: str | None = PAPER_LABEL, size: float = 46) -> None:
    """Draw numbers of the paper: hollow diamonds in the colour of text, over everything else."""
    axes.scatter(
        x, y, marker="D", s=size, facecolors="none", edgecolors=ink.text, linewidths=1.3, zorder=5, label=label
    )


def legend(drawing: Any, ink: Ink, *axes: Any, columns: int = 4) -> None:
    """Put one legend for all axes below the figure; equal labels once."""
    found: dict[str, Any] = {}
    for item in axes:
        for handle, label in zip(*item.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    drawing.legend(
        found.values(),
        found.keys(),
        loc="outside lower left",
        ncols=min(columns, len(found)),
        frameon=False,
        labelcolor=ink.text,
        fontsize=8,
        handlelength=1.8,
        columnspacing=1.6,
    )


def label_line(axes: Any, x: float, y: float, text: str, colour: str, **options: Any) -> None:
    """Write a name beside a line in the line's colour."""
    settings: dict[str, Any] = {"color": colour, "fontsize": 8, "va": "center", "ha": "left", **options}
    axes.text(x, y, text, **settings)
