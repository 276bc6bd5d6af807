"""Names beside the ends of curves, to tell many of them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FROM_CURVES = 7
"""Curves of a figure from which their ends have names: up to six the legend's colours are enough."""

LETTERS = 22
"""Longest name; the legend has the whole of it."""

FONT_POINTS = 7.5

NEAR = 0.015
"""Part of the axes' width from the right edge within which a curve ends there."""


@dataclass(frozen=True)
class End:
    """End of a curve, in the units of its axes."""

    label: str
    colour: str
    gid: str
    """Beginning of the ids of its parts."""
    x: float
    y: float


def draw(axes: Any, ends: Sequence[End]) -> None:
    """Write the names to the right of the axes, none over another, with a line from each curve that ends there.

    The axes have their final limits.
    """
    if len(ends) < FROM_CURVES:
        return
    # Asked for, they are settled.
    axes.get_xlim(), axes.get_ylim()
    to_axes = axes.transAxes.inverted()
    heights = [float(to_axes.transform(axes.transData.transform((end.x, end.y)))[1]) for end in ends]
    inches = axes.get_position().height * axes.figure.get_size_inches()[1]
    places = apart(heights, 1.25 * FONT_POINTS / 72 / inches)
    right = axes.transData.transform((max(end.x for end in ends), ends[0].y))[0]
    edge = axes.transAxes.transform((1.0, 0.0))[0]
    for end, place in zip(ends, places, strict=True):
        # The line of a curve that ends earlier would run through the others: its colour tells whose name it is.
        x = axes.transData.transform((end.x, end.y))[0]
        reaches = x >= min(right, edge) - NEAR * (edge - axes.transAxes.transform((0.0, 0.0))[0])
        text = axes.annotate(
            end.label if len(end.label) <= LETTERS else f"{end.label[: LETTERS - 1]}…",
            (end.x, end.y),
            xytext=(1.02, place),
            textcoords="axes fraction",
            va="center",
            fontsize=FONT_POINTS,
            color=end.colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": end.colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0}
            if reaches
            else None,
        )
        text.set_gid(f"{end.gid}-name")
        if reaches:
            text.arrow_patch.set_gid(f"{end.gid}-line")


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Return places near `heights`, in their order from below, `gap` apart or more, and within 0 to 1 if they fit."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    # Names that would touch form a block around the mean of their wanted heights (pool adjacent violators).
    blocks: list[tuple[list[int], float]] = []
    for index in order:
        block, middle = [index], heights[index]
        while blocks and middle - _half(block, gap) < blocks[-1][1] + _half(blocks[-1][0], gap):
            before, _ = blocks.pop()
            block = before + block
            middle = sum(heights[i] for i in block) / len(block)
        blocks.append((block, middle))
    places = [0.0] * len(heights)
    for block, middle in blocks:
        for place, index in enumerate(block):
            places[index] = middle + (place - (len(block) - 1) / 2) * gap
    return _within(places, order, gap)


def _half(block: Sequence[int], gap: float) -> float:
    return len(block) * gap / 2


def _within(places: list[float], order: Sequence[int], gap: float) -> list[float]:
    """Push what lies below 0 up and what lies above 1 down, keeping the order."""
    low = 0.0
    for index in order:
        places[index] = low = max(places[index], low)
        low += gap
    high = 1.0 if len(order) * gap <= 1 + gap else gap * len(order)
    for index in reversed(order):
        places[index] = high = min(places[index], high)
        high -= gap
    return places
