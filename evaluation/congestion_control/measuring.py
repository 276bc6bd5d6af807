"""Measure a run: reduce its record and series to a handful of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from elephan.record import Record
from elephan.store import Series
from evaluation.congestion_control.cases import Cell
from evaluation.performance.dumbbell import NS_PER_S, PAYLOAD_BYTES
from evaluation.runner import Runner

Numbers = dict[str, Any]
"""Measured values of a run: numbers and lists of numbers, by name."""


def response(record: Record, series: Series | None, period: int, warmup: int, counted: int, rtt_ns: int) -> Numbers:
    """Return the mean window over the counted cycles of `period` packets, and how it changes from first to last third.

    Delivered packets per round trip, and not cwnd, because that is what the formulas mean: in recovery cwnd is another
    thing.
    """
    time_s, goodput = columns_of(series, "time_s", "goodput_bps")
    steps = np.diff(time_s, prepend=0.0)
    packets = np.cumsum(goodput * steps) / (8 * PAYLOAD_BYTES)
    edges = np.interp(period * (warmup + np.arange(counted + 1)), packets, time_s)
    # A mean over time of cycles of as many packets each: packets over time, not the mean of the cycles' windows.
    window = period * rtt_ns / NS_PER_S
    third = max(1, counted // 3)
    first_s, last_s = edges[third] - edges[0], edges[-1] - edges[-1 - third]
    return {
        "mean": float(counted * window / (edges[-1] - edges[0])),
        "drift": float(first_s / last_s - 1.0),
        **{name: record.metrics[name] for name in ("timeouts", "fast_retransmits", "retransmitted_segments")},
    }


def goodputs(record: Record, _: Series | None) -> Numbers:
    """Return the goodput of each flow after the warm-up, bit/s."""
    return {
        "goodput_bps": [flow["goodput_bps"] for flow in record.flows],
        "line_share": record.metrics["line_share"],
        "retransmitted_segments": record.metrics["retransmitted_segments"],
        "delivered_packets": record.metrics["delivered_packets"],
    }


def convergence(
    _: Record, series: Series | None, join_s: float, window_s: float, hold_s: float, jain: float
) -> Numbers:
    """Return how long the newcomer took to an equal share, s; None when the run ended before."""
    times_s, flow, goodput = columns_of(series, "time_s", "flow", "goodput_bps")
    rates = [goodput[flow == index] for index in (0, 1)]
    time_s = times_s[flow == 0]
    length = min(len(rates[0]), len(rates[1]))
    step_s = float(time_s[1] - time_s[0])
    width, hold = round(window_s / step_s), round(hold_s / step_s)
    kernel = np.ones(width) / width
    a, b = (np.convolve(rate[:length], kernel, "valid") for rate in rates)
    index = (a + b) ** 2 / np.maximum(2.0 * (a * a + b * b), 1.0)
    ends_s = time_s[width - 1 : length]
    fair = (index >= jain) & (ends_s >= join_s + window_s)
    # From here on, `hold` windows in a row are fair.
    runs = np.convolve(fair.astype(int), np.ones(hold, dtype=int), "valid") == hold
    found = np.flatnonzero(runs)
    return {"seconds": float(ends_s[found[0]] - join_s) if len(found) else None}


def jain_of(rates: list[float]) -> float:
    """Jain's index (Jain, Chiu, Hawe 1984)."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


KINDS: dict[str, Callable[..., Numbers]] = {"response": response, "goodputs": goodputs, "convergence": convergence}


def measured(runner: Runner, cells: Sequence[Cell]) -> list[Numbers]:
    """Return the numbers of each cell, in order."""
    results = runner.run(cell.job for cell in cells)
    return [
        KINDS[cell.kind](record, results.series_of(record), **cell.options)
        for cell, record in zip(cells, results, strict=True)
    ]


def columns_of(series: Series | None, *names: str) -> list[Any]:
    """Return columns of the flows' series as numpy arrays."""
    assert series is not None, "the specification asks for a series"
    return [series.flow.column(name).to_numpy() for name in names]
