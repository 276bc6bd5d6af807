"""Summaries of samples: a minute's by the monitor itself, an hour's and a day's of the journal. No numpy here."""

from __future__ import annotations

from collections.abc import Sequence


def row(path_id: int, quantity: str, seconds: int, start: int, values: Sequence[float], lost: int) -> dict[str, object]:
    """Return a row of `monitor_summary`. `values` are sorted; percentiles are nearest ranks."""
    found: dict[str, object] = {"path_id": path_id, "quantity": quantity, "seconds": seconds, "start": start}
    found |= {"count": len(values), "lost": lost}
    if not values:
        return found | dict.fromkeys(("min", "p05", "p50", "p95", "max", "mean"))
    return found | {
        "min": values[0],
        "p05": nearest_rank(values, 0.05),
        "p50": nearest_rank(values, 0.5),
        "p95": nearest_rank(values, 0.95),
        "max": values[-1],
        "mean": sum(values) / len(values),
    }


def nearest_rank(values: Sequence[float], part: float) -> float:
    """Return the percentile of sorted values by the nearest rank."""
    return values[min(len(values) - 1, max(0, -int(-part * len(values) // 1) - 1))]
