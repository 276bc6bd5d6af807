"""Runs cells and keeps each one's numbers under out/mitigation, so that what was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from elephan.core import build_digest
from elephan.report import moves
from elephan.report.moves import Course
from elephan.scenario import load
from elephan.store.series import Series
from evaluation.mitigation.cells import Cell

KEPT = Path(__file__).resolve().parents[2] / "out" / "mitigation"

Numbers = dict[str, float | int]


def spec_of(cell: Cell) -> dict[str, Any]:
    """Return the specification of a cell's run."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cell.toml"
        file.write_text(cell.scenario_text(), encoding="utf-8")
        (point,) = load(file).points()
        return dict(point.to_spec())


def measure(cell: Cell) -> Numbers:
    """Run a cell and return what the move did to it."""
    from elephan import _native

    spec = spec_of(cell)
    result = _native.simulate(json.dumps(spec), None, 1.0)
    series = Series.from_columns(result.flow_series, result.link_series)
    course = Course.of(series, range(len(spec["flows"])), cell.move_s)
    means, _ = course.seconds()
    metrics = result.metrics
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


@cache
def key_of(cell: Cell) -> str:
    """Return the name under which a cell is kept: of its specification, of the core and of what is measured."""
    texts = [Path(file).read_text(encoding="utf-8") for file in (__file__, str(moves.__file__))]
    parts = [json.dumps(spec_of(cell), sort_keys=True), build_digest(), *texts]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def kept(cell: Cell) -> Numbers | None:
    """Return a cell's numbers when it has been run."""
    file = KEPT / f"{key_of(cell)}.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None


def run(cells: Sequence[Cell], ended: Callable[[Cell], None], workers: int | None = None) -> None:
    """Run those cells that are not kept."""

    def one(cell: Cell) -> None:
        if kept(cell) is None:
            numbers = measure(cell)
            KEPT.mkdir(parents=True, exist_ok=True)
            file = KEPT / f"{key_of(cell)}.json"
            part = file.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(numbers), encoding="utf-8")
            part.replace(file)
        ended(cell)

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        list(pool.map(one, cells))
