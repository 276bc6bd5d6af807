"""Drawings that the server makes: the map of paths, and a small curve of a path's last day.

State is a colour, a sign, a word and a kind of line, so that none of them is needed to see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from elephan.monitor.reading import PathState
from elephan.web.quantities import quantity

if TYPE_CHECKING:
    from markupsafe import Markup

WORDS = {"good": "good", "alert": "alert", "silent": "no answer", "paused": "paused"}
"""A path's state in words."""

SHOWN = ("rtt_s", "loss", "available_bps")
"""Quantities in the wide map, in columns."""

COLUMNS = (690, 790, 930)
"""Right edges of those columns in the wide map, whose width is 940."""

ROW, NARROW_ROW = 38, 46
"""Height of a path in the maps, units of the drawing; in the narrow one a finger's width."""


def address(path: PathState) -> str:
    """Return the URL of a path's page."""
    return f"/paths/{quote(path.monitor, safe='')}/{quote(path.name, safe='')}"


def by_monitor(paths: Sequence[PathState]) -> dict[str, list[PathState]]:
    """Return paths by monitor, those that share a bottleneck together."""
    found: dict[str, list[PathState]] = {}
    for path in sorted(paths, key=lambda path: (path.monitor, bottleneck(path), path.name)):
        found.setdefault(path.monitor, []).append(path)
    return found


def bottleneck(path: PathState) -> str:
    """Return the bottleneck that a path shares with others by its monitor's file; nothing where it shares none."""
    name = str(path.settings.get("bottleneck") or "")
    # A monitor gives a path that shares none a name of its own, with a star before it.
    return "" if name.startswith("*") else name


def wide_map(paths: Sequence[PathState]) -> Markup:
    """Return the map for a wide page: monitors to the left, shared bottlenecks in the middle, far ends to the right."""
    return _drawn(paths, 940, _wide, "wide")


def narrow_map(paths: Sequence[PathState]) -> Markup:
    """Return the map for a narrow page: each monitor above its paths."""
    return _drawn(paths, 360, _narrow, "narrow")


def _drawn(
    paths: Sequence[PathState],
    width: int,
    group: Callable[[str, list[PathState], int], tuple[list[str], int]],
    kind: str,
) -> Markup:
    from markupsafe import Markup

    parts: list[str] = []
    y = 6
    for monitor, members in by_monitor(paths).items():
        drawn, y = group(monitor, members, y)
        parts += drawn
    return Markup(
        f'<svg class="map {kind}" viewBox="0 0 {width} {y}" role="group" aria-label="map of paths">'
        f"{''.join(parts)}</svg>"
    )


def _wide(monitor: str, members: list[PathState], top: int) -> tuple[list[str], int]:
    head = top + 18
    parts = [
        f'<text class="head" x="{x}" y="{head}" text-anchor="end">{quantity(name).title}</text>'
        for name, x in zip(SHOWN, COLUMNS, strict=True)
    ]
    first = top + 30
    bottom = first + ROW * len(members)
    centre = (first + bottom) / 2
    groups: dict[str, list[int]] = {}
    for index, path in enumerate(members):
        groups.setdefault(bottleneck(path), []).append(index)
    middles = {
        name: first + ROW * (rows[0] + rows[-1] + 1) / 2 for name, rows in groups.items() if name and len(rows) > 1
    }
    # Trunks first, so that lines with a state lie above them.
    for name, y in middles.items():
        parts.append(f'<path class="trunk" d="{_curve(152, centre, 272, y)}"/>')
        parts.append(
            f'<rect class="shared" x="268" y="{y - 8:.0f}" width="8" height="16" rx="3"/>'
            f'<text class="shared-name" x="272" y="{y - 14:.0f}" text-anchor="middle">{_clipped(name, 20)}</text>'
        )
    for index, path in enumerate(members):
        y = first + ROW * index + ROW / 2
        shared = middles.get(bottleneck(path))
        start = (276.0, shared) if shared is not None else (152.0, centre)
        values = " ".join(
            f'<text class="value" x="{x}" y="{y + 5:.0f}" text-anchor="end" {_live(path, name)}>'
            f"{_value(path, name)}</text>"
            for name, x in zip(SHOWN, COLUMNS, strict=True)
        )
        parts.append(
            _linked(
                path,
                f'<rect class="hit" x="156" y="{y - ROW / 2 + 2:.0f}" width="780" height="{ROW - 4}" rx="6"/>'
                f'<path class="way" d="{_curve(*start, 400, y)}"/>{_sign(path.state, 412, y)}'
                f'<text class="name" x="434" y="{y - 2:.0f}">{_clipped(path.name, 18)}</text> '
                f'<text class="word" x="434" y="{y + 14:.0f}">{_state_words(path)}</text> {values}',
            )
        )
    parts.append(
        f'<rect class="site" x="14" y="{centre - 20:.0f}" width="138" height="40" rx="8"/>'
        f'<text class="site-name" x="83" y="{centre + 5:.0f}" text-anchor="middle">{_clipped(monitor, 15)}</text>'
    )
    return parts, bottom + 10


def _narrow(monitor: str, members: list[PathState], top: int) -> tuple[list[str], int]:
    first = top + 44
    bottom = first + NARROW_ROW * len(members)
    last = bottom - NARROW_ROW / 2
    parts = [
        f'<rect class="site" x="4" y="{top}" width="352" height="34" rx="8"/>'
        f'<text class="site-name" x="18" y="{top + 22}">{_clipped(monitor, 34)}</text>',
        f'<path class="trunk" d="M20 {top + 34}V{last:.0f}"/>',
    ]
    for index, path in enumerate(members):
        y = first + NARROW_ROW * index + NARROW_ROW / 2
        share = f" · shares {_clipped(bottleneck(path), 16)}" if bottleneck(path) else ""
        parts.append(
            _linked(
                path,
                f'<rect class="hit" x="24" y="{y - NARROW_ROW / 2 + 1:.0f}" width="332" height="{NARROW_ROW - 2}" '
                'rx="6"/>'
                f'<path class="way" d="M20 {y}H44"/>{_sign(path.state, 54, y)}'
                f'<text class="name" x="74" y="{y - 2:.0f}">{_clipped(path.name, 20)}</text> '
                f'<text class="word" x="74" y="{y + 14:.0f}">{_state_words(path)}{share}</text> '
                f'<text class="value" x="350" y="{y - 2:.0f}" text-anchor="end" {_live(path, "rtt_s")}>'
                f"{_value(path, 'rtt_s')}</text> "
                f'<text class="word" x="350" y="{y + 14:.0f}" text-anchor="end" {_live(path, "loss")}>'
                f"{_value(path, 'loss')}</text>",
            )
        )
    return parts, bottom + 10


def _linked(path: PathState, inside: str) -> str:
    from markupsafe import escape

    return (
        # Its name is its text, which is what one sees, and stays so when news change it.
        f'<a class="path {path.state}" href="{escape(address(path))}" data-path="{path.id}">{inside}</a>'
    )


def _state_words(path: PathState) -> str:
    if path.alerts_open:
        return f"{WORDS[path.state]}: {path.alerts_open} open"
    return WORDS[path.state]


def _live(path: PathState, name: str) -> str:
    return f'data-live="{path.id}:{name}"'


def _value(path: PathState, name: str) -> str:
    return quantity(name).show(path.latest.get(name))


def _curve(x0: float, y0: float, x1: float, y1: float) -> str:
    """Return a line that leaves and arrives level."""
    bend = (x1 - x0) / 2
    return f"M{x0:.0f} {y0:.0f}C{x0 + bend:.0f} {y0:.0f} {x1 - bend:.0f} {y1:.0f} {x1:.0f} {y1:.0f}"


def sign(state: str) -> Markup:
    """Return the sign of a state for a line of text."""
    from markupsafe import Markup

    return Markup(f'<svg class="sign {state}" viewBox="-10 -10 20 20" aria-hidden="true">{_sign(state, 0, 0)}</svg>')


def _sign(state: str, x: float, y: float) -> str:
    """A tick in a disc, a triangle with a mark, a ring with a stroke, two bars."""
    shapes = {
        "good": '<circle r="9"/><path class="mark" d="M-4.5 .5L-1.5 3.5L4.5 -3"/>',
        "alert": '<path d="M0 -9.5L10 8H-10Z"/><path class="mark" d="M0 -3.5V2M0 4.8V5.2"/>',
        "silent": '<circle class="ring" r="8"/><path class="stroke" d="M-4 0H4"/>',
        "paused": '<circle class="ring" r="8"/><path class="stroke" d="M-2.5 -3.5V3.5M2.5 -3.5V3.5"/>',
    }
    return f'<g class="sign" transform="translate({x:.0f} {y:.0f})">{shapes[state]}</g>'


def _clipped(text: str, most: int) -> str:
    from markupsafe import escape

    return str(escape(text if len(text) <= most else f"{text[: most - 1]}…"))


SPARK_WIDTH, SPARK_HEIGHT = 120, 26


def spark(times: Sequence[float], values: Sequence[float | None], start_s: float, end_s: float) -> Markup:
    """Return a small curve, without axes: its table and its chart are on the path's page."""
    from markupsafe import Markup

    known = [value for value in values if value is not None]
    if len(known) < 2 or end_s <= start_s:
        return Markup("")
    low, high = min(known), max(known)
    # A quiet path's noise would fill the height: show at least a tenth of the value.
    margin = max(0.0, 0.1 * high - (high - low)) / 2
    low, high = low - margin, high + margin
    parts, is_down = [], False
    for at_s, value in zip(times, values, strict=True):
        if value is None:
            is_down = False
            continue
        x = SPARK_WIDTH * (at_s - start_s) / (end_s - start_s)
        y = 2 + (SPARK_HEIGHT - 4) * (1 - (value - low) / ((high - low) or 1.0))
        parts.append(f"{'L' if is_down else 'M'}{x:.1f} {y:.1f}")
        is_down = True
    return Markup(
        f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" aria-hidden="true">'
        f'<path d="{"".join(parts)}"/></svg>'
    )
