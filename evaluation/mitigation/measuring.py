"""Numbers that are read off a cell's run: what the move did to the flows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from elephan.record import Record
from elephan.report.moves import Course
from elephan.store import Series
from evaluation.mitigation.cells import Cell
from evaluation.runner import Runner

Numbers = dict[str, float | int]


def measured(runner: Runner, cells: Iterable[Cell]) -> list[Numbers]:
    """Run cells and return the numbers of each, in order."""
    chosen = list(cells)
    results = runner.run(cell.job() for cell in chosen)
    return [numbers(cell, record, results.series_of(record)) for cell, record in zip(chosen, results, strict=True)]


def stored(runner: Runner, cells: Iterable[Cell]) -> dict[Cell, tuple[Numbers, str]]:
    """Return the numbers of those cells that this build has run, and the day of each run."""
    found = {}
    for cell in cells:
        run = runner.stored(cell.job())
        if run is not None:
            record, series = run
            found[cell] = numbers(cell, record, series), record.created[:10]
    return found


def numbers(cell: Cell, record: Record, series: Series | None) -> Numbers:
    """Return what a cell's record and series say of its move, or of the moment without one."""
    assert series is not None, "every cell asks for a series"
    course = Course.of(series, range(len(record.flows)), cell.move_s)
    means, _ = course.seconds()
    metrics: Mapping[str, Any] = record.metrics
    return {
        "before_bps": course.before_bps(1.0),
        "least_bps": float(means.min()),
        "last_bps": float(means[-1]),
        "dropped_before": course.lost_before(),
        "dropped_soon": course.lost(max(0.2, 2 * cell.rtt_ms / 1000)),
        "dropped_after": int(metrics["dropped_packets"]) - course.lost_before(),
        "duplicate_acks": course.counted("duplicate_acks", cell.duration_s) or 0,
        "retransmitted": int(metrics["retransmitted_segments"]),
        "held_bytes": int(metrics.get("held_bytes_max", 0)),
        "held_s": float(metrics.get("held_max_s", 0.0)),
    }
