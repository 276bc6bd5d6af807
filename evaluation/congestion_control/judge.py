"""Compare measurements with published values, and take medians over seeds: rows for page, picture and tests."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.congestion_control.cases import Cell, CongestionControl
from evaluation.congestion_control.measuring import jain_of
from evaluation.congestion_control.models import cycle_of


@dataclass(frozen=True)
class Point:
    """One loss rate of a response function; windows in segments."""

    cc: str
    loss: float
    measured: float
    drift: float
    published: float | None
    low: float
    high: float
    steady: float

    @property
    def ratio(self) -> float | None:
        """Measured over published."""
        return None if self.published is None else self.measured / self.published

    @property
    def holds(self) -> bool:
        """Return True if it is steady and its ratio within its tolerance; without a published value it is not judged.
        """
        return self.ratio is None or (self.low <= self.ratio <= self.high and self.is_steady)

    @property
    def is_steady(self) -> bool:
        """Return True if its cycles are alike."""
        return abs(self.drift) <= self.steady

    def __str__(self) -> str:
        return (
            f"{self.cc} at {self.loss:g}: {self.measured:.5g} segments over {self.published or float('nan'):.5g}, "
            f"ratio {self.ratio or float('nan'):.3f}, allowed {self.low:g} to {self.high:g}; drift {self.drift:+.3f}"
        )


@dataclass
class Sharing:
    """Sharing of a line by a congestion control: medians over seeds."""

    cc: str
    jain: dict[int, float] = field(default_factory=dict)
    """By number of flows."""
    rtt_ratio: dict[int, float] = field(default_factory=dict)
    """Goodput of the short round trip over that of the long, by the ratio of the two."""
    convergence_s: float | None = None
    """None: not in every second run before its end."""
    of_reno: float | None = None
    """Share of what both carry that the congestion control gets beside one Reno flow."""
    line_share: float | None = None
    """Goodput of two flows over the line's rate."""


def tolerance(
    reference: dict[str, Any], cc: CongestionControl, loss: float, published: float | None
) -> tuple[float, float]:
    """Return the bounds of a point: the congestion control's own for that loss, else those of its window's size."""
    for own in cc.get("tolerance", []):
        if own["from"] <= loss <= own["to"]:
            return own["low"], own["high"]
    table = reference["response"]
    small = published is not None and published < table["small_window"]
    low, high = table["small_tolerance" if small else "tolerance"]
    return low, high


def points(
    reference: dict[str, Any], cc: CongestionControl, cells: Sequence[Cell], numbers: Sequence[dict[str, Any]]
) -> list[Point]:
    """Return the points of periodic loss."""
    table = reference["response"]
    found = []
    for cell, result in zip(cells, numbers, strict=True):
        if cell.kind != "response" or cell.key[0] != "periodic":
            continue
        loss = cell.key[1]
        cycle = cycle_of(cc, loss, table["rtt_ms"] / 1000)
        published = None if cycle is None else cycle.mean
        low, high = tolerance(reference, cc, loss, published)
        found.append(
            Point(
                cc["name"],
                loss,
                result["mean"],
                result["drift"],
                published,
                low,
                high,
                cc.get("steady", table["steady"]),
            )
        )
    return found


def independent(cells: Sequence[Cell], numbers: Sequence[dict[str, Any]]) -> dict[float, list[float]]:
    """Return the mean windows under independent loss, by loss rate, sorted."""
    found: dict[float, list[float]] = {}
    for cell, result in zip(cells, numbers, strict=True):
        if cell.kind == "response" and cell.key[0] == "independent":
            found.setdefault(cell.key[1], []).append(result["mean"])
    return {loss: sorted(windows) for loss, windows in found.items()}


def sharing(cc: CongestionControl, cells: Sequence[Cell], numbers: Sequence[dict[str, Any]]) -> Sharing:
    """Return the medians of a congestion control's runs on a shared line."""
    by_key: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for cell, result in zip(cells, numbers, strict=True):
        if cell.kind != "response":
            by_key.setdefault(cell.key[:2], []).append(result)
    row = Sharing(cc["name"])
    for (kind, number), results in by_key.items():
        if kind == "flows":
            row.jain[number] = statistics.median(jain_of(result["goodput_bps"]) for result in results)
            if number == 2:
                row.line_share = statistics.median(result["line_share"] for result in results)
        elif kind == "rtt_ratio":
            row.rtt_ratio[number] = statistics.median(
                result["goodput_bps"][0] / max(result["goodput_bps"][1], 1.0) for result in results
            )
        elif kind == "reno":
            row.of_reno = statistics.median(result["goodput_bps"][0] / sum(result["goodput_bps"]) for result in results)
        else:
            times = [result["seconds"] for result in results]
            middle = statistics.median(float("inf") if time is None else time for time in times)
            row.convergence_s = None if middle == float("inf") else middle
    return row
