"""Beside the grid: other congestion controls, today's Linux, UDP, and what of the sender's TCP decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.papers.spread import Measured
from elephan.report.draw import Ink

from .cell import Cell, cells_of, table_of
from .controls import HEADS, TABLE, read_table
from .plots import throughput

OTHER = "hybrid.other"
TODAY = "hybrid.today"
UDP = "hybrid.udp"


def cc_of(cell: Cell) -> str:
    """Return the name of the flow's congestion control."""
    return str(cell.record.spec["flows"][0]["transport"]["congestion_control"])


def back_s(cell: Cell) -> float:
    """Return when the flow was back, or how long it was followed in vain."""
    found = cell.back_s
    return float(cell.known.since_s[-1]) if found is None else found


@part("other.toml")
def congestion_controls(results: PaperResults) -> Evaluation:
    """CUBIC 2.1, Compound, Reno and Vegas in scenario D."""
    cells = {cc_of(cell): cell for cell in cells_of(results, "other.toml")}
    measured: dict[str, Measured] = {f"{name}_back": back_s(cell) for name, cell in cells.items()}
    known = read_table(TABLE)
    measured["cubic_back_twice"] = FAR * back_s(cells["cubic"])
    measured |= of_all_cells(known)

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots(1, 1)
        framed(axes, ink, "s since the move", "Gbit/s over 1 s")
        for index, (name, cell) in enumerate(cells.items()):
            axes.plot(*throughput(cell, 1.0), color=ink.curve(index), linewidth=1.2, label=name)
        axes.axvline(0, color=ink.text, linewidth=0.9, linestyle=(0, (1, 2)))
        legend(drawing, ink, axes)

    figure = Figure(
        "other",
        OTHER,
        "Other congestion controls in scenario D, 1 Gbit/s, RTT 100 ms",
        "One curve per congestion control.",
        draw,
        (7.4, 3.0),
    )
    tables = [
        table_of(OTHER, "Scenario D, 1 Gbit/s, 100 ms", list(cells.items()), "congestion control"),
        Table(OTHER, "Every cell that controls.csv has", HEADS, tuple(tuple(line) for line in known)),
    ]
    return Evaluation({OTHER: measured}, [figure], tables)


FAR = 2.0
"""The paper's "far worse" as a factor; "similar" is less."""

CellKey = tuple[str, str, str, str]


def of_all_cells(lines: Sequence[Sequence[str]]) -> dict[str, Measured]:
    """Return for each cell that is decided 1 where the paper's words on the four controls hold, else 0."""
    beside_cubic = ratios(lines, "compound", "cubic")
    found: dict[str, Measured] = {
        "none": 0.0,
        "compound_first": float(sum(ratio < 1 for ratio in beside_cubic.values())),
        "compound_similar": [float(ratio < FAR) for ratio in beside_cubic.values()],
    }
    for name in ("reno", "vegas"):
        besides = [ratios(lines, name, other) for other in ("cubic", "compound")]
        both = besides[0].keys() & besides[1].keys()
        found[f"{name}_far"] = [float(min(beside[key] for beside in besides) > FAR) for key in sorted(both)]
    return found


def ratios(lines: Sequence[Sequence[str]], name: str, other: str) -> dict[CellKey, float]:
    """Return how many times as long as another control one takes to be back, in each cell that hurts one of the two.

    A control that was not back counts with the time for which it was followed. Cells are left out in which one had lost
    its rate before the move (CUBIC outgrows r3's queue in some of D), in which neither was back, or in which that time
    does not tell whether the ratio is below or above one and `FAR`. A control that was back counts with a round trip at
    least.
    """
    rows = {(key_of(row), row["control"]): row for row in (dict(zip(HEADS, line, strict=True)) for line in lines)}
    found = {}
    for (key, control), row in rows.items():
        beside = rows.get((key, other))
        if control != name or beside is None or not (is_hurt(row) or is_hurt(beside)):
            continue
        if not (had_the_rate(row) and had_the_rate(beside)):
            continue
        times = [max(float(item["back_s"] or item["followed_s"]), float(row["rtt_ms"]) / 1e3) for item in (row, beside)]
        ratio = times[0] / times[1]
        # Without an end the ratio is a bound: from below for the first, from above for the second.
        decided = (row["back_s"] or ratio > FAR) and (beside["back_s"] or ratio < 1)
        if decided and (row["back_s"] or beside["back_s"]):
            found[key] = ratio
    return found


def is_hurt(row: Mapping[str, str]) -> bool:
    """Return True if the move cost the flow something.

    Without loss and reordering, as in A, it did not: what is late then is a train of 1000 ms that a second cuts off.
    """
    return row["back_s"] != "0.0" and (row["duplicate_acks"], row["dropped_wake"]) != ("0", "0")


def had_the_rate(row: Mapping[str, str]) -> bool:
    """Return True if the flow carried nine tenths of the limiting rate before its move."""
    return float(row["before_mbps"]) > 0.9 * float(row["rate_mbps"])


def key_of(row: Mapping[str, str]) -> CellKey:
    """Return a row's cell, with the queue at its beginning."""
    return row["scenario"], row["rate_mbps"], row["rtt_ms"], row["queue_packets"]


@part("today-b.toml", "today-d.toml")
def today(results: PaperResults) -> Evaluation:
    """CUBIC and BBR as Linux of today has them."""
    found: dict[str, list[Cell]] = {key: cells_of(results, f"today-{key}.toml") for key in "bd"}
    named = {f"{cc_of(cell)}_{key}_{cell.rtt_s * 1e3:g}": cell for key, cells in found.items() for cell in cells}
    measured = {name: 100 * cell.known.dip if cell.move else float("nan") for name, cell in named.items()}
    measured |= {"twenty_percent": 20.0, "eighty_percent": 80.0}
    rows = [
        (f"{key.upper()}, {cell.rtt_s * 1e3:g} ms, {cc_of(cell)}", cell)
        for key, cells in found.items()
        for cell in cells
    ]
    return Evaluation(
        {TODAY: measured}, [], [table_of(TODAY, "Today's Linux, 1 Gbit/s", rows, "scenario and congestion control")]
    )


@part("udp.toml")
def udp(results: PaperResults) -> Evaluation:
    """A constant stream moves: r3 sends on what its link can, and drops the rest."""
    rows, measured = [], {}
    for record in results.of("udp.toml"):
        source = record.background[0]
        share = float(record.spec["background"][0]["rate_bps"]) / 1e9
        lost = int(source["dropped_packets"])
        measured[f"lost_{100 * share:.0f}"] = float(lost)
        rows.append((f"{share:.0%}", f"{source['sent_packets']:,}", f"{lost:,}"))
    heads = ("rate, of r3's link", "packets sent", "lost")
    table = Table(
        UDP, "A constant stream moves, 1 Gbit/s, RTT 100 ms", heads, tuple(rows), "All losses are r3's, by the move."
    )
    return Evaluation({UDP: measured}, [], [table])


def _switches(results: PaperResults, key: str, claim: str) -> Evaluation:
    cells = cells_of(results, f"switch-{key}.toml")
    rows = [(_difference(cells[0], cell), cell) for cell in cells]
    return Evaluation({}, [], [table_of(claim, f"Scenario {key.upper()}: one thing at a time", rows, "what differs")])


@part("switch-b.toml")
def switches_b(results: PaperResults) -> Evaluation:
    """Scenario B, one thing at a time."""
    return _switches(results, "b", "hybrid.B")


@part("switch-d.toml")
def switches_d(results: PaperResults) -> Evaluation:
    """Scenario D, one thing at a time."""
    return _switches(results, "d", "hybrid.D")


def _difference(base: Cell, cell: Cell) -> str:
    """Return the keys in which a run differs from the first."""
    found = [
        f"{key.split('.', 1)[-1]} = {value}"
        for key, value in cell.record.parameters.items()
        if base.record.parameters.get(key) != value and not key.startswith("run.")
    ]
    return ", ".join(found) or "as in the grid"
