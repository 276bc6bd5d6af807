"""`python -m evaluation.fidelity.parity`, as root: this kernel's windows beside the simulator's; some seven minutes.

Writes the table of docs/results/parity.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from elephan.congestion_control import congestion_controls, verify
from elephan.errors import InputError
from elephan.parity.recording import record
from elephan.parity.windows import LOSSES, SECONDS, Windows, case_of, compare_windows
from elephan.path import testbed
from elephan.units import count, pluralize
from evaluation.markdown import fill, spread, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code

COMMAND = "python -m evaluation.fidelity.parity"
PAGE = "parity.md"
RUNS = 3
BY_DELAY_OR_RATE = ("bbr", "compound", "fast", "illinois", "ledbat_plus_plus", "vegas", "westwood")
"""Controls that react to more than loss, so that the machine has its part in their windows."""


def measure(names: Sequence[str] = (), runs: int = RUNS) -> dict[str, list[Windows]]:
    """Return the comparisons of each congestion control with defaults, in turns; of those of some names alone.

    Raises `InputError` where the machine lacks something.
    """
    if lacking := verify.lacks() or testbed.missing():
        raise InputError(lacking)
    found: dict[str, list[Windows]] = {}
    for _ in range(runs):
        for cc in congestion_controls():
            if names and cc.name not in names:
                continue
            (recording,) = record([(cc, {})], [case_of()])
            found.setdefault(cc.name, []).append(compare_windows(cc, {}, recording))
    return found


def segments_apart(windows: Windows) -> int | None:
    """Return the largest difference of two thresholds, segments; None where one has more of them than the other."""
    if len(windows.simulated) != len(windows.recorded):
        return None
    return max((abs(a - b) for a, b in zip(windows.simulated, windows.recorded, strict=True)), default=0)


def thresholds(values: Sequence[int]) -> str:
    """Return thresholds as a cell has them."""
    return ", ".join(map(str, values)) or "none"


def recorded(runs: Sequence[Windows]) -> str:
    """Return the thresholds of the kernel's runs, equal ones once."""
    counts = Counter(
        "as simulated" if run.recorded == run.simulated else thresholds(run.recorded) for run in runs
    ).most_common()
    return counts[0][0] if len(counts) == 1 else "; ".join(f"{text} ({number})" for text, number in counts)


def verdict(found: Mapping[str, Sequence[Windows]]) -> str:
    """Return how many of the controls that react to loss alone have the same thresholds, in words."""
    by_loss = {name: runs for name, runs in found.items() if name not in BY_DELAY_OR_RATE}
    runs = [run for group in by_loss.values() for run in group]
    same = [run for run in runs if run.simulated == run.recorded]
    text = f"Loss alone decides in {len(by_loss)} of them: {', '.join(by_loss)}. "
    if len(same) == len(runs):
        return f"{text}In all {pluralize(len(runs), 'run')} of these every threshold is the simulator's."
    text += f"In {len(same)} of {pluralize(len(runs), 'run')} of these every threshold is the simulator's"
    others = []
    for name, group in by_loss.items():
        for run in group:
            apart = segments_apart(run)
            if apart:
                others.append(f"{name} by {pluralize(apart, 'segment')}")
            elif apart is None:
                others.append(f"{name} has {len(run.recorded)} instead of {len(run.simulated)}")
    return f"{text}; apart: {', '.join(dict.fromkeys(others))}."


def text(found: Mapping[str, Sequence[Windows]]) -> str:
    """Return the part of the page."""
    runs = len(next(iter(found.values())))
    numbers = ", ".join(map(count, LOSSES[:-1])) + f" and {count(LOSSES[-1])}"
    said = (
        f"Both TCPs lose packets {numbers} over 50 Mbit/s, 40 ms and a long queue, for {SECONDS:g} s; {runs} runs of "
        f"each control with its defaults. Windows are those at the hooks, beside the simulator's at the same time "
        f"since connect(2): median and 90th percentile of the difference, least to most of the runs. {verdict(found)}"
    )
    heads = ["congestion control", "thresholds, simulator", "thresholds, kernel (runs)", "window: median", "p90"]
    rows = []
    for name, group in found.items():
        # The simulator is given the same losses in each run.
        ours = thresholds(group[0].simulated)
        parts = [spread([100 * value for value in values], ".1f") for values in _differences(group)]
        rows.append([name, ours, recorded(group), *(f"{part} %" for part in parts)])
    return f"{fill(said)}\n\n{table(heads, rows)}"


def _differences(group: Sequence[Windows]) -> tuple[list[float], list[float]]:
    return [run.median for run in group], [run.p90 for run in group]


def main() -> int:
    """Measure and write; return the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    known = [cc.name for cc in congestion_controls()]
    said = "print this control's row alone"
    parser.add_argument("--only", action="append", default=[], choices=known, metavar="NAME", help=said)
    names = parser.parse_args().only

    def run() -> None:
        if names:
            print(text(measure(names)))
        else:
            write_parts(PAGE, COMMAND, {"windows": text(measure())})

    return exit_code(COMMAND, run)


if __name__ == "__main__":
    sys.exit(main())
