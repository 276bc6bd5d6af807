"""Metrics of which tables and tiles mark the best value."""

from __future__ import annotations

from elephan.report.metrics import Metric

SIDE_EFFECTS = frozenset(
    {
        *("retransmitted_segments", "retransmitted_bytes", "dropped_packets", "duplicate_acks", "timeouts"),
        *("fast_retransmits", "reverse_retransmitted_segments", "reverse_retransmitted_bytes", "reverse_timeouts"),
    }
)
"""Metrics of which a run that carries little has little: the least is no merit, and no table marks it."""


def is_ranked(metric: Metric) -> bool:
    """Return True if the best value of a metric is marked among several."""
    return metric.better != "neither" and metric.name not in SIDE_EFFECTS
