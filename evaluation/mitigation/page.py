"""docs/results/mitigation.md from the kept numbers; a run that is not kept leaves its place empty."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from evaluation.mitigation.cells import FLOWS, MITIGATIONS, RATES, RTTS_MS, SCENARIOS, WRONG, Cell
from evaluation.mitigation.running import KEPT, Numbers, kept

FILE = Path(__file__).resolve().parents[2] / "docs" / "results" / "mitigation.md"

_HEAD = """<!-- Written by `make mitigation` from runs kept in out/mitigation; do not edit. -->

# Mitigations of a move, cell by cell

What a [move](../howto/move-a-flow.md) costs with each mitigation, in the cells of the hybrid paper. Each place has
three numbers: how far the worst mean over one second after the move lies below the second before it, in percent (below
zero: no second was worse); packets dropped within 200 ms, or two round trips where that is more; duplicate ACKs. A
window that fills the line from the start, 3 s and 3 RTT after the move, CUBIC 2.1 with SACK as in papers/hybrid. In D
the window is that and 250 packets, half of r3's queue, which wait there before the move; it does not probe for more.
Kept back: by a hold without an error. An empty place has not been run: `make mitigation` goes on where it
stopped. A paced hold has `release = "bottleneck"`; hold+trim is `hold_buffer` and `cwnd_reduction`, hold+tolerate
`hold_buffer` and `reordering_tolerance`, equalise+trim `delay_equalization` and `cwnd_reduction`. Last run: {date}.
"""


def place(cell: Cell) -> str:
    """Return what stands in a cell's place."""
    numbers = kept(cell)
    return "" if numbers is None else f"{dip(numbers):.1f} / {numbers['dropped_soon']} / {numbers['duplicate_acks']}"


def dip(numbers: Numbers) -> float:
    """Return how far the worst second is below the one before the move, percent."""
    return 100 * (1 - numbers["least_bps"] / numbers["before_bps"])


def _table(names: list[str], flows: int) -> list[str]:
    lines = ["| | " + " | ".join(names) + " | kept back |", "|---" * (len(names) + 2) + "|"]
    for scenario in SCENARIOS:
        for rate in RATES:
            for rtt in RTTS_MS:
                cells = [Cell(scenario, rate, rtt, flows, name) for name in names]
                places = [place(cell) for cell in cells]
                if any(places):
                    hold = kept(Cell(scenario, rate, rtt, flows, "hold_buffer"))
                    held = "" if hold is None else f"{hold['held_bytes'] / 1e6:.3g} MB, {hold['held_s'] * 1e3:.3g} ms"
                    lines.append(f"| {scenario} {rate} {rtt} ms | " + " | ".join(places) + f" | {held} |")
    return lines


def text() -> str:
    """Return the page."""
    days = [datetime.fromtimestamp(file.stat().st_mtime, UTC).date() for file in KEPT.glob("*.json")]
    lines = [_HEAD.format(date=max(days) if days else "none")]
    for flows in FLOWS:
        lines += [f"## {flows} flow{'s' if flows > 1 else ''}", "", *_table(["stay", *MITIGATIONS], flows), ""]
    lines += ["## The difference of the delays known to a tenth, 1 flow", "", *_table(list(WRONG), 1), ""]
    return "\n".join(lines)


def write() -> None:
    """Write the page."""
    FILE.write_text(text(), encoding="utf-8")
