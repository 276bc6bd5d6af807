"""`python -m evaluation.moves.linux`, as root: moves under Linux's TCP beside the simulator; some ten minutes.

A program that is stopped goes on with the runs that it has stored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elephan.papers.catalogue import folder
from elephan.units import pluralize
from evaluation.markdown import fill, spread, table
from evaluation.moves import command
from evaluation.moves.both_backends import Point, Run, counted, on_both
from evaluation.moves.effect import Effect, kept_back, mitigation
from evaluation.runner import ROOT, Runner

COMMAND = "python -m evaluation.moves.linux"
SENDERS_LINE = ROOT / "evaluation" / "moves" / "senders_line.toml"
RECEIVERS_LINE = folder() / "hybrid" / "linux-cwnd-reduction.toml"


Cell = Callable[[Sequence[Run]], str]
"""Reads a cell of a table off runs."""


def columns(point: Point, cells: Sequence[Cell]) -> list[str]:
    """Return each cell of the simulator's run and of Linux's runs; in brackets of those that do not count."""
    found = []
    for cell in cells:
        found += [cell([point.simulated]), cell(point.kernel) if point.kernel else f"({cell(point.faulty)})"]
    return found


def sent_again(runs: Sequence[Run]) -> str:
    """Return the segments that each run sent again."""
    return ", ".join(str(Effect.of(run).retransmitted_segments) for run in runs)


def dips(runs: Sequence[Run]) -> str:
    """Return how far the least second is below the one before the move."""
    return f"{spread([100 * Effect.of(run).dip for run in runs], '.1f')} %"


def kept(runs: Sequence[Run]) -> str:
    """Return what holds kept back, equal runs once."""
    return "; ".join(dict.fromkeys(kept_back(run) for run in runs))


def dropped(runs: Sequence[Run]) -> str:
    """Return the packets that were dropped in each run."""
    return ", ".join(str(Effect.of(run).dropped_packets) for run in runs)


def first_drops(runs: Sequence[Run]) -> str:
    """Return when runs dropped their first packet, s after the move; a dash where none did."""
    found = [Effect.of(run).first_drop_s for run in runs]
    known = [value for value in found if value is not None]
    return "-" if not known else spread(known, ".1f") if len(known) == len(found) else f"{spread(known, '.1f')}; -"


def least_mbps(runs: Sequence[Run]) -> str:
    """Return the least second of runs, Mbit/s."""
    return spread([Effect.of(run).least_bps / 1e6 for run in runs], ".1f")


def senders_line(points: Sequence[Point]) -> str:
    """Return the table of the sender's line."""
    heads = ["mitigation", "sent again: simulator", "Linux", "least second below the one before: simulator", "Linux"]
    heads += ["kept back: simulator", "Linux"]
    rows = []
    for point in points:
        rows.append([mitigation(point.simulated), *columns(point, (sent_again, dips, kept))])
    return f"{fill(counted(points))}\n\n{table(heads, rows)}"


def receivers_line(points: Sequence[Point]) -> str:
    """Return the table of the receiver's line, and what senders said of their reductions."""
    heads = ["flows", "mitigation", "dropped: simulator", "Linux", "first after, s: simulator", "Linux"]
    heads += ["least second, Mbit/s: simulator", "Linux"]
    rows = []
    for point in points:
        cells = columns(point, (dropped, first_drops, least_mbps))
        rows.append([str(len(point.simulated.record.flows)), mitigation(point.simulated), *cells])
    said = [fill(counted(points)), table(heads, rows)]
    return "\n\n".join([*said, "\n".join(fill(f"- {line}", "  ") for line in reductions(points))])


def reductions(points: Sequence[Point]) -> list[str]:
    """Return a line for each point whose senders were to reduce their windows."""
    lines = []
    for point in points:
        ours, theirs = point.simulated.record.cwnd_reductions, _reductions(point.kernel)
        if not ours:
            continue
        flows = len(point.simulated.record.flows)
        done = [one for one in theirs if "kept_segments" in one]
        line = f"{pluralize(flows, 'flow')}, reduced: in the simulator a flow keeps {_windows(ours)} segments"
        if done:
            told = spread([1e3 * one["told_after_s"] for one in done], ".2g")
            found = spread([1e3 * one["done_after_s"] for one in done], ".2g")
            line += (
                f", under Linux {_windows(done)}. The command is in the map {told} ms after the event's time, and a "
                f"sender's next ACK finds it after {found} ms"
            )
        if len(done) < len(theirs):
            line += f"; {len(theirs) - len(done)} of {len(theirs)} Linux senders did not reduce"
        lines.append(f"{line}.")
    return lines


def _reductions(runs: Sequence[Run]) -> list[dict[str, Any]]:
    return [one for run in runs for one in run.record.cwnd_reductions]


def _windows(found: Sequence[dict[str, Any]]) -> str:
    kept, window = (spread([one[key] for one in found], ",") for key in ("kept_segments", "window_segments"))
    return f"{kept} of {window}"


def measure(runner: Runner) -> Mapping[str, str]:
    """Run both scenarios on both backends and return the parts."""
    senders, receivers = (on_both(runner, file) for file in (SENDERS_LINE, RECEIVERS_LINE))
    return {"sender's line": senders_line(senders), "receiver's line": receivers_line(receivers)}


if __name__ == "__main__":
    sys.exit(command.main(COMMAND, __doc__, measure))
