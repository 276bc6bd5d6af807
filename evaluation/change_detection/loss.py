"""Judge loss that rises, as the monitor's path sees it; with --measure, write its part of the page.

Packet by packet, in the order in which a session hands them over, with what was agreed or what the path has learned.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elephan.monitor.journal import LOST, Sample
from elephan.monitor.watch import PathWatch
from evaluation.change_detection.methods import watch
from evaluation.change_detection.series import START_S
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code

COMMAND = "python -m evaluation.change_detection.loss --measure"
PATHS = 5
"""Rises by each factor; as many days of paths that hold, of all kinds together."""

PERIOD_S = 0.1
AGREED = 1e-5
FACTORS = (10, 30, 100, 1000)
"""Of the agreed loss."""
LOSSES = {10: 30, 100: 12}
"""Lost packets by which a rise to so many times the agreed loss is found: docs/howto/monitor.md."""
LEAST_PACKETS = 1000
HELD_S = 86_400
BURST = 3.0
"""Mean length of a burst on the paths that hold."""
BATCH = 36_000


@dataclass(frozen=True)
class LossResult:
    """One path: it held for a while, then its loss rose and stayed."""

    factor: float
    found_losses: float | None
    """Packets that the path lost, on the mean, until the change was found; None: not in three times the promise."""
    is_in_time: bool
    after: float
    """Loss that the alert tells, in parts of the true one."""
    flaps: int
    """Ends of the alert while loss stayed."""


def lost_packets(rng: np.random.Generator, count: int, rate: float, burst: float) -> np.ndarray:
    """Draw which of so many packets are lost: bursts of a geometric length, begun at random."""
    begins = np.flatnonzero(rng.random(count) < rate / burst)
    lost = np.zeros(count, dtype=bool)
    for begin, length in zip(begins.tolist(), rng.geometric(1 / burst, len(begins)).tolist(), strict=True):
        lost[begin : begin + length] = True
    return lost


def _samples(first: int, lost: np.ndarray) -> list[Sample]:
    return [
        Sample(round((START_S + (first + number) * PERIOD_S) * 1e9), LOST if gone else 20_000_000, 10_000_000, 55)
        for number, gone in enumerate(lost.tolist())
    ]


def _changes(judge: PathWatch, first: int, lost: np.ndarray) -> Iterator[tuple[int, dict[str, float | str]]]:
    """Hand packets to the path in the order in which a session gives them; yield changes of loss and their packet."""
    for at in range(0, len(lost), BATCH):
        for quantity, change in judge.handle(_samples(first + at, lost[at : at + BATCH]), loaded=False)[1]:
            if quantity == "loss":
                yield round((change["found_s"] - START_S) / PERIOD_S) - first, change


def rise(arguments: tuple[int, int, float]) -> LossResult:
    """Judge a rise of the agreed loss by a factor."""
    seed, number, factor = arguments
    rng = np.random.default_rng([seed, number, round(factor)])
    rate = AGREED * factor
    promised = max(LOSSES[100 if factor >= 100 else 10] / rate, LEAST_PACKETS)
    with tempfile.TemporaryDirectory() as folder:
        judge = watch(Path(folder), "loss", PERIOD_S, {"loss": AGREED})
        first = 20_000
        before = list(_changes(judge, 0, lost_packets(rng, first, AGREED, 1.0)))
        found, after, flaps = None, 0.0, 0
        for at, change in _changes(judge, first, lost_packets(rng, round(3 * promised), rate, 1.0)):
            if change["kind"] == "agreed_missed" and found is None and not before:
                found, after = at, float(change["after"]) / rate
            flaps += change["kind"] == "recovered"
        judge.close()
    in_time = found is not None and found <= promised
    return LossResult(factor, None if found is None else found * rate, in_time, after, flaps)


def held(arguments: tuple[int, int, float | None]) -> int:
    """Return the alerts in a day of a path that holds what was agreed (None: what it has learned), in bursts."""
    seed, number, agreed = arguments
    rng = np.random.default_rng([seed, number, 99])
    rate = AGREED if agreed is None else agreed
    count = round(HELD_S / PERIOD_S)
    lost = lost_packets(rng, count, rate, BURST)
    with tempfile.TemporaryDirectory() as folder:
        judge = watch(Path(folder), "loss", PERIOD_S, {} if agreed is None else {"loss": agreed})
        found = sum(1 for _, change in _changes(judge, 0, lost) if change["kind"] in ("agreed_missed", "step"))
        judge.close()
    return found


def run_all(seed: int, count: int, workers: int | None) -> tuple[list[LossResult], dict[str, list[int]]]:
    """Judge `count` rises of each factor, and as many path-days without one."""
    asked: Iterable[tuple[int, int, float]] = [(seed, number, factor) for factor in FACTORS for number in range(count)]
    kinds: dict[str, float | None] = {f"agreed {AGREED:g}": AGREED, "agreed 0.001": 1e-3, "learned": None}
    with ProcessPoolExecutor(workers) as pool:
        rises = list(pool.map(rise, asked))
        quiet = {
            name: list(pool.map(held, [(seed, number, agreed) for number in range(max(1, count // len(kinds)))]))
            for name, agreed in kinds.items()
        }
    return rises, quiet


def rows(rises: Iterable[LossResult]) -> list[list[str]]:
    """Return a row for each factor."""
    found = []
    rises = list(rises)
    for factor in FACTORS:
        of = [one for one in rises if one.factor == factor]
        losses = [one.found_losses for one in of if one.found_losses is not None]
        found.append(
            [
                f"{factor} times: {AGREED * factor:g}",
                f"{100 * sum(one.is_in_time for one in of) / len(of):.1f} % of {len(of)}",
                f"{100 * len(losses) / len(of):.1f} %",
                f"{statistics.median(losses):.1f}" if losses else "-",
                f"{statistics.median(losses) / (AGREED * factor) * PERIOD_S / 60:.1f} min" if losses else "-",
                f"{statistics.median(one.after for one in of):.2f}",
                str(sum(one.flaps for one in of)),
            ]
        )
    return found


HEAD = ["loss", "in time", "found", "lost packets, median", "time, median", "told/true", "flaps"]


def text(seed: int, rises: Iterable[LossResult], quiet: dict[str, list[int]]) -> str:
    """Return the part of the page."""
    days = "; ".join(f"{name}: {sum(alerts)} in {len(alerts)} path-days" for name, alerts in quiet.items())
    held_text = f"False alerts of paths that hold, losses in bursts of {BURST:g} on the mean: {days}."
    return f"Seed {seed}.\n\n{table(HEAD, rows(rises))}\n\n{fill(held_text)}"


def main() -> int:
    """Run, print or write, judge: nine of ten in time, no flap, no false alert in some days."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.change_detection.loss", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="write the page")
    parser.add_argument("--seed", type=int, metavar="N", help="of all packets (drawn anew)")
    parser.add_argument("--paths", type=int, metavar="N", default=PATHS, help="rises by each factor")
    parser.add_argument("--workers", type=int, metavar="N", help="paths at once (all cores)")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    rises, quiet = run_all(seed, options.paths, options.workers)
    shown = text(seed, rises, quiet)
    print(shown)
    if options.measure:
        write_parts("change-detection.md", COMMAND, {"loss": shown})
    in_time = sum(one.is_in_time for one in rises) / len(rises)
    holds = in_time >= 0.9 and sum(one.flaps for one in rises) <= 1 and sum(map(sum, quiet.values())) <= 1
    print("holds" if holds else "does not hold")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.change_detection.loss", main))
