"""Plots for a terminal: a line of dots, and bars. Braille dots where the output can show them, else stars."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot of a braille sign (Unicode 2800 to 28FF), by row and column."""

Show = Callable[[float | None], str]


def unicode_output() -> bool:
    """Return True if stdout can show braille dots and blocks."""
    return "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()


def line(
    x: Sequence[float],
    y: Sequence[float],
    x_title: str,
    show_y: Show,
    width: int = 72,
    height: int = 10,
    dots: bool | None = None,
) -> str:
    """Return y over x, both axes labelled at their ends; y from zero. NaN is left out."""
    dots = unicode_output() if dots is None else dots
    points = [(a, b) for a, b in zip(x, y, strict=True) if not (math.isnan(a) or math.isnan(b))]
    if not points:
        return "nothing to draw"
    left, right = points[0][0], max(a for a, _ in points)
    top = max(b for _, b in points) or 1.0
    labels = [show_y(top), show_y(top / 2), show_y(0)]
    margin = max(map(len, labels))
    columns = max(10, width - margin - 2)
    across, down = (2, 4) if dots else (1, 1)
    grid = [[0] * (columns * across) for _ in range(height * down)]
    last: tuple[int, int] | None = None
    for a, b in points:
        column = min(columns * across - 1, int((a - left) / ((right - left) or 1.0) * columns * across))
        row = min(height * down - 1, int((1 - b / top) * height * down))
        from_column, from_row = last or (column, row)
        steps = max(abs(column - from_column), abs(row - from_row), 1)
        for step in range(steps + 1):
            part = step / steps
            grid[round(from_row + (row - from_row) * part)][round(from_column + (column - from_column) * part)] = 1
        last = (column, row)
    rows = [_signs(grid, number, columns, dots) for number in range(height)]
    middle = height // 2
    heads = {0: labels[0], middle: labels[1], height - 1: labels[2]}
    axis = "┤" if dots else "|"
    drawn = [f"{heads.get(number, ''):>{margin}} {axis}{text.rstrip()}" for number, text in enumerate(rows)]
    ends = f"{_plain(left)}{x_title:^{max(0, columns - len(_plain(left)) - len(_plain(right)))}}{_plain(right)}"
    return "\n".join([*drawn, f"{'':>{margin}}  {ends}"])


def _signs(grid: list[list[int]], number: int, columns: int, dots: bool) -> str:
    if not dots:
        return "".join("*" if filled else " " for filled in grid[number])
    signs = []
    for column in range(columns):
        bits = sum(DOTS[row][side] * grid[number * 4 + row][column * 2 + side] for row in range(4) for side in range(2))
        signs.append(chr(BRAILLE + bits) if bits else " ")
    return "".join(signs)


def bar(share: float, width: int = 20, blocks: bool | None = None) -> str:
    """Return a bar for a part of 1, in eighths of a column where they can be shown."""
    blocks = unicode_output() if blocks is None else blocks
    share = min(1.0, max(0.0, share))
    if not blocks:
        return "#" * round(share * width)
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8]).strip()


def _plain(value: float) -> str:
    return f"{value:.3g}"
