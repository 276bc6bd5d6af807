"""The figure of load curves: mean time of a request against throughput, with the knees marked."""

from __future__ import annotations

from collections.abc import Sequence

from elephan.report.figures import LOG_FROM, MOST_CURVES, Colours, LoadFigure
from elephan.report.knee import LoadPoint
from elephan.report.load_curve import CAPTION, CONNECTIONS, DEPTH, LoadCurve, load_curves
from elephan.report.points import Point, short, shown
from elephan.units import byte_rate, duration


def load_figures(points: Sequence[Point], colours: Colours) -> list[LoadFigure]:
    """Return the figure of all curves: mean time against throughput, the knees marked."""
    curves = load_curves(points)
    if not curves:
        return []
    lines: list[tuple[str, int, tuple[tuple[float, float], ...]]] = []
    knees: list[tuple[float, float, str]] = []
    drawn: list[float] = []
    for curve in curves:
        found = _lines(curve)
        if len(lines) + len(found) > MOST_CURVES:
            break
        lines += [(label, colours.of(label), line) for label, line in found]
        drawn += [latency_s for _, line in found for _, latency_s in line]
        load = curve.loads[curve.knee.index]
        assert load is not None
        # Texts of several would lie over each other; the sentence above the report has them all.
        knees.append((load.throughput, load.latency_s, f"knee: {curve.load}" if len(curves) == 1 else ""))
    if not lines:
        return []
    left_out = len(curves) - len(knees)
    more = f" {left_out} more {'curve is' if left_out == 1 else 'curves are'} not drawn." if left_out else ""
    return [
        LoadFigure(
            key="load",
            title="Time of a request against throughput",
            caption=f"Mean time of a request, along ascending loads. Circled is the {CAPTION}.{more}",
            show_x=byte_rate,
            show_y=duration,
            lines=tuple(lines),
            knees=tuple(knees),
            y_log=max(drawn) / min(drawn) > LOG_FROM,
        )
    ]


def _lines(curve: LoadCurve) -> list[tuple[str, tuple[tuple[float, float], ...]]]:
    """Return lines of ascending load: one for each number of connections where the depth was varied, else one."""
    by_depth = any(key.rsplit(".", 1)[-1] == DEPTH for key in curve.keys)
    keys = [key for key in curve.keys if key.rsplit(".", 1)[-1] == CONNECTIONS] if by_depth else []
    groups: dict[str, list[LoadPoint]] = {}
    for point, load in zip(curve.points, curve.loads, strict=True):
        if load is not None and load.latency_s > 0:
            parts = [curve.name, *(f"{short(key)} {shown(point.varied[key])}" for key in keys)]
            label = ", ".join(part for part in parts if part) or point.cc
            groups.setdefault(label, []).append(load)
    return [
        (
            label,
            tuple(
                (load.throughput, load.latency_s)
                for load in sorted(members, key=lambda load: (load.depth, load.connections))
            ),
        )
        for label, members in groups.items()
    ]
