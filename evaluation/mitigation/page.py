"""docs/results/mitigation.csv, a table of the cells that have been run, and docs/results/mitigation.md from it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping

from evaluation.mitigation.cells import FLOWS, MITIGATIONS, RATES, RTTS_MS, SCENARIOS, WRONG, Cell
from evaluation.mitigation.measuring import Numbers
from evaluation.runner import ROOT

FILE = ROOT / "docs" / "results" / "mitigation.md"
DATA = FILE.with_suffix(".csv")

Row = dict[str, str]
"""A cell's numbers as text, by column of the table."""

Table = Mapping[Cell, Row]

_PLACE = ("scenario", "rate", "rtt_ms", "flows", "mitigation")
_NUMBERS = ("dip_percent", "dropped_packets", "duplicate_acks", "held_mb", "held_ms", "measured")

_AS_A_HOLD = ("hold+tolerance", "hold_buffer -10%", "hold_buffer +10%")
"""In the CSV file alone: close to `hold_buffer`, and to a paced hold but in scenario D."""

_HEAD = """<!-- Written by `make mitigation`; do not edit. -->

# Mitigations: what does a move cost with each?

In the cells of the hybrid paper a [move](../howto/move-a-flow.md) without a mitigation costs up to a whole second's
goodput; a paced hold costs nothing.

A place has how far the worst mean over one second after the move lies below the second before it, in percent: least
and most over {rates} bit/s and 1, 4 and 16 flows; below zero no second was worse. In brackets the most packets
that were dropped within 200 ms, or two round trips where that is more.
[mitigation.csv](mitigation.csv) has every run, with duplicate ACKs, also of `hold_buffer` with an error or with
`reordering_tolerance`, and without a move, where nothing is dropped or out of order. Last run: {date}.

CUBIC 2.1 with SACK, which learns of a lost retransmission by a time-out (`lost_retransmissions = "never"`), and a
window that fills the line from the start, 3 s and 3 RTT after the move; in D also 250 packets, half of r3's queue,
which wait there before the move. A paced hold has `release = "bottleneck"`; hold+reduction adds `cwnd_reduction` to
`hold_buffer`, equalization+reduction to `delay_equalization`. Kept back: by a hold of one flow.
"""


def dip(numbers: Numbers) -> float:
    """Return how far the worst second is below the one before the move, percent."""
    return 100 * (1 - numbers["least_bps"] / numbers["before_bps"])


def committed() -> dict[Cell, Row]:
    """Return the table as it was written last."""
    table = {}
    if DATA.exists():
        for row in csv.DictReader(DATA.read_text(encoding="utf-8").splitlines()):
            scenario, rate, rtt, flows, name = (row[key] for key in _PLACE)
            table[Cell(scenario, rate, int(rtt), int(flows), name)] = row
    return table


def row(cell: Cell, numbers: Numbers, day: str) -> Row:
    """Return the row of a cell that was run on a day such as 2026-11-23."""
    place = (cell.scenario, cell.rate, str(cell.rtt_ms), str(cell.flows), cell.mitigation)
    held = cell.mitigation == "hold_buffer"
    values = (
        f"{dip(numbers):.1f}",
        str(numbers["dropped_soon"]),
        str(numbers["duplicate_acks"]),
        f"{numbers['held_bytes'] / 1e6:.3g}" if held else "",
        f"{numbers['held_s'] * 1e3:.3g}" if held else "",
        day,
    )
    return dict(zip((*_PLACE, *_NUMBERS), (*place, *values), strict=True))


def _cells() -> Iterator[Cell]:
    """Yield all cells in the order of the table."""
    parts = [*((["stay", *MITIGATIONS], flows) for flows in FLOWS), (list(WRONG), 1)]
    for names, flows in parts:
        for scenario in SCENARIOS:
            for rate in RATES:
                for rtt in RTTS_MS:
                    yield from (Cell(scenario, rate, rtt, flows, name) for name in names)


def _place(rows: list[Row]) -> str:
    """Return what stands in a place that several cells share: nothing where none has been run."""
    if not rows:
        return ""
    # Adding 0 takes the sign off a negative zero.
    dips = sorted(float(row["dip_percent"]) + 0.0 for row in rows)
    dropped = max(int(row["dropped_packets"]) for row in rows)
    ends = "<0" if dips[-1] < 0 else " to ".join(dict.fromkeys(f"{dip:g}" for dip in (dips[0], dips[-1])))
    return ends + (f" ({dropped})" if dropped else "")


def _kept_back(holds: list[Row]) -> str:
    """Return the least and most that holds kept back."""
    if not holds:
        return ""
    parts = []
    for column, unit in (("held_mb", "MB"), ("held_ms", "ms")):
        ends = sorted((row[column] for row in holds), key=float)
        parts.append(f"{' to '.join(dict.fromkeys((ends[0], ends[-1])))} {unit}")
    return ", ".join(parts)


def _table(table: Table, names: list[str], flows: tuple[int, ...], *, held: bool = False) -> list[str]:
    """Return the lines of a table, a line for all rates; `held`: with what a hold of one flow kept back."""
    heads = [*names, "kept back"] if held else names
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for scenario in SCENARIOS:
        for rtt in RTTS_MS:

            def rows(name: str, counts: tuple[int, ...], scenario: str = scenario, rtt: int = rtt) -> list[Row]:
                cells = (Cell(scenario, rate, rtt, count, name) for rate in RATES for count in counts)
                return [table[cell] for cell in cells if cell in table]

            places = [_place(rows(name, flows)) for name in names]
            if held:
                places.append(_kept_back(rows("hold_buffer", (1,))))
            if any(places):
                lines.append(f"| {scenario} {rtt} ms | " + " | ".join(places) + " |")
    return lines


def text(table: Table) -> str:
    """Return the page."""
    date = max((row["measured"] for row in table.values()), default="none")
    lines = [_HEAD.format(date=date, rates=", ".join(RATES))]
    shown, wrong = ([name for name in names if name not in _AS_A_HOLD] for names in (MITIGATIONS, WRONG))
    lines += ["## 1, 4 and 16 flows", "", *_table(table, shown, FLOWS, held=True), ""]
    lines += ["## The difference of the delays known to a tenth, 1 flow", "", *_table(table, wrong, (1,)), ""]
    return "\n".join(lines)


def write(table: Table) -> None:
    """Write the table and the page."""
    with DATA.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, (*_PLACE, *_NUMBERS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table[cell] for cell in _cells() if cell in table)
    FILE.write_text(text(table), encoding="utf-8")
