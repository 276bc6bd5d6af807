"""The trade of each congestion control: its goodput against the goodput of a reno neighbour, each dot with its name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from elephan import units
from elephan.compare.rank import Row
from elephan.compare.run_metrics import bounds
from elephan.compare.running import Comparison
from elephan.report import draw
from elephan.report.draw import Ink
from elephan.report.statistics import Estimate

TITLE = "Goodput of each congestion control, and what a reno neighbour keeps beside it"
SIZE_INCHES = (7.4, 4.4)
NARROW_INCHES = (3.7, 4.6)
"""For a telephone."""
FONT_POINTS = 8.0

DOT_POINTS = 4.0
"""Half the width of a dot and the room around it."""

ROOM = 1.1
"""Width of a name as a part of that in DejaVu Sans, which is wider than most fonts that a browser takes."""

LINE = 1.35
"""Height of a line as a part of its letters' size, as in a browser."""

LINE_CROSSED, BAR_CROSSED = 25.0, 8.0
"""Rounds further away, of half a dot each, that are as bad as crossing the line to another name, or an interval."""

Point = tuple[float, float]
"""Place, in dots of the drawing."""

AROUND = tuple(math.radians(angle) for angle in (0, 180, 90, 270, 30, 330, 150, 210, 60, 300, 120, 240))
"""Directions in which a name may stand from its dot, the first that is free."""


@dataclass(frozen=True)
class Box:
    """A rectangle, in dots of the drawing."""

    left: float
    low: float
    right: float
    high: float

    def meets(self, other: Box) -> bool:
        """Return True if the two have a point in common."""
        return self.left < other.right and other.left < self.right and self.low < other.high and other.low < self.high

    def has(self, point: tuple[float, ...]) -> bool:
        """Return True if a point lies within."""
        return self.left <= point[0] <= self.right and self.low <= point[1] <= self.high

    def holds(self, other: Box) -> bool:
        """Return True if the other lies within."""
        inside = self.left <= other.left and other.right <= self.right
        return inside and self.low <= other.low and other.high <= self.high


def kept_of(row: Row) -> float:
    """Return the part that the neighbour keeps beside a row's congestion control; 0 if it is not known."""
    kept = row.numbers.neighbour_kept
    return 0.0 if kept is None else kept.mean


def goodput_of(row: Row) -> float:
    """Return a row's mean goodput, bit/s."""
    return row.numbers.mean(lambda run: run.goodput_bps) or 0.0


def png(done: Comparison) -> bytes:
    """Return a PNG with its title."""
    ink = Ink(themed=False)
    return draw.rendered(lambda drawing: drawn(drawing, done, ink), ink, "png", SIZE_INCHES)


def svg(done: Comparison, name: str, size_inches: tuple[float, float]) -> str:
    """Return an SVG element for a page; `name` makes its ids unique there."""
    ink = Ink(themed=True)
    text = draw.rendered(lambda drawing: drawn(drawing, done, ink), ink, "svg", size_inches).decode()
    return draw.for_page(text, name, TITLE)


def drawn(drawing: Any, done: Comparison, ink: Ink) -> None:
    """Draw goodput against what the neighbour keeps, with 95 % intervals: above and to the right is good for both."""
    axes = drawing.add_subplot()
    draw.frame(axes, ink)
    dots = [dot_of(row) for row in done.rows if row.numbers.neighbour_kept is not None]
    for dot in dots:
        (left, x, right), (low, y, high) = dot.x, dot.y
        colour = ink.curve(1 if dot.name == "reno" else 0)
        axes.errorbar(
            [x],
            [y],
            xerr=[[x - left], [right - x]],
            yerr=[[y - low], [high - y]],
            marker="o",
            markersize=6,
            color=colour,
            elinewidth=0.9,
        )
    axes.axvline(1.0, color=ink.muted, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, 1.25 * max([1.0, *(dot.x[1] for dot in dots)]))
    axes.set_ylim(0, 1.12 * (max(goodput_of(row) for row in done.rows) or 1.0))
    axes.set_xlabel("goodput of a reno neighbour, of that beside reno", color=ink.muted, loc="right", labelpad=6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.yaxis.set_major_formatter(lambda value, _: units.rate(value).replace(".00", "").replace(".0 ", " "))
    axes.set_title("goodput", loc="left", color=ink.muted, fontsize=8.5, pad=6)
    if not ink.themed:
        drawing.suptitle(TITLE, x=0.008, ha="left", color=ink.text, fontsize=11, fontweight="bold")
    _names(drawing, axes, dots, ink)


@dataclass(frozen=True)
class Dot:
    """A row's place in the drawing, in the units of its axes: `x` and `y` between the ends of their intervals."""

    name: str
    x: tuple[float, float, float]
    y: tuple[float, float, float]


def dot_of(row: Row) -> Dot:
    """Return where a row lies."""
    kept, goodput = row.numbers.neighbour_kept, row.numbers.estimate(lambda run: run.goodput_bps)
    return Dot(row.cc, _interval(kept), _interval(goodput))


def _interval(found: Estimate | None) -> tuple[float, float, float]:
    mean = 0.0 if found is None else found.mean
    low, high = bounds(found)
    return (max(0.0, low), mean, high) if math.isfinite(high) else (mean, mean, mean)


def _names(drawing: Any, axes: Any, dots: Sequence[Dot], ink: Ink) -> None:
    # The layout decides where the axes lie, and with that which names lie over each other.
    drawing.draw_without_rendering()
    renderer, unit = drawing.canvas.get_renderer(), drawing.dpi / 72
    extent = axes.get_window_extent(renderer)
    frame = Box(extent.x0, extent.y0, extent.x1, extent.y1)
    points = [tuple(axes.transData.transform((dot.x[1], dot.y[1]))) for dot in dots]
    sizes = []
    for dot in dots:
        text = axes.text(0, 0, dot.name, fontsize=FONT_POINTS)
        extent = text.get_window_extent(renderer)
        sizes.append((extent.width * ROOM, LINE * FONT_POINTS * unit))
        text.remove()
    boxes = placed(points, sizes, frame, DOT_POINTS * unit, [bar for dot in dots for bar in _bars(axes, dot, unit)])
    for number, (dot, point, box) in enumerate(zip(dots, points, boxes, strict=True), 1):
        at = axes.transAxes.inverted().transform((box.left, (box.low + box.high) / 2))
        nearest = math.dist(point, (min(max(point[0], box.left), box.right), min(max(point[1], box.low), box.high)))
        line = {"arrowstyle": "-", "color": ink.muted, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
        axes.annotate(
            dot.name,
            (dot.x[1], dot.y[1]),
            xytext=tuple(at),
            textcoords="axes fraction",
            va="center",
            color=ink.text,
            fontsize=FONT_POINTS,
            # A name beside its dot needs no line.
            arrowprops=line | {"relpos": _relative(box, point)} if nearest > 3 * DOT_POINTS * unit else None,
            gid=f"name-{number}",
        )


def _bars(axes: Any, dot: Dot, unit: float) -> list[Box]:
    """Return the boxes of a dot's intervals."""
    left, low = axes.transData.transform((dot.x[0], dot.y[0]))
    x, y = axes.transData.transform((dot.x[1], dot.y[1]))
    right, high = axes.transData.transform((dot.x[2], dot.y[2]))
    return [Box(left, y - unit, right, y + unit), Box(x - unit, low, x + unit, high)]


def _relative(box: Box, point: tuple[float, float]) -> tuple[float, float]:
    """Return the point of a name's box, in parts of it, that is nearest to its dot."""
    x = min(max(point[0], box.left), box.right)
    y = min(max(point[1], box.low), box.high)
    return (x - box.left) / (box.right - box.left), (y - box.low) / (box.high - box.low)


def placed(
    points: Sequence[tuple[float, ...]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    dot: float,
    taken: Sequence[Box] = (),
) -> list[Box]:
    """Return a box of each size within `frame`, near its point, that covers no other box, no point, nothing `taken`.

    `dot` is half the width of what is drawn at a point. Those with the most neighbours choose first.
    """
    dots = [Box(x - dot, y - dot, x + dot, y + dot) for x, y in points]
    reach = 4 * max((width for width, _ in sizes), default=0.0)

    def crowd(index: int) -> int:
        return sum(math.dist(points[index], other) < reach / 4 for other in points)

    found: dict[int, Box] = {}
    lines: list[tuple[Point, Point]] = []
    for index in sorted(range(len(points)), key=lambda index: (-crowd(index), index)):
        names = [*dots[:index], *dots[index + 1 :], *found.values()]
        choices = list(_around(points[index], sizes[index], dot, reach))
        free = [box for box in choices if frame.holds(box) and not any(box.meets(one) for one in names)]
        clear = [box for box in free if not any(box.meets(one) for one in taken)]
        clear = [box for box in clear if not any(_passes(line, [box]) for line in lines)] or clear
        bars = [box for box in taken if not box.has(points[index])]
        straight = [box for box in clear if not _crossed(box, points[index], names)]
        point = (points[index][0], points[index][1])

        def cost(box: Box, point: Point = point, bars: Sequence[Box] = bars, order: Sequence[Box] = choices) -> float:
            """Rounds around a point until the box; what the line to it crosses counts as some more."""
            crossed = sum(_meet(line, (point, _nearest(box, point))) for line in lines)
            rounds = order.index(box) // len(AROUND)
            return rounds + LINE_CROSSED * crossed + BAR_CROSSED * _crossed(box, point, bars)

        found[index] = min(straight, key=cost) if straight else next(iter([*clear, *free, *choices]))
        lines.append((point, _nearest(found[index], point)))
    return [found[index] for index in range(len(points))]


def _nearest(box: Box, point: Point) -> Point:
    """Return the point of a box that is nearest to another one."""
    return min(max(point[0], box.left), box.right), min(max(point[1], box.low), box.high)


def _meet(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Return True if two lines cross."""

    def side(of: tuple[Point, Point], at: Point) -> float:
        (x0, y0), (x1, y1) = of
        return (x1 - x0) * (at[1] - y0) - (y1 - y0) * (at[0] - x0)

    return side(one, other[0]) * side(one, other[1]) < 0 and side(other, one[0]) * side(other, one[1]) < 0


def _around(point: tuple[float, ...], size: tuple[float, float], dot: float, reach: float) -> Iterator[Box]:
    """Yield boxes beside a point, then further and further away."""
    (x, y), (width, height) = point, size
    distance = 2 * dot
    while distance < reach:
        for angle in AROUND:
            # The nearest edge lies at the distance: half of the size is added in that direction.
            middle_x = x + math.cos(angle) * (distance + width / 2)
            middle_y = y + math.sin(angle) * (distance + height / 2)
            yield Box(middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2)
        distance += dot


def _crossed(box: Box, point: tuple[float, ...], others: Sequence[Box]) -> bool:
    """Return True if the line from a box to its point passes through another one."""
    at = (point[0], point[1])
    return _passes((_nearest(box, at), at), others)


def _passes(line: tuple[Point, Point], others: Sequence[Box]) -> bool:
    """Return True if a line passes through a box."""
    steps = 24
    for step in range(1, steps):
        x, y = (a + (b - a) * step / steps for a, b in zip(*line, strict=True))
        if any(one.left < x < one.right and one.low < y < one.high for one in others):
            return True
    return False
