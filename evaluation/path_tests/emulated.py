"""Path tests over emulated paths, by real packets: `python -m evaluation.path_tests.emulated`, as root.

Capacity, available bandwidth and queue depth of a path of three links, of which the middle one is narrow and tight.
Writes a part of docs/results/path-tests.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

from elephan.path.report import Report
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.path_tests import hops
from evaluation.requirements import exit_code, require

PAGE = "path-tests.md"
COMMAND = "python -m evaluation.path_tests.emulated"
RATES_BPS = (100_000_000,)
LOADS = (0.0, 0.3, 0.6)
QUEUE_S = 0.02
"""Depth of the queues, in time of the middle link."""
RUNS = 3


@dataclass(frozen=True)
class Cell(hops.Cell):
    """A path of `hops`, with a shallower queue."""

    @property
    def queue_bytes(self) -> int:
        """Of each link: 20 ms of the middle one, but for two dozen packets at least."""
        return max(36_000, round(self.rate_bps / 8 * QUEUE_S))

    def scenario(self) -> str:
        """See `hops.Cell`."""
        return super().scenario().replace('queue = "2MB"', f'queue = "{self.queue_bytes}B"')


@dataclass(frozen=True)
class Kind:
    """A test: its quantity, the target for its error."""

    test: str
    quantity: str
    target: float

    def truth(self, cell: Cell) -> float:
        """Return the true value: of available bandwidth that of the cross traffic's mean."""
        if self.test == "queue":
            return float(cell.queue_bytes)
        return cell.rate_bps * (1 - cell.load if self.test == "available" else 1)

    def scale(self, cell: Cell) -> float:
        """Return what the error is a share of."""
        return float(cell.queue_bytes if self.test == "queue" else cell.rate_bps)


KINDS = (
    Kind("capacity", "capacity_bps", 0.03),
    Kind("available", "available_bps", 0.10),
    Kind("queue", "queue_bytes", 0.15),
)


def error_of(kind: Kind, cell: Cell, outcome: dict[str, Any]) -> float | None:
    """Return the relative error of an outcome; None: the test gave no value."""
    found = [one["value"] for one in outcome["estimates"] if one["quantity"] == kind.quantity]
    return (found[0] - kind.truth(cell)) / kind.scale(cell) if found else None


def row_of(kind: Kind, cell: Cell, outcomes: list[tuple[dict[str, Any], Report]]) -> tuple[list[str], int]:
    """Return the row of a cell, and how many of its runs are within the target."""
    errors = [error_of(kind, cell, outcome) for outcome, _ in outcomes]
    right = sum(error is not None and abs(error) <= kind.target for error in errors)
    cost = outcomes[0][0]["cost"]
    share = max(8 * outcome["cost"]["bytes"] / max(1e-9, outcome["cost"]["seconds"]) for outcome, _ in outcomes)
    row = [
        kind.test,
        f"{cell.rate_bps / 1e6:g} Mbit/s",
        f"{100 * cell.load:.0f} %",
        ", ".join("refused" if error is None else f"{100 * error:+.1f}" for error in errors),
        f"{cost['seconds']:.0f} s, {100 * share / cell.rate_bps:.2f} %",
        f"{sum(bool(report.faults()) for _, report in outcomes)} of {len(outcomes)}",
    ]
    return row, right


HEADS = ["test", "middle link", "cross traffic", "errors, %", "cost", "not honoured"]


def main() -> None:
    """Measure all, then write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of each cell ({RUNS})")
    options = parser.parse_args()
    require({}, path=True)
    rows, totals = [], []
    for kind in KINDS:
        within = all_of = 0
        for cell in (Cell(rate, load) for rate in RATES_BPS for load in LOADS):
            asked = {"test": kind.test, "line_rate_bps": cell.rate_bps}
            outcomes = [hops.measured(cell, asked) for _ in range(options.runs)]
            row, right = row_of(kind, cell, outcomes)
            rows.append(row)
            within, all_of = within + right, all_of + len(outcomes)
            print(" | ".join(row), file=sys.stderr, flush=True)
            for outcome, _ in outcomes:
                print("   ", outcome["refused"] or "", outcome["notes"], file=sys.stderr, flush=True)
        totals.append(f"{kind.test} {within} of {all_of}")
    sentence = (
        "Three links: ten times the middle link's rate, that, twice that; queues of 20 ms of it. Errors of each run "
        "in percent of the capacity, of the line, of the depth. Cross traffic: two sources each way that are on for "
        f"{hops.ON_MS} ms in the mean, at the link's rate; the truth of available bandwidth is their mean. *Not "
        f"honoured*: runs whose report says that the emulator did not honour the path. Within the target: "
        f"{'; '.join(totals)}."
    )
    write_parts(PAGE, COMMAND, {"emulated": f"{fill(sentence)}\n\n{table(HEADS, rows)}"})


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.path_tests.emulated", main))
