"""Judge change detection on series with known changes; with --measure, write docs/results/change-detection.md."""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
from collections.abc import Callable, Sequence

from evaluation.change_detection import simulated
from evaluation.change_detection.methods import METHODS
from evaluation.change_detection.trials import NOISES, TARGET_NOISE, WITHIN, Result, Trial, cost, drifts, run_all
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code

COMMAND = "python -m evaluation.change_detection --measure"
PERIODS = {10: "10 s", 300: "5 min"}
MONTHS = 2


def share(delays: Sequence[int | None], most: int | None = None) -> str:
    """Return how many changes were found, within `most` samples where it is given, of all."""
    good = sum(1 for one in delays if one is not None and (most is None or one <= most))
    return f"{100 * good / len(delays):.1f} % of {len(delays)}" if delays else "-"


def median(delays: Sequence[int | None]) -> str:
    """Return the median delay of those that were found, in samples."""
    found = [one for one in delays if one is not None]
    return f"{statistics.median(found):g}" if found else "-"


def false_alarms(results: Sequence[Result], count: Callable[[Result], int]) -> str:
    """Return false alarms per path and month."""
    paths = {(one.trial.number, one.trial.period_s) for one in results}
    return f"{sum(count(one) for one in results) / (MONTHS * len(paths)):.2f}" if paths else "-"


def row(name: str, results: Sequence[Result]) -> list[str]:
    """Return a row of a table."""
    of_levels = [delay for one in results for delay in one.delays]
    return [
        name,
        false_alarms(results, lambda one: one.false_quiet),
        false_alarms(results, lambda one: one.false_between),
        share(of_levels, WITHIN),
        share(of_levels),
        median(of_levels),
    ]


HEAD = ["", "false alarms", "between changes", f"within {WITHIN} samples", "found", "median delay"]


def texts(results: Sequence[Result], seed: int, simulated_results: Sequence[Result]) -> dict[str, str]:
    """Return the parts of the page."""
    target = [one for one in results if one.trial.noise <= TARGET_NOISE]
    months = {
        period: MONTHS * len({one.trial.number for one in target if one.trial.period_s == period}) for period in PERIODS
    }
    methods = [
        row(f"{method}, {PERIODS[period]}", [x for x in target if x.method == method and x.trial.period_s == period])
        for period in PERIODS
        for method in METHODS
    ]
    own = [one for one in results if one.method == "elephan"]
    by_noise = [
        row(
            f"{100 * noise:g} %, {PERIODS[period]}",
            [x for x in own if x.trial.noise == noise and x.trial.period_s == period],
        )
        for period in PERIODS
        for noise in NOISES
    ]
    by_quantity = []
    for quantity in dict.fromkeys(one.quantity for one in own):
        of = [one for one in own if one.quantity == quantity and one.trial.noise <= TARGET_NOISE]
        delays = [delay for one in of for delay in one.delays]
        by_quantity.append(
            [
                f"`{quantity}`",
                str(sum(one.false_quiet for one in of)),
                share(delays, WITHIN),
                share(delays),
                median(delays),
            ]
        )
    found = {noise: drifts(seed, 300, noise, 20) for noise in (0.02, 0.05)}
    drifted = [
        [
            f"{100 * noise:g} %",
            f"{sum(1 for day in days if day is not None)} of {len(days)}",
            f"{statistics.median([day for day in days if day is not None]):.1f}" if any(days) else "-",
        ]
        for noise, days in found.items()
    ]
    span_ns, state_bytes = cost(seed)
    return {
        "methods": f"Seed {seed}; "
        + ", ".join(f"{months[p]} path-months of {PERIODS[p]}" for p in PERIODS)
        + " without a change, as many with changes.\n\n"
        + table(HEAD, methods),
        "noise": table(HEAD, by_noise),
        "quantities": table(
            ["", "false alarms in all", f"within {WITHIN} samples", "found", "median delay"], by_quantity
        ),
        "simulated": table(
            HEAD, [row(method, [one for one in simulated_results if one.method == method]) for method in METHODS]
        ),
        "drifts": table(["noise", "found", "median, days from its begin"], drifted),
        "cost": fill(
            f"{span_ns:.0f} ns of CPU for each sample, the call from Python included; a state has {state_bytes} "
            f"bytes of JSON."
        ),
    }


def main() -> int:
    """Run, print or write, judge."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.change_detection", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="all methods, many paths, and write the page")
    parser.add_argument("--seed", type=int, metavar="N", help="of all series (drawn anew)")
    parser.add_argument("--workers", type=int, metavar="N", help="paths at once (all cores)")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    methods = tuple(METHODS) if options.measure else ("elephan",)
    counts = {10: 2, 300: 8} if options.measure else {10: 1, 300: 2}
    trials = [
        Trial(seed, number, period, NOISES[number % len(NOISES)], methods)
        for period, count in counts.items()
        for number in range(count * len(NOISES))
    ]
    results = run_all(trials, options.workers)
    if options.measure:
        write_parts("change-detection.md", COMMAND, texts(results, seed, simulated.run_all(seed, methods)))
    own = [one for one in results if one.method == "elephan" and one.trial.noise <= TARGET_NOISE]
    for period, name in PERIODS.items():
        print(name, *row("", [one for one in own if one.trial.period_s == period])[1:], sep=" | ")
    levels = [delay for one in own for delay in one.delays]
    found = sum(1 for one in levels if one is not None and one <= WITHIN) / len(levels)
    paths = {(one.trial.number, one.trial.period_s) for one in own}
    false = sum(one.false_quiet for one in own) / (MONTHS * len(paths))
    holds = found >= 0.95 and false <= 1.0
    print(
        f"{100 * found:.1f} % within {WITHIN} samples (95 %), {false:.2f} false alarms per path and month (1):", end=" "
    )
    print("holds" if holds else "does not hold")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.change_detection", main))
