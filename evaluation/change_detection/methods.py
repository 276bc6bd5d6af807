"""Detectors: elephan's, a plain threshold, and the plateau algorithm of SLAC.

A detector takes times and values, NaN where a sample is missing, and returns the indices of the samples at which it
reports a change away from the level before.
"""

from __future__ import annotations

import math
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from elephan.monitor.journal import LOST, UNKNOWN, Sample
from elephan.monitor.spec import PathSpec, TestSpec
from elephan.monitor.watch import OF_BINS, QUANTITIES_OF, PathWatch
from evaluation.change_detection.series import DAY_S, Series

Method: TypeAlias = Callable[[Series], list[int]]

LEARNED_DAYS = 14
"""Days from whose samples the plain threshold takes its median."""


def watch(folder: Path, quantity: str, period_s: float, benchmark: dict[str, float] | None = None) -> PathWatch:
    """Return a path of the monitor that measures a quantity: what the daemon hands its samples and outcomes to."""
    test = next((test for test, quantities in QUANTITIES_OF.items() if quantity in quantities), "stamp")
    spec = PathSpec(
        "judged", "192.0.2.1:862", None, None, 10**9, 10_000, "*judged", benchmark or {}, (), False,
        (TestSpec(test, round(period_s * 1e9)),),
    )  # fmt: skip
    return PathWatch(spec, 1, folder)


def elephan_events(series: Series) -> list[tuple[int, dict[str, Any]]]:
    """Return every change of the series' quantity that the monitor finds, with the index of the sample by then."""
    with tempfile.TemporaryDirectory() as folder:
        judge = watch(Path(folder), series.quantity, series.period_s)
        rows = zip(series.times.tolist(), series.values.tolist(), strict=True)
        found: list[Any] = []
        # A value of ten seconds is complete with the sample after it.
        behind = int(series.quantity in OF_BINS)
        if series.quantity in OF_BINS:
            samples = [_sample(series.quantity, at, value) for at, value in rows]
            for first in range(0, len(samples), 8640):
                found += judge.handle(samples[first : first + 8640], loaded=False)[1]
        else:
            for at, value in rows:
                if not math.isnan(value):
                    estimate = {"quantity": series.quantity, "value": value, "low": value, "high": value}
                    found += judge.handle_outcome(at, {"estimates": [estimate]})
        judge.close()
    start_s = float(series.times[0])
    return [
        (min(round((change["found_s"] - start_s) / series.period_s) + behind, len(series.times) - 1), change)
        for quantity, change in found
        if quantity == series.quantity
    ]


def _sample(quantity: str, at_s: float, value: float) -> Sample:
    sent_ns = round(at_s * 1e9)
    if math.isnan(value):
        return Sample(sent_ns, LOST)
    rtt_ns = round(value * 1e9)
    # The delay there is the quantity that is judged, of a path that is as long back.
    if quantity == "forward_delay_s":
        return Sample(sent_ns, 2 * rtt_ns, rtt_ns, 55)
    return Sample(sent_ns, rtt_ns, UNKNOWN, 55)


def elephan(series: Series) -> list[int]:
    """elephan's detector: steps and drifts. Silence and its end are no changes of a level."""
    return [index for index, change in elephan_events(series) if change["kind"] in ("step", "drift")]


def threshold(needed: int) -> Method:
    """Return a plain threshold: `needed` samples on end 20 % from the median of two weeks."""

    def method(series: Series) -> list[int]:
        first = LEARNED_DAYS * DAY_S // series.period_s
        learned = sorted(value for value in series.values[:first].tolist() if not math.isnan(value))
        median = learned[len(learned) // 2]
        low, high = 0.8 * median, 1.2 * median
        found, beyond, open_ = [], 0, False
        for index, value in enumerate(series.values.tolist()):
            if math.isnan(value) or index < first:
                continue
            # A hair inside of 20 %, or a change of exactly 20 % would be found half of the time.
            beyond = beyond + 1 if not low * 1.03 <= value <= high * 0.97 else 0
            if beyond >= needed and not open_:
                found.append(index)
                open_ = True
            if beyond == 0:
                open_ = False
        return found

    return method


def plateau(history_s: int, trigger: int | None, sensitivity: float, change: float) -> Method:
    """Return the plateau algorithm of Logg and Cottrell (2004), after McGregor and Braun, for rises and drops.

    A sample beyond `sensitivity` standard deviations of the history goes to a trigger buffer, any other to the history,
    and the oldest of the trigger buffer with it. A full trigger buffer whose mean differs by `change` is an event, and
    becomes the history. `trigger`: samples, None: those of 3 h, as SLAC had it.
    """

    def method(series: Series) -> list[int]:
        length = history_s // series.period_s
        most = trigger if trigger is not None else max(5, 3 * 3600 // series.period_s)
        history: deque[float] = deque()
        total = squares = 0.0

        def keep(value: float) -> None:
            nonlocal total, squares
            history.append(value)
            total += value
            squares += value * value
            if len(history) > length:
                gone = history.popleft()
                total -= gone
                squares -= gone * gone

        found: list[int] = []
        triggers: deque[float] = deque()
        for index, value in enumerate(series.values.tolist()):
            if math.isnan(value):
                continue
            if len(history) < length // 2:
                keep(value)
                continue
            mean = total / len(history)
            deviation = math.sqrt(max(0.0, squares / len(history) - mean * mean))
            if abs(value - mean) <= sensitivity * deviation:
                keep(value)
                if triggers:
                    keep(triggers.popleft())
                continue
            if triggers and (value > mean) != (triggers[0] > mean):
                triggers.clear()
            triggers.append(value)
            if len(triggers) >= most:
                level = sum(triggers) / len(triggers)
                if mean > 0 and abs(level - mean) > change * mean:
                    found.append(index)
                # The trigger buffer is what comes after; it stands for a whole history until that is filled.
                history.clear()
                total = squares = 0.0
                for _ in range(max(1, (length // 2) // len(triggers) + 1)):
                    for one in triggers:
                        keep(one)
                triggers.clear()
        return found

    return method


METHODS: dict[str, Method] = {
    "elephan": elephan,
    "threshold of 20 %, one sample": threshold(1),
    "threshold of 20 %, 5 samples": threshold(5),
    "plateau, SLAC's parameters": plateau(DAY_S, None, 2.0, 0.4),
    "plateau, 5 samples, 15 %": plateau(DAY_S, 5, 2.0, 0.15),
}
