"""The sending agent's outcome in the form in which the native core gives a run's result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

COLUMNS = {
    "time_s": np.float64,
    "flow": np.uint32,
    "cwnd_packets": np.uint32,
    "ssthresh_packets": np.float64,
    "srtt_s": np.float64,
    "in_flight_bytes": np.uint64,
    "goodput_bps": np.float64,
    "retransmitted_segments": np.uint64,
    "duplicate_acks": np.uint64,
    "lag_s": np.float64,
    "lag_bytes": np.uint64,
}
"""Columns of the flow series with the core's types (crates/python/src/simulate.rs); null is NaN."""


@dataclass(frozen=True)
class Outcome:
    """A run's result, as `elephan._native.RunResult` has it."""

    metrics: dict[str, Any]
    flows: list[dict[str, Any]]
    flow_groups: list[dict[str, Any]]
    links: list[dict[str, Any]]
    background: list[dict[str, Any]]
    notes: list[str]
    event_times_s: list[float | None]
    flow_series: dict[str, Any]
    link_series: dict[str, Any] = field(default_factory=dict)
    short_flows: list[dict[str, Any]] = field(default_factory=list)
    cwnd_reductions: list[dict[str, Any]] = field(default_factory=list)
    manager: None = None
    extrapolation: None = None


def outcome_of(answer: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> Outcome:
    """Return the outcome of an agent's answer and of its events `series`, which have rows of the series in order."""
    told = answer["outcome"]
    series = {}
    for name, kind in COLUMNS.items():
        values = [value for part in parts for value in part.get(name, ())]
        if values or name == "time_s" or name == "flow":
            series[name] = np.array([np.nan if value is None else value for value in values], dtype=kind)
    return Outcome(
        metrics=told["metrics"],
        flows=told["flows"],
        flow_groups=told["flow_groups"],
        links=told["links"],
        background=told["background"],
        notes=told["notes"],
        event_times_s=told["event_times_s"],
        flow_series=series,
    )
