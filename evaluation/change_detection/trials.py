"""Paths drawn from a seed, each judged by every method."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from elephan.core import native
from evaluation.change_detection.methods import METHODS, elephan_events
from evaluation.change_detection.series import DAY_S, QUANTITIES, Series, path, series

NOISES = (0.01, 0.02, 0.03, 0.05, 0.10)
"""Standard deviations of a sample around its pattern, relative to the level."""
TARGET_NOISE = 0.03
"""The criteria are judged up to this noise; beyond it a page says what is found."""
FIRST_DAY = 28
DAYS = 88
"""A detector learns for 28 days; then come 60 that are judged: two months."""
WITHIN = 5


@dataclass(frozen=True)
class Trial:
    """One path, to be drawn."""

    seed: int
    number: int
    period_s: int
    noise: float
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """A method on one quantity of one path."""

    trial: Trial
    quantity: str
    method: str
    false_quiet: int
    """Alarms in 60 days without a change."""
    false_between: int
    """Alarms between changes, in 60 days with changes."""
    delays: tuple[int | None, ...]
    """Of each change: samples from its first to the one that found it, both counted; None: not while it lasted."""


def delays(judged: Series, found: Sequence[int]) -> tuple[tuple[int | None, ...], int]:
    """Return the delay of each label, and the number of alarms that belong to none.

    Samples that are missing do not count. An alarm in the three hours after a change is part of its end.
    """
    of_labels: list[int | None] = []
    used: set[int] = set()
    grace = 3 * 3600 // judged.period_s
    for label in judged.labels:
        hits = [index for index in found if label.start <= index < label.end]
        used.update(index for index in found if label.start <= index < label.end + grace)
        seen = None
        if hits:
            seen = int(np.count_nonzero(~np.isnan(judged.values[label.start : hits[0] + 1])))
        of_labels.append(seen)
    first = FIRST_DAY * DAY_S // judged.period_s
    return tuple(of_labels), sum(1 for index in found if index >= first and index not in used)


def run(trial: Trial) -> list[Result]:
    """Draw a path and judge every method on each of its quantities, without changes and with them."""
    rng = np.random.default_rng([trial.seed, trial.number, trial.period_s])
    of = path(rng, trial.period_s, DAYS)
    results = []
    for quantity in QUANTITIES[trial.period_s]:
        quiet = series(rng, of, quantity, trial.noise)
        changed = series(rng, of, quantity, trial.noise, first_change_day=FIRST_DAY)
        for method in trial.methods:
            _, false_quiet = delays(quiet, METHODS[method](quiet))
            found, false_between = delays(changed, METHODS[method](changed))
            results.append(Result(trial, quantity, method, false_quiet, false_between, found))
    return results


def run_all(trials: Iterable[Trial], workers: int | None) -> list[Result]:
    """Run trials on all cores."""
    with ProcessPoolExecutor(workers) as pool:
        return [result for results in pool.map(run, trials) for result in results]


def drifts(seed: int, period_s: int, noise: float, count: int) -> list[float | None]:
    """Return, for drifts of 30 % over four days, the days until each was found."""
    found_days: list[float | None] = []
    for number in range(count):
        rng = np.random.default_rng([seed, number, period_s, 1])
        judged = series(rng, path(rng, period_s, 40), "available_bps", noise, first_change_day=FIRST_DAY, drift=True)
        start = judged.labels[0].start
        hits = [i for i, change in elephan_events(judged) if i >= start and change["kind"] in ("drift", "step")]
        found_days.append((hits[0] - start) * period_s / DAY_S if hits else None)
    return found_days


def cost(seed: int) -> tuple[float, int]:
    """Return ns per value of the detector from Python, a call included, and bytes of its state after two weeks."""
    rng = np.random.default_rng([seed, 2])
    judged = series(rng, path(rng, 60, 60), "rtt_s", 0.02)
    samples = [
        (at, None if math.isnan(value) else value)
        for at, value in zip(judged.times.tolist(), judged.values.tolist(), strict=True)
    ]
    spans = []
    for _ in range(3):
        detector = native.ChangeDetector(json.dumps({"quantity": "rtt_s", "period_s": 60}))
        begin = time.process_time()
        for at, value in samples:
            detector.handle_sample(at, value)
        spans.append(time.process_time() - begin)
    return statistics.median(spans) / len(samples) * 1e9, len(detector.state())
