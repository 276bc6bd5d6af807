"""Drawings of cells: throughput over time around the move, as in the paper's figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from elephan.papers.drawing import framed
from elephan.report.draw import Ink
from elephan.report.timeline import link_line

from .cell import Cell

Floats = npt.NDArray[np.float64]


def throughput(cell: Cell, granularity_s: float, move_s: float | None = None) -> tuple[Floats, Floats]:
    """Return middles of intervals, s since the move, and goodput there, Gbit/s; intervals begin at the move."""
    table = cell.series.flow
    time_s = table.column("time_s").to_numpy().astype(np.float64)
    bits = np.cumsum(table.column("goodput_bps").to_numpy() * np.diff(time_s, prepend=0.0))
    at_s = cell.known.time_s if move_s is None else move_s
    first = at_s - np.floor(at_s / granularity_s) * granularity_s
    edges = np.arange(first, time_s[-1] + 1e-9, granularity_s)
    total = np.interp(edges, np.concatenate(([0.0], time_s)), np.concatenate(([0.0], bits)))
    return edges[:-1] + granularity_s / 2 - at_s, np.diff(total) / granularity_s / 1e9


def arriving(cell: Cell, granularity_s: float) -> tuple[Floats, Floats]:
    """Return what r3's link to the receiver carries, as payload, as `throughput`: what comes twice counts twice."""
    line = link_line(cell.series, cell.known.route_after[-1], "delivered_bytes")
    edges = np.arange(0.0, cell.known.since_s[-1], granularity_s)
    total = np.interp(edges + cell.known.time_s, line.time_s, line.values) * 8 * cell.payload_share
    return edges[:-1] + granularity_s / 2, np.diff(total) / granularity_s / 1e9


def panel(axes: Any, ink: Ink, cell: Cell, granularity_s: float, colour: int, label: str | None = None) -> Floats:
    """Draw one cell's throughput with the move; return the rates, Gbit/s."""
    time_s, rate = throughput(cell, granularity_s)
    axes.plot(time_s, rate, color=ink.curve(colour), linewidth=1.3, label=label)
    axes.axvline(0, color=ink.text, linewidth=0.9, linestyle=(0, (1, 2)), label="move")
    return rate


MOST_OF_LIMIT = 2.0
"""A picture goes up to the highest rate, but not beyond so many times the limit: what waited for a lost segment is
delivered all at once."""


def grid(drawing: Any, ink: Ink, cells: list[Cell], until_s: float | None = None) -> None:
    """Draw nine cells: rates from top to bottom, round-trip times from left to right."""
    rows = drawing.subplots(3, 3)
    for axes, cell in zip(rows.flat, cells, strict=True):
        framed(axes, ink, "s since the move" if axes in rows[2] else "", "")
        axes.set_title(f"{cell.name}", loc="left", color=ink.text, fontsize=8, pad=4)
        if cell.move is None:
            axes.text(0.5, 0.5, "did not reach its limit", transform=axes.transAxes, ha="center", color=ink.muted)
            continue
        rate = panel(axes, ink, cell, 1.0 if cell.record.spec["duration_ns"] > 30e9 else 0.5, 0)
        axes.axhline(cell.new_limit_bps / 1e9, color=ink.muted, linewidth=0.8, linestyle=(0, (4, 3)))
        end_s = float(cell.move.since_s[-1])
        left_s = -min(cell.move.time_s, 0.3 * end_s, 30.0)
        axes.set_xlim(left_s, end_s if until_s is None else min(until_s, end_s))
        limit = max(cell.new_limit_bps, cell.move.before_bps) / 1e9
        axes.set_ylim(0, max(1.15 * limit, min(1.05 * float(rate.max()), MOST_OF_LIMIT * limit)))


def queue(axes: Any, ink: Ink, cell: Cell, colour: int) -> None:
    """Draw r3's queue, packets."""
    names = [link["name"] for link in cell.record.spec["links"]]
    line = link_line(cell.series, names.index("r3-receiver.forward"), "queue_packets")
    axes.plot(line.time_s - cell.known.time_s, line.values, color=ink.curve(colour), linewidth=0.8)
    axes.axvline(0, color=ink.text, linewidth=0.9, linestyle=(0, (1, 2)))
