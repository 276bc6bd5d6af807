"""Series from elephan's own simulator: round trips and throughput of a path under a daily load of short flows.

`load.toml` is simulated under each load, as it is and changed: 20 % longer, or with 20 % less bandwidth. A sample of a
series is the mean over ten seconds of a run, between the two loads nearest to that of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import elephan
from evaluation.change_detection.methods import METHODS
from evaluation.change_detection.series import Floats, Label, Series, changes, path
from evaluation.change_detection.trials import DAYS, FIRST_DAY, Result, Trial, delays

SCENARIO = Path(__file__).parent / "load.toml"
LOADS = (0.02, 0.15, 0.3, 0.45, 0.6, 0.75)
ARRIVALS_FULL = 100e6 / 8 / 42_700
"""Flows per second that fill 100 Mbit/s: the mean of load.toml's sizes is 42.7 kB."""
PERIOD_S = 300
BLOCK_S = 10
PATHS = 5
COLUMNS = {"rtt_s": "srtt_s", "throughput_bps": "goodput_bps"}
CHANGED = {"rtt_s": {"path.rtt": "38.4ms"}, "throughput_bps": {"path.bandwidth": "80Mbit/s"}}


def library(quantity: str, changed: bool, seed: int) -> list[Floats]:
    """Return, by load, the quantity in each second of a run."""
    found = []
    for load in LOADS:
        changes_of: dict[str, object] = {"flow.others.workload.arrivals": round(load * ARRIVALS_FULL, 1)}
        if quantity == "throughput_bps":
            changes_of["flow.probe.workload"] = "bulk"
        if changed:
            changes_of |= CHANGED[quantity]
        results = elephan.run(SCENARIO, changes_of, seed=seed, store="none", workers=1)
        table = results.series(0)
        flow = np.asarray(table["flow"])
        of_probe = flow == flow.max()
        values = np.asarray(table[COLUMNS[quantity]])[of_probe][-60:]
        found.append(np.asarray(values, dtype=np.float64))
    return found


def drawn(rng: np.random.Generator, quantity: str, runs: dict[bool, list[Floats]], labelled: bool) -> Series:
    """Draw a series from the runs."""
    of = path(rng, PERIOD_S, DAYS)
    count = len(of.times)
    found = Series(quantity, PERIOD_S, 0.0, of.times, np.zeros(count))
    changed = np.zeros(count, dtype=bool)
    if labelled:
        found.labels = [
            Label(one.start, one.end, 1.2 if quantity == "rtt_s" else 0.8)
            for one in changes(rng, count, PERIOD_S, FIRST_DAY, quantity == "rtt_s")
        ]
        for label in found.labels:
            changed[label.start : label.end] = True
    loads = np.clip(of.load * np.exp(0.08 * of.day), LOADS[0], LOADS[-1])
    above = np.clip(np.searchsorted(LOADS, loads), 1, len(LOADS) - 1)
    for index in range(count):
        high = int(above[index])
        part = (loads[index] - LOADS[high - 1]) / (LOADS[high] - LOADS[high - 1])
        of_path = runs[bool(changed[index])]
        ends = []
        for run in (of_path[high - 1], of_path[high]):
            start = int(rng.integers(0, len(run) - BLOCK_S + 1))
            ends.append(float(np.nanmean(run[start : start + BLOCK_S])))
        found.values[index] = (1 - part) * ends[0] + part * ends[1]
    return found


def run_all(seed: int, methods: Sequence[str]) -> list[Result]:
    """Simulate the path under each load, draw paths, judge every method."""
    results = []
    for quantity in COLUMNS:
        runs = {changed: library(quantity, changed, seed % 10_000) for changed in (False, True)}
        for number in range(PATHS):
            rng = np.random.default_rng([seed, number, 3])
            quiet, changed = (drawn(rng, quantity, runs, labelled) for labelled in (False, True))
            trial = Trial(seed, number, PERIOD_S, 0.0, tuple(methods))
            for method in methods:
                _, false_quiet = delays(quiet, METHODS[method](quiet))
                found, false_between = delays(changed, METHODS[method](changed))
                results.append(Result(trial, quantity, method, false_quiet, false_between, found))
    return results
