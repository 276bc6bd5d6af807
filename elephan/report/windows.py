"""Windows of a measurement among the metrics of records: "after-move.goodput_bps" is the goodput in window
after-move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from elephan.record import Record

COLUMNS = (
    "goodput_bps",
    "retransmitted_segments",
    "dropped_packets",
    "timeouts",
    "cwnd_reductions",
    "cwnd_mean_packets",
)
"""Metrics of a window that tables show."""


def columns_of(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the names of the columns of all windows that the records have, in their order."""
    windows = dict.fromkeys(str(window["name"]) for record in records for window in record.windows)
    return tuple(f"{window}.{name}" for window in windows for name in COLUMNS)


def metrics_of(record: Record) -> dict[str, Any]:
    """Return the metrics of a run and those in its windows."""
    if not record.windows:
        return record.metrics
    return record.metrics | {name: value for window in record.windows for name, value in _of(window, window["metrics"])}


def flows_of(record: Record) -> list[dict[str, Any]]:
    """Return the metrics of each connection and those in the windows of the run."""
    flows = record.flows
    for window in record.windows:
        inside = window["flows"] or [{}] * len(flows)
        flows = [flow | dict(_of(window, found)) for flow, found in zip(flows, inside, strict=True)]
    return flows


def _of(window: Mapping[str, Any], metrics: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return ((f"{window['name']}.{name}", value) for name, value in metrics.items() if name != "name")
