"""The move at phases of the sawtooth: distributions in place of single draws, in scenarios B and D."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Figure, PaperResults, Table
from elephan.report.draw import Ink

from .cell import Cell, cells_of

ANSWERS = {"era": "resends as Linux", "repeatedly": "resends as ns-2"}
STATE_S = (7.13, 7.15)
"""Times of d-phases.toml at which 343 packets are queued, as at the paper's move."""

PHASES = 10


def at_s(cell: Cell) -> float:
    """Return when the scenario says that the flow moves."""
    when = cell.record.spec["events"][0]["when"]
    if when["kind"] != "at":
        raise ValueError(f"run {cell.record.id} moves at no set time")
    return float(when["time_ns"]) / 1e9


def answer_of(cell: Cell) -> str:
    """Return the flow's answer to the loss of a retransmission."""
    return str(cell.record.spec["flows"][0]["transport"].get("lost_retransmissions", "era"))


def bounded(cell: Cell) -> bool:
    """Return True if the sender's own queue holds 500 packets."""
    queue = cell.record.spec["links"][0]["queue"]
    return queue["kind"] == "drop_tail" and queue["limit_packets"] == 500


Read = Callable[[Cell], float]

QUANTITIES: tuple[tuple[str, Read], ...] = (
    ("on the line, first 100 ms", lambda cell: cell.load()[0] / 1e6),
    ("least second", lambda cell: cell.known.least_bps / 1e6),
    ("dip, %", lambda cell: 100 * cell.known.dip),
    ("duplicate ACKs", lambda cell: float(cell.known.duplicate_acks or 0)),
    ("drops, 200 ms", lambda cell: float(cell.known.dropped_early)),
    ("drops in all", lambda cell: float(cell.known.dropped)),
    ("sent again", lambda cell: float(cell.known.retransmitted_segments)),
)


def spread(values: Sequence[float]) -> str:
    """Return the median and the range."""
    low, middle, high = min(values), float(np.median(values)), max(values)
    form = ",.1f" if high < 100 and middle != round(middle) else ",.0f"
    return f"{middle:{form}}" if high - low < 0.05 else f"{middle:{form}} ({low:{form}} to {high:{form}})"


def table(claim: str, title: str, groups: Sequence[tuple[str, Sequence[Cell]]]) -> Table:
    """Return the medians and ranges of groups of moves."""
    rows = tuple((name, *(spread([read(cell) for cell in cells]) for _, read in QUANTITIES)) for name, cells in groups)
    caption = "Median and range over the moves of a row; rates are payload, Mbit/s."
    return Table(claim, title, ("moves", *(name for name, _ in QUANTITIES)), rows, caption)


def of_d(results: PaperResults) -> dict[str, tuple[list[Cell], list[Cell]]]:
    """Return the moves of d-phases.toml by answer: at ten phases of the sawtooth, and at the paper's state."""
    found: dict[str, tuple[list[Cell], list[Cell]]] = {answer: ([], []) for answer in ANSWERS}
    for cell in cells_of(results, "d-phases.toml"):
        found[answer_of(cell)][STATE_S[0] < at_s(cell) < STATE_S[1]].append(cell)
    return found


def of_b(results: PaperResults) -> dict[tuple[bool, str], list[Cell]]:
    """Return the moves of b-phases.toml: by whether the sender's queue is bounded, and by answer."""
    found: dict[tuple[bool, str], list[Cell]] = {}
    for cell in cells_of(results, "b-phases.toml"):
        found.setdefault((bounded(cell), answer_of(cell)), []).append(cell)
    return found


def held(cells: Sequence[Cell], holds: Callable[[Cell], bool]) -> list[float]:
    """Return 1 for each move of which a statement holds, else 0: phases are states of one flow, no repetitions."""
    return [float(holds(cell)) for cell in cells]


def figure(key: str, claim: str, title: str, groups: Sequence[tuple[str, Sequence[Cell]]], paper_gbps: float) -> Figure:
    """Return the picture of least seconds over the time of the move; dashed: the paper's."""

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots(1, 1)
        framed(axes, ink, "s, the time of the move", "Gbit/s, least second")
        for index, (name, cells) in enumerate(groups):
            line = [(at_s(cell), cell.known.least_bps / 1e9) for cell in cells]
            axes.plot(*zip(*sorted(line), strict=True), color=ink.curve(index), linewidth=1.0, marker="o", label=name)
        axes.axhline(paper_gbps, color=ink.muted, linewidth=0.9, linestyle=(0, (4, 3)), label="paper")
        axes.set_ylim(0, 1.08 * max(cell.known.least_bps / 1e9 for _, cells in groups for cell in cells))
        legend(drawing, ink, axes)

    return Figure(key, claim, title, "Dashed: the paper's least second.", draw, (7.4, 2.8))
