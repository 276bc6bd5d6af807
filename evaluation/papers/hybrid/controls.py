"""CUBIC, Compound, Reno and Vegas from the same state in the paper's 45 cells, as controls.csv.

    python -m evaluation.papers.hybrid.controls              # resumable: what is in the table is not run again
    python -m evaluation.papers.hybrid.controls --scenario d --control reno

A flow begins with the window that fills its path and a part of r3's 500 packets (in D three parts, else one half), and
moves ten round trips later. It is followed for a bounded time, `FOLLOWED_S`: Reno takes hours in the largest cells.
CUBIC begins so, too, in place of the grid's own approach: what is compared starts from one state.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import elephan
from elephan.record import Record
from elephan.report.moves import moves_of
from elephan.store.series import Series

from .cell import Cell

FOLDER = Path(__file__).resolve().parent
TABLE = FOLDER / "controls.csv"

CUBIC = '{ name = "cubic", variant = "2.1", beta = "819/1024", hystart = "off" }'
CONTROLS = ("compound", "cubic", "reno", "vegas")
SCENARIOS = ("c2", "c1", "a", "d", "b")
RATES_MBPS = {100: 622.08, 1_000: 2_488.0, 10_000: 39_813.0}
"""Table 1: the limiting rate, and that of links that do not limit."""
RTTS_MS = (10, 100, 1000)

FOLLOWED_S = {
    100: {10: 120, 100: 600, 1000: 1500},
    1_000: {10: 60, 100: 300, 1000: 200},
    10_000: {10: 30, 100: 30, 1000: 60},
}
"""Time that a flow is followed since its move: by limiting rate, Mbit/s, and round-trip time, ms."""

QUEUES = (25, 250, 475)
"""Packets of r3's 500 that the window fills beyond the path."""

MTU_BYTES = 1500
MOST_INITIAL_CWND = 65_535
MOST_OF_A_BURST = 25_000
"""Above so many segments the sender's line stays slow until the move, as in d.toml."""


@dataclass(frozen=True)
class Point:
    """A run: a cell, a control, and the queue at its beginning."""

    scenario: str
    rate_mbps: int
    rtt_ms: int
    control: str
    queue: int

    def changes(self) -> dict[str, str]:
        """Return the changes of controls.toml."""
        low, high = f"{self.rate_mbps}Mbit/s", f"{RATES_MBPS[self.rate_mbps]}Mbit/s"
        limits = {
            "a": (),
            "b": ("sender-r1",),
            "c1": ("r1-r2", "r2-r3", "light"),
            "c2": ("r1-r2", "r2-r3"),
            "d": ("r3-receiver",),
        }[self.scenario]
        changes = {
            f"link.{link}.bandwidth": low if link in limits else high
            for link in ("sender-r1", "r1-r2", "r2-r3", "light", "r3-receiver")
        }
        fills = self.rate_mbps * 1e6 * self.rtt_ms / 1e3 / 8 / MTU_BYTES
        window = int(fills) + (0 if self.scenario == "a" else self.queue)
        moves_ms = 10 * self.rtt_ms
        changes |= {
            "link.r1-r2.delay": f"{self.rtt_ms / 4}ms",
            "link.r2-r3.delay": f"{self.rtt_ms / 4}ms",
            "link.light.delay": f"{self.rtt_ms / 10}ms",
            "flow.congestion_control": CUBIC if self.control == "cubic" else self.control,
            "flow.initial_cwnd": str(min(window, MOST_INITIAL_CWND)),
            "flow.initial_ssthresh": str(window),
            "event.0.at": f"{moves_ms}ms",
            "event.1.at": f"{moves_ms if window > MOST_OF_A_BURST else moves_ms - 2 * self.rtt_ms}ms",
            "event.1.bandwidth": low if self.scenario == "b" else high,
            "run.duration": f"{math.ceil(moves_ms / 1e3) + FOLLOWED_S[self.rate_mbps][self.rtt_ms]}s",
        }
        if self.scenario == "a":
            changes["flow.window"] = f"{self.rate_mbps * self.rtt_ms * 125}B"
        if self.scenario == "d":
            changes["link.sender-r1.bandwidth"] = low
        return changes


def points() -> Iterator[Point]:
    """Yield every run: each cell of each scenario first, slow lines first, then D's other queues."""
    cells = [(rate, rtt) for rate in RATES_MBPS for rtt in RTTS_MS]
    for rate, rtt in cells:
        for scenario in SCENARIOS:
            for control in CONTROLS:
                yield Point(scenario, rate, rtt, control, QUEUES[1])
    for rate, rtt in cells:
        for control in CONTROLS:
            for queue in (QUEUES[0], QUEUES[2]):
                yield Point("d", rate, rtt, control, queue)


HEADS = (
    "scenario",
    "rate_mbps",
    "rtt_ms",
    "control",
    "queue_packets",
    "before_mbps",
    "least_second_mbps",
    "dip_percent",
    "duplicate_acks",
    "dropped_200ms",
    "dropped_wake",
    "timeouts",
    "back_s",
    "followed_s",
    "last_mbps",
    "cpu_s",
)


def row(scenario: str, rate_mbps: int, rtt_ms: int, control: str, queue: str, cell: Cell) -> list[str]:
    """Return a line of the table; `back_s` is empty where the flow was not back, `last_mbps` its last tenth then."""
    record, move = cell.record, cell.move
    head = [scenario, str(rate_mbps), str(rtt_ms), control, queue]
    if move is None:
        return head + [""] * (len(HEADS) - len(head))
    back, followed_s = cell.back_s, float(move.since_s[-1])
    since_tenth = int(np.searchsorted(move.since_s, 0.9 * followed_s))
    last_bits = move.course.delivered_bits[-1] - move.course.delivered_bits[since_tenth]
    return [
        *head,
        f"{move.before_bps / 1e6:.1f}",
        f"{move.least_bps / 1e6:.1f}",
        f"{100 * move.dip:.1f}",
        str(move.duplicate_acks),
        str(move.dropped_early),
        str(move.dropped),
        str(record.metrics.get("timeouts", "")),
        "" if back is None else f"{back:.1f}",
        f"{followed_s:.0f}",
        f"{last_bits / (move.since_s[-1] - move.since_s[since_tenth]) / 1e6:.1f}",
        f"{record.metrics['cpu_s']:.1f}",
    ]


def cell_of(record: Record, series: Series | None) -> Cell:
    """Return a run's cell. Raises ValueError for one without series."""
    if series is None:
        raise ValueError(f"run {record.id} has no series")
    moves = moves_of(record, series)
    return Cell(record, series, moves[0] if moves else None)


def main() -> None:
    """Run what is asked for and write the table, a line per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", choices=SCENARIOS)
    parser.add_argument("--control", choices=CONTROLS)
    options = parser.parse_args()
    rows = read_table(TABLE)
    known = {tuple(line[:5]) for line in rows}
    for point in points():
        queue = "" if point.scenario == "a" else str(point.queue)
        name = (point.scenario, str(point.rate_mbps), str(point.rtt_ms), point.control, queue)
        wanted = options.scenario in (None, point.scenario) and options.control in (None, point.control)
        if wanted and name not in known:
            results = elephan.run(FOLDER / "controls.toml", point.changes(), workers=1)
            cell = cell_of(results[0], results.series_of(results[0]))
            rows.append(row(point.scenario, point.rate_mbps, point.rtt_ms, point.control, queue, cell))
            write_table(TABLE, HEADS, in_order(rows))
            print(",".join(rows[-1]), flush=True)


def in_order(rows: list[list[str]]) -> list[list[str]]:
    """Return lines sorted by cell."""
    order = {name: place for place, name in enumerate(("a", "b", "c1", "c2", "d"))}
    return sorted(rows, key=lambda line: (order[line[0]], int(line[1]), int(line[2]), line[3], line[4]))


def read_table(table: Path) -> list[list[str]]:
    """Return the lines that a table has."""
    if not table.exists():
        return []
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def write_table(table: Path, heads: Sequence[str], rows: Sequence[list[str]]) -> None:
    """Write a table."""
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
