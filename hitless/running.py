"""Runs cells and keeps each one's numbers under out/hitless, so that what was stopped goes on where it was."""

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

import numpy as np

from elephan.core import build_digest
from elephan.scenario import load
from hitless.cells import Cell

KEPT = Path(__file__).resolve().parent.parent / "out" / "hitless"

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

    result = _native.simulate(json.dumps(spec_of(cell)), None, 1.0)
    flow, link = result.flow_series, result.link_series
    times = np.unique(flow["time_s"])
    goodput = np.zeros(len(times))
    np.add.at(goodput, np.searchsorted(times, flow["time_s"]), flow["goodput_bps"])
    duplicates = np.zeros(len(times))
    np.add.at(duplicates, np.searchsorted(times, flow["time_s"]), flow["duplicate_acks"])
    step = float(times[1] - times[0])
    second = round(1 / step)
    means = np.convolve(goodput, np.ones(second) / second, "valid")
    # The mean of `second` samples up to the one at times[i + second - 1].
    ends = times[second - 1 :]
    before = float(means[np.searchsorted(ends, cell.move_s + step / 2) - 1])
    after = means[ends >= cell.move_s + 1 - step / 2]
    dropped_times = np.unique(link["time_s"])
    dropped = np.zeros(len(dropped_times))
    np.add.at(dropped, np.searchsorted(dropped_times, link["time_s"]), link["dropped_packets"])

    def dropped_by(time_s: float) -> int:
        return int(dropped[max(0, np.searchsorted(dropped_times, time_s + step / 2) - 1)])

    soon = cell.move_s + max(0.2, 2 * cell.rtt_ms / 1000)
    metrics = result.metrics
    return {
        "before_bps": before,
        "least_bps": float(after.min()),
        "last_bps": float(after[-1]),
        "dropped_before": dropped_by(cell.move_s),
        "dropped_soon": dropped_by(soon) - dropped_by(cell.move_s),
        "dropped_after": int(metrics["dropped_packets"]) - dropped_by(cell.move_s),
        "duplicate_acks": int(duplicates[-1] - duplicates[np.searchsorted(times, cell.move_s + step / 2) - 1]),
        "retransmitted": int(metrics["retransmitted_segments"]),
        "held_bytes": int(metrics.get("held_bytes_max", 0)),
        "held_s": float(metrics.get("held_max_s", 0.0)),
    }


@cache
def key_of(cell: Cell) -> str:
    """Return the name under which a cell is kept: of its specification, of the core and of what is measured."""
    parts = [json.dumps(spec_of(cell), sort_keys=True), build_digest(), Path(__file__).read_text(encoding="utf-8")]
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
