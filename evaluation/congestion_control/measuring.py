"""Measure a run: reduce the core's result to a handful of numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from evaluation.performance.dumbbell import NS_PER_S, PAYLOAD_BYTES

Numbers = dict[str, Any]
"""Measured values of a run: numbers and lists of numbers that JSON can hold."""


def response(result: Any, period: int, warmup: int, counted: int, rtt_ns: int) -> Numbers:
    """Return the mean window over the counted cycles of `period` packets, and how it changes from first to last third.

    Delivered packets per round trip, and not cwnd, because that is what the formulas mean: in recovery cwnd is another
    thing.
    """
    series = result.flow_series
    time_s, goodput = series["time_s"], series["goodput_bps"]
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
        **{name: result.metrics[name] for name in ("timeouts", "fast_retransmits", "retransmitted_segments")},
    }


def goodputs(result: Any) -> Numbers:
    """Return the goodput of each flow after the warm-up, bit/s."""
    return {
        "goodput_bps": [flow["goodput_bps"] for flow in result.flows],
        "line_share": result.metrics["line_share"],
        "retransmitted_segments": result.metrics["retransmitted_segments"],
        "delivered_packets": result.metrics["delivered_packets"],
    }


def convergence(result: Any, join_s: float, window_s: float, hold_s: float, jain: float) -> Numbers:
    """Return how long the newcomer took to an equal share, s; None when the run ended before."""
    series = result.flow_series
    rates = [series["goodput_bps"][series["flow"] == index] for index in (0, 1)]
    time_s = series["time_s"][series["flow"] == 0]
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


def measure(kind: str, spec: dict[str, Any], options: dict[str, Any]) -> Numbers:
    """Simulate a spec and return its numbers."""
    from elephan import _native

    return KINDS[kind](_native.simulate(json.dumps(spec), None, 1.0), **options)
