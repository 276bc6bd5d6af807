"""Compare the simulator with the kernel backend, cell by cell."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from elephan.record import Record
from evaluation.fidelity.backend import cases, measured
from evaluation.fidelity.judge import Row, job
from evaluation.performance.dumbbell import PACKET_BYTES, PAYLOAD_BYTES
from evaluation.runner import Runner

LINE_DECIDES = 0.9
"""A cell that fills this part of the line is one that the line decides."""


@dataclass(frozen=True)
class Beside:
    """A cell with both backends' medians."""

    row: Row
    seeds: int
    line_decides: bool
    share: tuple[float, float] | None
    """Of a cell with a rival: the congestion control's part of both flows' goodput, in the kernel and here."""
    phases: tuple[float, float] | None = None
    """Least and most of that part here, over the seeds and over hosts that answer more or less late."""


def rows(runner: Runner, reference: dict[str, Any], runs: dict[str, dict[str, Any]]) -> list[Beside]:
    """Return the cells that have been measured and honoured, with the same seeds simulated."""
    pairs = []
    for cell in cases.cells(reference):
        there = [(spec, runs.get(cases.key_of(spec))) for spec in cell.specs]
        both = [(spec, run) for spec, run in there if run is not None and measured.honoured(run)]
        if both:
            pairs.append((cell, both))
    specs = [cases.simulated(reference, cell, spec) for cell, both in pairs for spec, _ in both]
    jitters_us = reference["backend"]["fairness"]["phases_us"]
    rivals = [
        cases.simulated(reference, cell, spec, jitter_us)
        for cell, both in pairs
        if cell.rival
        for jitter_us in jitters_us
        for spec, _ in both
    ]
    ran = runner.run(job(spec) for spec in [*specs, *rivals]).records
    records, shares = iter(ran[: len(specs)]), (_share(_goodputs(record.flows)) for record in ran[len(specs) :])
    found = [_beside(reference, cell, [(run, next(records)) for _, run in both]) for cell, both in pairs]
    return [
        replace(beside, phases=_range([next(shares) for _ in jitters_us for _ in both])) if cell.rival else beside
        for beside, (cell, both) in zip(found, pairs, strict=True)
    ]


def _range(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def _beside(reference: dict[str, Any], cell: cases.Cell, both: list[tuple[dict[str, Any], Record]]) -> Beside:
    table = reference["backend"]
    kernel = statistics.median(run["metrics"]["goodput_bps"] for run, _ in both)
    ours = [_goodput(record) for _, record in both]
    middle = statistics.median(ours)
    full = table["rate_mbps"] * 1e6 * PAYLOAD_BYTES / PACKET_BYTES
    line = min(kernel, middle) >= LINE_DECIDES * full
    share = None
    if cell.rival:
        shares = [(_share(run["flow_goodput_bps"]), _share(_goodputs(record.flows))) for run, record in both]
        share = (statistics.median(kernel for kernel, _ in shares), statistics.median(own for _, own in shares))
    low, high = bounds(table, cell, line)
    if share is not None:
        row = Row(cell.name, share[0], share[1], low, high)
    else:
        row = Row(cell.name, kernel, middle, low, high, min(ours), max(ours))
    return Beside(row, len(both), line, share)


def bounds(table: dict[str, Any], cell: cases.Cell, line: bool) -> tuple[float, float]:
    """Return the cell's own bounds, which come with a reason, else those of all."""
    for own in table.get("difference", []):
        if (
            cell.cc in own["congestion_control"]
            and cell.rtt_ms in own.get("rtt_ms", [cell.rtt_ms])
            and cell.loss in own.get("loss", [cell.loss])
            and cell.flows in own.get("flows", [cell.flows])
            and cell.rival == own.get("rival", False)
        ):
            return own["low"], own["high"]
    if cell.rival:
        low, high = table["tolerance_share"]
    else:
        low, high = table["tolerance_line" if line else "tolerance_loss"]
    return low, high


def _goodput(record: Record) -> float:
    return float(record.metrics["goodput_bps"] or 0)


def _goodputs(flows: Iterable[Any]) -> list[float]:
    return [flow["goodput_bps"] for flow in flows]


def _share(goodputs: list[float]) -> float:
    return goodputs[0] / sum(goodputs)
