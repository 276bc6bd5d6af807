"""`python -m evaluation.fidelity.modules.calls`: ours and Linux's modules put to the same calls; minutes.

Writes its parts of docs/results/modules.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from multiprocessing.pool import ThreadPool
from statistics import median

from elephan.units import count
from evaluation.fidelity.modules import source
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code

COMMAND = "python -m evaluation.fidelity.modules.calls"
PAGE = "modules.md"
SEGMENT_BYTES = 1448
LINE_BYTES = 1500
RATES_MBPS = (20, 100)
RTTS_MS = (20, 100)
LOSSES = (0.0, 1e-3, 1e-2)
SEGMENTS_PER_ACK = (1, 2)
SEEDS = (1, 2)
SECONDS = 60
BLACKOUT_S = 30
"""Of 1 s, in the runs of the last seed: a time-out."""

SETTINGS: dict[str, tuple[dict[str, int], ...]] = {
    "bbr": ({},),
    "bic": ({}, {"variant": 1}),
    "cubic": ({},),
    "highspeed": ({}, {"variant": 1}),
    "htcp": ({},),
    "illinois": ({},),
    "reno": ({},),
    "scalable": ({}, {"variant": 1}),
    "vegas": ({},),
    "westwood": ({},),
}
"""Settings of ours that are put beside Linux's module."""

AT_THE_END = ("westwood",)
"""Controls whose module sets the window when recovery is over, not when it begins."""


@dataclass
class Found:
    """Outcome of all runs of one control with one setting and one number of segments per ACK."""

    reductions: int = 0
    same_reductions: int = 0
    thresholds: list[float] = field(default_factory=list)
    """Ours over Linux's."""
    apart: int = 0
    """Greatest difference of two thresholds, segments."""
    windows: list[float] = field(default_factory=list)
    """Ours over Linux's at the end of each time between reductions that began with the same window, of at least 1 s."""
    grown: list[int] = field(default_factory=lambda: [0, 0])
    """Segments that cong_avoid or cong_control added: ours, Linux's."""
    calls: int = 0
    same_calls: int = 0


def runs() -> Iterator[list[str]]:
    """Yield the paths: what the program takes, without segments per ACK."""
    for rate_mbps, rtt_ms, loss, seed in product(RATES_MBPS, RTTS_MS, LOSSES, SEEDS):
        rate = rate_mbps * 1e6 / (8 * LINE_BYTES)
        queue = rate * rtt_ms / 1000
        blackout = BLACKOUT_S if seed == SEEDS[-1] else 0
        words = (f"{rate:.3f}", 1000 * rtt_ms, f"{queue:.0f}", round(loss * 1e6), seed, SECONDS, blackout)
        yield [str(word) for word in words]


def rows(name: str, words: Sequence[str], settings: dict[str, int]) -> Iterator[list[str]]:
    """Yield the rows of one run."""
    values = [f"{key}={value}" for key, value in settings.items()]
    program = source.FOLDER / "build" / name
    said = subprocess.run([program, "path", *words, *values], capture_output=True, text=True, check=True).stdout
    return (line.split("\t") for line in said.splitlines())


def compare(name: str, settings: dict[str, int], per_ack: int) -> Found:
    """Return the outcome of all paths."""
    found = Found()
    for words in runs():
        began_us = 0
        for kind, *cells in rows(name, [*words[:4], str(per_ack), *words[4:]], settings):
            if kind == "calls":
                hook, number, same, _, ours, theirs = cells
                if hook in ("cong_avoid", "cong_control"):
                    found.calls += int(number)
                    found.same_calls += int(same)
                    found.grown[0] += int(ours)
                    found.grown[1] += int(theirs)
            elif kind == ("after" if name in AT_THE_END else "reduction"):
                ours, theirs = (int(cell) for cell in cells[-2:])
                found.reductions += 1
                found.same_reductions += ours == theirs
                found.thresholds.append(ours / theirs)
                found.apart = max(found.apart, abs(ours - theirs))
            if kind == "after":
                began_us = int(cells[0])
            elif kind == "epoch":
                at_us, _, ours, theirs = (int(cell) for cell in cells)
                if began_us and at_us - began_us >= 1_000_000:
                    found.windows.append(ours / theirs)
    return found


def middle(values: Sequence[float]) -> str:
    """Return the median and the 5th and 95th percentile."""
    if not values:
        return ""
    ordered = sorted(values)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.05, 0.95))
    return f"{median(ordered):.2f} ({low:.2f} to {high:.2f})"


def label(name: str, settings: dict[str, int]) -> str:
    """Return a control with its variant."""
    return f"{name}, linux" if settings else name


def text(found: dict[tuple[str, int], Found]) -> str:
    """Return the part of the page."""
    heads = [
        "control, segments per ACK",
        "the same outcome, of all calls that grow",
        "window, ours / Linux's",
        "reductions",
        "the same threshold",
        "threshold, ours / Linux's",
        "greatest difference",
    ]
    lines = []
    for (name, per_ack), one in found.items():
        lines.append(
            [
                f"{name}, {per_ack}",
                f"{100 * one.same_calls / one.calls:.1f} %",
                middle(one.windows),
                count(one.reductions),
                f"{100 * one.same_reductions / max(one.reductions, 1):.0f} %",
                middle(one.thresholds),
                count(one.apart),
            ]
        )
    said = (
        f"Linux's source {source.version()} of Debian's {source.PACKAGE}, compiled as a program with ours; clock of "
        f"250 Hz. {', '.join(map(str, RATES_MBPS))} Mbit/s, {', '.join(map(str, RTTS_MS))} ms, queue of one product, "
        f"loss {', '.join(f'{loss:g}' for loss in LOSSES)}, {len(SEEDS)} seeds, {SECONDS} s each, one of the seeds "
        f"with a time-out at {BLACKOUT_S} s. Windows: at the end of each time of at least 1 s between two reductions; "
        "median, 5th and 95th percentile. Thresholds: from the same window; greatest difference in segments."
    )
    return f"{fill(said)}\n\n{table(heads, lines)}"


def main() -> int:
    """Measure and write; return the exit code."""
    argparse.ArgumentParser(prog=COMMAND, description=__doc__).parse_args()

    def run() -> None:
        for name in SETTINGS:
            source.build(name)
        wanted = [
            (name, settings, per_ack)
            for name, each in SETTINGS.items()
            for settings in each
            for per_ack in SEGMENTS_PER_ACK
        ]
        with ThreadPool(1) as pool:
            outcomes = pool.starmap(compare, wanted)
        found = {
            (label(name, settings), per_ack): one
            for (name, settings, per_ack), one in zip(wanted, outcomes, strict=True)
        }
        write_parts(PAGE, COMMAND, {"calls": text(found)})

    return exit_code(COMMAND, partial(run))


if __name__ == "__main__":
    sys.exit(main())
