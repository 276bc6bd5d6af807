"""Cumulative distributions of latency and lag, from the quantiles that records hold; no series is needed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from elephan import units
from elephan.report.distributions import Distribution, distribution_of
from elephan.report.figures import (
    LOG_FROM,
    MOST_CURVES,
    MOST_PANELS,
    Colours,
    DistributionFigure,
    Panel,
    grouped,
    slug,
    spread,
    track_label,
)
from elephan.report.points import Point

FIGURES = (
    ("lag_s", "lag", "Replication lag of the writes", "Part of the writes that the far copy had within a time."),
    ("latency_s", "latency", "Latency of the frames", "Part of the frames that were delivered within a time."),
    ("read_latency_s", "read-latency", "Time of the reads", "Part of the reads that were done within a time."),
    ("write_latency_s", "write-latency", "Time of the writes", "Part of the writes that were done within a time."),
    (
        "short_completion_s",
        "short-completion",
        "Completion of the short flows",
        "Part of the short flows that were delivered whole within a time.",
    ),
    ("file_time_s", "file-time", "Time of the files", "Part of the files that were written whole within a time."),
)
"""Distributions that a record may hold: name, key of the figure, title, caption."""


def distribution_panels(points: Sequence[Point], colours: Colours) -> list[Panel]:
    """Return the panels of distributions; empty where no record holds any."""
    panels = []
    for title, members in spread(grouped(points), MOST_PANELS):
        figures = [figure for item in FIGURES if (figure := _figure(members, *item, colours)) is not None]
        if figures:
            labels = dict.fromkeys(label for figure in figures for label, _, _ in figure.curves)
            legend = tuple((label, colours.of(label)) for label in labels)
            panels.append(Panel(title, slug(title), legend, tuple(figures), members[0].first.seed))
    return panels


def _figure(
    points: Sequence[Point], name: str, key: str, title: str, caption: str, colours: Colours
) -> DistributionFigure | None:
    curves = [(label, colours.of(label), found) for point in points for label, found in _curves(point, name)][
        :MOST_CURVES
    ]
    if not curves:
        return None
    middle = [value for _, _, found in curves for value in _between(found, 0.01, 0.99)]
    log = min(middle) > 0 and max(middle) / min(middle) > LOG_FROM
    caption += " Logarithmic." if log else ""
    return DistributionFigure(f"{key}-cdf", title, caption, units.duration, tuple(curves), log)


def _curves(point: Point, name: str) -> list[tuple[str, Distribution]]:
    """Return the labels and distributions of a point: of the whole run, or of each flow entry that has one."""
    record, entities = point.first, point.entities()
    if len(entities) <= 1:
        whole = distribution_of(record, name)
        return [] if whole is None else [(point.curve, whole)]
    if record.quantiles.get("per_mille") is None:
        return []
    found = (
        (track_label(entity, point.backend), distribution_of(record, name, group))
        for group, entity in point.by_group.items()
    )
    return list(islice(((label, one) for label, one in found if one is not None), MOST_CURVES))


def _between(found: Distribution, low: float, high: float) -> list[float]:
    """Return the values between two shares."""
    inside = (found.shares >= low) & (found.shares <= high)
    return [float(value) for value in found.values_s[inside]] or [float(found.values_s[-1])]
