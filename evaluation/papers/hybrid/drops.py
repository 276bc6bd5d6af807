"""Scenario D: the receiver's link is the limit, and for a while two ways bring packets to it."""

from __future__ import annotations

from typing import Any

from elephan.papers.drawing import framed, legend, mark_paper
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, part
from elephan.papers.spread import Measured
from elephan.report.draw import Ink

from . import at_phases
from .cell import Cell, cell_at, cells_of, table_of
from .plots import panel, queue
from .reordering import G, grid_figure

CLAIM = "hybrid.D"
RESENDING = "hybrid.D.resending"


@part("d.toml", "d-buffer.toml", "d-phases.toml")
def scenario_d(results: PaperResults) -> Evaluation:
    """Measure r3's drops, how deep the flow falls, and how long it takes."""
    cells = cells_of(results, "d.toml")
    ten = cell_at(cells, 10 * G, 10)
    buffers = cells_of(results, "d-buffer.toml")
    moves = at_phases.of_d(results)
    measured: dict[str, Measured] = {
        **_measured(*moves["era"]),
        "dip_smallest_queue": 100 * buffers[0].known.dip,
        "dip_largest_queue": 100 * buffers[-1].known.dip,
    }

    def falls(drawing: Any, ink: Ink) -> None:
        columns = drawing.subplots(1, 3, sharey=True)
        for axes, rtt in zip(columns, (10, 100, 1000), strict=True):
            cell = cell_at(cells, 10 * G, rtt)
            framed(axes, ink, "s since the move", "Gbit/s over 1 s" if rtt == 10 else "")
            axes.set_title(f"RTT {rtt} ms", loc="right", color=ink.text, fontsize=8.5, pad=6)
            panel(axes, ink, cell, 1.0, 0, "goodput")
            axes.set_ylim(0, 11)
        mark_paper(columns[0], ink, [ten.known.least_at_s + 0.5], [1.6])
        legend(drawing, ink, columns[0])

    def queues(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots(1, 1)
        framed(axes, ink, "s since the move", "packets in r3's queue")
        queue(axes, ink, ten, 0)
        axes.axhline(500, color=ink.muted, linewidth=0.9, linestyle=(0, (4, 3)))

    figures = [
        Figure(
            "fig6", CLAIM, "Figure 6: scenario D, 10 Gbit/s", "Diamond: the paper's least second.", falls, (7.4, 3.0)
        ),
        Figure(
            "fig7", CLAIM, "Figure 7: r3's queue, 10 Gbit/s, RTT 10 ms", "It holds 500 packets.", queues, (7.4, 2.6)
        ),
        grid_figure("d", CLAIM, "Scenario D", cells),
    ]
    queued = [cell.record.spec["links"][_last(cell.record)]["queue"] for cell in buffers]
    names = [f"{queue['limit_packets']} packets" for queue in queued if queue["kind"] == "drop_tail"]
    groups = [
        (f"{words}: {name}", cells)
        for answer, words in at_phases.ANSWERS.items()
        for name, cells in zip(("ten phases of the sawtooth", "the paper's state"), moves[answer], strict=True)
    ]
    figures.append(
        at_phases.figure(
            "d-phases", CLAIM, "Scenario D, 10 Gbit/s, RTT 10 ms: the move at ten phases",
            [(words, sum(moves[answer], [])) for answer, words in at_phases.ANSWERS.items()], 1.6,
        )
    )  # fmt: skip
    tables = [
        at_phases.table(CLAIM, "10 Gbit/s, 10 ms, moved at phases of the sawtooth", groups),
        table_of(CLAIM, "Scenario D", [(cell.name, cell) for cell in cells]),
        table_of(CLAIM, "With a larger queue at r3: 1 Gbit/s, 100 ms, moved after a minute",
                 list(zip(names, buffers, strict=True)), "queue"),
    ]  # fmt: skip
    return Evaluation({CLAIM: measured, RESENDING: _measured(*moves["repeatedly"])}, figures, tables)


def _measured(phases: list[Cell], state: list[Cell]) -> dict[str, Measured]:
    """Return the numbers at the paper's state, and what holds for ten phases of the sawtooth."""
    return {
        "drops": [float(cell.known.dropped_early) for cell in state],
        "least": [cell.known.least_bps / 1e9 for cell in state],
        "deep_dip": at_phases.held(phases, lambda cell: cell.known.dip > 0.8),
        # A flow that is not back within the run takes longer than the run.
        "late": at_phases.held(phases, lambda cell: _until_back_s(cell) > 1000 * cell.known.rtt_after_s),
    }


def _until_back_s(cell: Cell) -> float:
    back_s = cell.back_s
    return float(cell.known.since_s[-1]) if back_s is None else back_s


def _last(record: Any) -> int:
    return int(record.spec["flows"][0]["route"][-1])
