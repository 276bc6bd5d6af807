"""Scenarios A, B and C: packets come out of order, none is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from elephan.papers.drawing import framed, legend, mark_paper
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, part
from elephan.papers.spread import Measured
from elephan.report.draw import Ink

from . import at_phases
from .cell import Cell, cell_at, cells_of, table_of
from .plots import arriving, grid, panel, throughput

G = 1_000_000_000


def lost(cells: Sequence[Cell]) -> float:
    """Return the packets that any cell lost, in the whole run."""
    return float(sum(float(cell.record.metrics["dropped_packets"] or 0) for cell in cells))


def worst_dip(cells: Sequence[Cell]) -> float:
    """Return the deepest dip of all cells, percent."""
    return max(100 * cell.known.dip for cell in cells)


def settled_bps(cell: Cell) -> float:
    """Return the mean of the run's last two seconds, in whole round trips: a window comes as a train."""
    move = cell.known
    over_s = math.ceil(2.0 / move.rtt_after_s) * move.rtt_after_s
    begin = int(np.searchsorted(move.since_s, move.since_s[-1] - over_s - 1e-9))
    return float(
        (move.course.delivered_bits[-1] - move.course.delivered_bits[begin]) / (move.since_s[-1] - move.since_s[begin])
    )


def grid_figure(key: str, claim: str, title: str, cells: list[Cell], until_s: float | None = None) -> Figure:
    """Return the picture of a scenario's nine cells."""

    def draw(drawing: Any, ink: Ink) -> None:
        grid(drawing, ink, cells, until_s)

    return Figure(
        key,
        claim,
        title,
        "Goodput, Gbit/s, over 0.5 or 1 s; dotted: the move; dashed: the new limit. Scales differ; none "
        "goes beyond twice the limit.",
        draw,
        (7.4, 5.6),
    )


@part("a.toml")
def scenario_a(results: PaperResults) -> Evaluation:
    """The rate is a window per round trip, before and after."""
    claim = "hybrid.A"
    cells = cells_of(results, "a.toml")
    ratios = [settled_bps(cell) / cell.known.before_bps for cell in cells]
    measured = {
        "lost": lost(cells),
        "ratio_least": min(ratios),
        "ratio_most": max(ratios),
        **{f"after_1g_{rtt}": settled_bps(cell_at(cells, G, rtt)) / 1e9 for rtt in (10, 100, 1000)},
    }
    shown = cell_at(cells, G, 100)

    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2, sharey=True)
        for axes, granularity_s in ((left, 1.0), (right, 0.1)):
            framed(axes, ink, "s since the move", f"Gbit/s over {granularity_s * 1e3:g} ms")
            panel(axes, ink, shown, granularity_s, 0, "goodput")
            axes.axhline(
                shown.new_limit_bps / 1e9, color=ink.muted, linewidth=0.9, linestyle=(0, (4, 3)), label="window / RTT"
            )
            axes.set_xlim(-1.5, 15)
            axes.set_ylim(0, 2.2)
        legend(drawing, ink, left)

    figure = Figure(
        "fig3", claim, "Figure 3: scenario A, 1 Gbit/s, RTT 100 ms", "The window is the limit.", draw, (7.4, 3.0)
    )
    table = table_of(claim, "Scenario A", [(cell.name, cell) for cell in cells])
    return Evaluation({claim: measured}, [figure, grid_figure("a", claim, "Scenario A", cells)], [table])


@part("b.toml", "b-stay.toml", "b-phases.toml")
def scenario_b(results: PaperResults) -> Evaluation:
    """Reordering alone, with a queue that nothing overflows."""
    claim = "hybrid.B"
    cells = cells_of(results, "b.toml")
    stay = Cell.of(results, results.of("b-stay.toml")[0])
    cell = cell_at(cells, G, 100)
    moves = at_phases.of_b(results)
    measured = {
        **_of_moves(moves[False, "era"]),
        "lost": lost(cells),
        "dip_deepest": worst_dip(cells),
        "twenty_percent": 20.0,
    }

    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2, sharey=True)
        for axes, granularity_s in ((left, 1.0), (right, 0.1)):
            framed(axes, ink, "s since the move", f"Gbit/s over {granularity_s * 1e3:g} ms")
            panel(axes, ink, cell, granularity_s, 0, "moves")
            axes.plot(
                *throughput(stay, granularity_s, cell.known.time_s),
                color=ink.curve(1),
                linewidth=1.0,
                linestyle=(0, (2, 2)),
                label="stays",
            )
            axes.plot(*arriving(cell, granularity_s), color=ink.curve(2), linewidth=0.9, label="arrives, with copies")
            axes.set_xlim(-1.0, 6)
            axes.set_ylim(0, 1.45)
        mark_paper(left, ink, [0.5], [0.803])
        mark_paper(right, ink, [0.05], [1.3])
        legend(drawing, ink, left)

    figure = Figure(
        "fig4",
        claim,
        "Figure 4: scenario B, 1 Gbit/s, RTT 100 ms",
        "Diamonds: the paper's least second and its peak in the first 0.1 s.",
        draw,
        (7.4, 3.0),
    )
    groups = [
        (f"{'500 packets' if bounded else 'long queues'}: {at_phases.ANSWERS[answer]}", found)
        for (bounded, answer), found in moves.items()
    ]
    tables = [
        at_phases.table(claim, "1 Gbit/s, 100 ms, moved at ten phases", groups),
        table_of(claim, "Scenario B", [(item.name, item) for item in cells]),
    ]
    figures = [
        figure,
        at_phases.figure("b-phases", claim, "Scenario B, 1 Gbit/s, RTT 100 ms: the move at ten phases", groups, 0.803),
        grid_figure("b", claim, "Scenario B", cells),
    ]
    queues = {
        BOUNDED: _of_moves(moves[True, "era"]),
        BOUNDED_RESENDING: _of_moves(moves[True, "repeatedly"]),
    }
    return Evaluation({claim: measured, **queues}, figures, tables)


BOUNDED = "hybrid.B.500"
BOUNDED_RESENDING = "hybrid.B.500.resending"


def _of_moves(cells: Sequence[Cell]) -> dict[str, Measured]:
    """Return the numbers of figure 4, one per move."""
    return {
        "peak": [cell.load()[0] / 1e9 for cell in cells],
        "duplicate_acks": [float(cell.known.duplicate_acks or 0) for cell in cells],
        "least": [cell.known.least_bps / 1e9 for cell in cells],
        "small_dip": at_phases.held(cells, lambda cell: cell.known.dip < 0.2),
    }


@part("c1.toml")
def scenario_c1(results: PaperResults) -> Evaluation:
    """As B."""
    claim = "hybrid.C1"
    cells = cells_of(results, "c1.toml")
    measured = {"lost": lost(cells), "dip_deepest": worst_dip(cells), "twenty_percent": 20.0}
    table = table_of(claim, "Scenario C1", [(cell.name, cell) for cell in cells])
    return Evaluation({claim: measured}, [grid_figure("c1", claim, "Scenario C1", cells)], [table])


def growth(cell: Cell) -> tuple[float, float]:
    """Return the window's growth in the linear part after the move, segments/s, and how straight it is (R squared).

    The linear part: from where the window is above what it was at the move, to 95 % of the new limit.
    """
    table = cell.series.flow
    time_s = table.column("time_s").to_numpy().astype(np.float64)
    cwnd = table.column("cwnd_packets").to_numpy().astype(np.float64)
    at = int(np.searchsorted(time_s, cell.known.time_s - 1e-9))
    top = 0.95 * cell.new_limit_bps * cell.known.rtt_after_s / 8 / cell.payload_share / 1500
    rows = (time_s > cell.known.time_s + 1) & (cwnd > 1.02 * cwnd[at]) & (cwnd < top)
    if rows.sum() < 20:
        return float("nan"), float("nan")
    slope, offset = np.polyfit(time_s[rows], cwnd[rows], 1)
    rest = cwnd[rows] - (slope * time_s[rows] + offset)
    return float(slope), float(1 - rest.var() / cwnd[rows].var())


@part("c2.toml")
def scenario_c2(results: PaperResults) -> Evaluation:
    """The way that is faster is taken up linearly."""
    claim = "hybrid.C2"
    cells = cells_of(results, "c2.toml")
    ten, hundred = cell_at(cells, 10 * G, 10), cell_at(cells, 10 * G, 100)
    slope, straight = growth(ten)
    measured = {
        "lost": lost(cells),
        "dip_deepest": worst_dip(cells),
        "twenty_percent": 20.0,
        "before": ten.known.before_bps / 1e9,
        "after": settled_bps(ten) / 1e9,
        "growth": slope,
        "straightness": straight,
        "nearly_one": 0.98,
    }

    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2)
        for axes, cell in ((left, ten), (right, hundred)):
            framed(axes, ink, "s since the move", "Gbit/s over 1 s")
            panel(axes, ink, cell, 1.0, 0, "goodput")
            axes.set_title(f"RTT {cell.rtt_s * 1e3:g} ms", loc="right", color=ink.text, fontsize=8.5, pad=6)
            axes.axhline(
                39.813 * cell.payload_share, color=ink.muted, linewidth=0.9, linestyle=(0, (4, 3)), label="lightpath"
            )
            axes.set_ylim(0, 42)
        legend(drawing, ink, left)

    figure = Figure(
        "fig5",
        claim,
        "Figure 5: scenario C2, 10 Gbit/s, lightpath 39.813 Gbit/s",
        "CUBIC 2.1's bounded growth.",
        draw,
        (7.4, 3.0),
    )
    table = table_of(claim, "Scenario C2", [(cell.name, cell) for cell in cells])
    return Evaluation({claim: measured}, [figure, grid_figure("c2", claim, "Scenario C2", cells)], [table])
