"""`python -m evaluation.moves.manager`, as root: the manager in the simulator and over Linux's TCP; some four minutes.

A program that is stopped goes on with the runs that it has stored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluation.markdown import fill, spread, table
from evaluation.moves import command
from evaluation.moves.both_backends import Point, Run, counted, on_both
from evaluation.runner import ROOT, Runner

COMMAND = "python -m evaluation.moves.manager"
FILE = ROOT / "examples" / "hybrid-manager-kernel.toml"
LIGHTPATH = "lambda.forward"

Entry = Mapping[str, Any]
"""A line of a move log."""


def move_log(run: Run) -> list[Entry]:
    """Return a run's move log."""
    assert run.record.manager is not None
    return list(run.record.manager["move_log"])


def decisions(run: Run) -> list[tuple[float, str, str]]:
    """Return what the manager of a run decided: when, on which flow, why."""
    return [(entry["at_s"], entry["flow"], entry["reason"]) for entry in move_log(run)]


def what(entry: Entry) -> str:
    """Return a line of the move log in words."""
    if entry["reason"] == "elephant":
        return f"{entry['flow']} to the lightpath ({entry['limit']})"
    return f"{entry['flow']} back, {entry['reason']}"


def cell(entries: Sequence[Entry], key: str, divisor: float, form: str) -> str:
    """Return a number of a decision in each run that has it; a dash where none has."""
    values = [entry[key] / divisor for entry in entries if entry.get(key) is not None]
    return spread(values, form) if values else "-"


def log_table(simulated: Run, kernel: Sequence[Run]) -> str:
    """Return the table of the decisions, of runs that all have the same ones."""
    heads = ["at", "what", "rate before, Mbit/s: simulator", "Linux", "after: simulator", "Linux"]
    heads += ["cost, kB: simulator", "Linux"]
    rows = []
    for number, entry in enumerate(move_log(simulated)):
        both = ([entry], [move_log(run)[number] for run in kernel])
        numbers = (("rate_before_bps", 1e6, ".2f"), ("rate_after_bps", 1e6, ".2f"), ("cost_bytes", 1e3, ",.1f"))
        cells = [cell(entries, *column) for column in numbers for entries in both]
        rows.append([f"{entry['at_s']:.0f} s", what(entry), *cells])
    return table(heads, rows)


def offloaded_mb(run: Run) -> float:
    """Return what moved flows sent over the lightpath, as the manager estimated it."""
    return float(run.record.metrics["offloaded_bytes"] or 0) / 1e6


def carried_mb(run: Run) -> float:
    """Return what the lightpath itself counted."""
    (link,) = (link for link in run.record.links if link["name"] == LIGHTPATH)
    return float(link["delivered_bytes"]) / 1e6


def of_lightpath(key: str, factor: float) -> Callable[[Run], float]:
    """Return the reader of a number that the manager has of its one lightpath."""

    def read(run: Run) -> float:
        assert run.record.manager is not None
        (lightpath,) = run.record.manager["lightpaths"]
        return float(lightpath[key]) * factor

    return read


TOTALS: tuple[tuple[str, Callable[[Run], float], str], ...] = (
    ("offloaded, as the manager estimates, MB", offloaded_mb, ".1f"),
    ("carried, by the lightpath's counter, MB", carried_mb, ".1f"),
    ("IP core's load while the lightpath is idle, Mbit/s", of_lightpath("ip_load_idle_bps", 1e-6), ".1f"),
    ("IP core's load while it carries, Mbit/s", of_lightpath("ip_load_carrying_bps", 1e-6), ".1f"),
    ("wait in the IP core's queue while it is idle, ms", of_lightpath("ip_wait_idle_s", 1e3), ".1f"),
    ("wait in the IP core's queue while it carries, ms", of_lightpath("ip_wait_carrying_s", 1e3), ".1f"),
)


def totals_table(simulated: Run, kernel: Sequence[Run]) -> str:
    """Return the table over whole runs."""
    rows = []
    for name, read, form in TOTALS:
        rows.append([name, format(read(simulated), form), spread([read(run) for run in kernel], form)])
    return table(["", "simulator", "Linux"], rows)


def text(point: Point) -> str:
    """Return the part of the page."""
    expected = decisions(point.simulated)
    alike = [run for run in point.kernel if decisions(run) == expected]
    said = counted([point])
    if len(alike) == len(point.kernel):
        said += " All of them decide what the simulator does, at the same seconds."
    else:
        said += f" {len(alike)} of them decide what the simulator does, at the same seconds; the tables have those."
        others = [run for run in point.kernel if run not in alike]
        apart = "; ".join(dict.fromkeys(_difference(expected, decisions(run)) for run in others))
        said += f" The others: {apart}."
    parts = [fill(said)]
    if alike:
        parts += [log_table(point.simulated, alike), totals_table(point.simulated, alike)]
    return "\n\n".join(parts)


def _difference(expected: Sequence[tuple[float, str, str]], found: Sequence[tuple[float, str, str]]) -> str:
    """Return the first decision that is another one, in words."""
    for ours, theirs in zip(expected, found, strict=False):
        if ours != theirs:
            return f"{_words(theirs)} instead of {_words(ours)}"
    return f"{len(found)} decisions instead of {len(expected)}"


def _words(decision: tuple[float, str, str]) -> str:
    at_s, flow, reason = decision
    return f"{flow} at {at_s:g} s ({reason})"


def measure(runner: Runner) -> Mapping[str, str]:
    """Run the example on both backends and return the part."""
    (point,) = on_both(runner, FILE)
    return {"manager": text(point)}


if __name__ == "__main__":
    sys.exit(command.main(COMMAND, __doc__, measure))
