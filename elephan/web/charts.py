"""The numbers of a path's charts: as JSON for the page, as CSV for everybody else."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from elephan.monitor.reading import AlertView, MonitorReader, Series
from elephan.web.quantities import CHARTS, Chart, Line
from elephan.web.window import Window, iso

POINTS = 700
"""Points of a curve: about one per pixel of a chart's width."""

POINTS_MAX = 2000
"""Most that a URL may ask for."""

BAND_POINTS = 240

SAMPLES_S = 7 * 86400.0
"""Longest window of a quantity that has no summaries: a week of a sample a second is read in half a second."""

WITHOUT_SUMMARIES = ("ttl",)

Values = list[float | None]


def data(
    reader: MonitorReader, path_id: int, window: Window, points: int, alerts: Sequence[AlertView]
) -> dict[str, Any]:
    """Return what the page's charts draw."""
    return {
        "start": window.start_s,
        "end": window.end_s,
        "charts": {chart.key: _chart(reader, path_id, chart, window, points) for chart in CHARTS},
        "alerts": [
            {
                "id": alert.id,
                "quantity": alert.quantity,
                "since": alert.since_s,
                "ended": alert.ended_s,
                "text": alert.text,
            }
            for alert in alerts
        ],
    }


def lines_of(chart: Chart, window: Window) -> list[Line]:
    """Return the lines of a chart that a window can show."""
    is_short = window.length_s <= SAMPLES_S
    return [line for line in chart.lines if is_short or line.quantity not in WITHOUT_SUMMARIES]


def _series(reader: MonitorReader, path_id: int, line: Line, window: Window, points: int) -> Series:
    return reader.series(path_id, line.quantity, window.start_s, window.end_s, points)


def _chart(reader: MonitorReader, path_id: int, chart: Chart, window: Window, points: int) -> dict[str, Any]:
    band = (
        reader.benchmark(path_id, chart.benchmark, window.start_s, window.end_s, BAND_POINTS)
        if chart.benchmark
        else None
    )
    drawn = [(line, _series(reader, path_id, line, window, points)) for line in lines_of(chart, window)]
    return {
        "quantities": [line.quantity for line in chart.lines],
        "lines": [
            {
                "index": chart.lines.index(line),
                "label": line.label,
                "step_s": one.resolution_s,
                "times": one.times,
                "low": _short(one.low),
                "mid": _short(one.mid),
                "high": _short(one.high),
            }
            for line, one in drawn
            if one.times
        ],
        "band": None
        if band is None or not band.times
        else {"times": band.times, "low": _short(band.low), "mid": _short(band.mid), "high": _short(band.high)},
    }


def _short(values: Sequence[float | None]) -> Values:
    """Return values with six significant digits, in which no pixel differs; JSON has no infinity and no NaN."""
    return [None if v is None or not math.isfinite(v) else float(f"{v:.6g}") for v in values]


def chart_by_key(key: str) -> Chart | None:
    """Return a chart by its key."""
    return next((chart for chart in CHARTS if chart.key == key), None)


def as_csv(reader: MonitorReader, path_id: int, chart: Chart, window: Window, points: int) -> str:
    """Return a chart as CSV: a row per point, times in UTC, values in the unit of the quantity's name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "quantity", "low", "mid", "high"])
    for line in lines_of(chart, window):
        one = _series(reader, path_id, line, window, points)
        for at_s, low, mid, high in zip(one.times, one.low, one.mid, one.high, strict=True):
            writer.writerow([iso(at_s), line.quantity, *("" if v is None else repr(v) for v in (low, mid, high))])
    return text.getvalue()
