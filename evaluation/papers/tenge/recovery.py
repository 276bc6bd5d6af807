"""Traffic of the line before, during and after a burst, and the time until it is back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from elephan.papers.evaluation import PaperResults
from elephan.record import Record
from elephan.run_spec.quantities import given
from elephan.store.series import Series

Floats = npt.NDArray[np.float64]

BACK = 0.95
"""Part of what the line carried before the burst at which it counts as back."""

MEAN_OVER_S = 0.1
"""Time over which the line's load is averaged, s: six round trips of 17 ms, since a window may leave in bursts."""

BEFORE_S = 0.5
"""Time before the burst that says what the line carried, s."""


@dataclass(frozen=True)
class Line:
    """The load of the last link of a flow's way forward; behind the burst it is the flow's alone."""

    time_s: Floats
    """Ends of the intervals."""
    rate_bps: Floats
    burst_s: tuple[float, float]

    @classmethod
    def of(cls, record: Record, series: Series) -> Line:
        """Read it off the series of a run with one burst."""
        link = record.spec["flows"][0]["route"][-1]
        table = series.link
        rows = table.column("link").to_numpy() == link
        time_s = table.column("time_s").to_numpy()[rows].astype(np.float64)
        delivered = table.column("delivered_bytes").to_numpy()[rows].astype(np.float64)
        source = record.spec["background"][0]
        burst_s = (source["start_ns"] / 1e9, given(source["stop_ns"]) / 1e9)
        return cls(time_s, np.diff(delivered, prepend=0.0) * 8 / np.diff(time_s, prepend=0.0), burst_s)

    @property
    def before_bps(self) -> float:
        """Mean load just before the burst."""
        start = self.burst_s[0]
        rows = (self.time_s > start - BEFORE_S) & (self.time_s <= start + 1e-9)
        return float(self.rate_bps[rows].mean())

    @property
    def interval_s(self) -> float:
        """Length of an interval."""
        return float(np.median(np.diff(self.time_s)))

    def recovery_s(self) -> float | None:
        """Return the time from the burst's end until the line is back; None when it is not within the run.

        The first interval is left out: what of the burst still stood in the queue is on the line then.
        """
        end = self.burst_s[1] + self.interval_s
        count = max(1, round(MEAN_OVER_S / self.interval_s))
        means = np.convolve(self.rate_bps, np.ones(count) / count, mode="valid")
        begins = self.time_s[: len(means)] - self.interval_s
        back = np.flatnonzero((begins >= end - 1e-9) & (means >= BACK * self.before_bps))
        return float(begins[back[0]]) - self.burst_s[1] if len(back) else None


TIMES = 9
""""More than 9 times faster"."""


class Found(Enum):
    """Result of a set-up over its seeds."""

    ABOVE = "above 9"
    """Every seed of NewReno takes more than `TIMES` what any of HSTCP takes."""
    BELOW = "below 9"
    UNDECIDED = "both, by the seed"
    NOTHING = "nothing to recover"
    """NewReno is back within the time over which the load is averaged."""


def compared(reno: Sequence[float | None], highspeed: Sequence[float | None]) -> Found:
    """Return what recovery times of two controls say, seed by seed, s; None: not within the run, the longest."""
    if all(item is not None and item <= MEAN_OVER_S for item in reno):
        return Found.NOTHING
    slow, fast = ([math.inf if item is None else item for item in found] for found in (reno, highspeed))
    if min(slow) > TIMES * max(fast):
        return Found.ABOVE
    return Found.BELOW if max(slow) <= TIMES * min(fast) else Found.UNDECIDED


def ratio_of(reno: Sequence[float | None], highspeed: Sequence[float | None]) -> float:
    """Return the median recovery time of NewReno over that of HSTCP; NaN where one is not within the run."""
    if None in reno or None in highspeed:
        return math.nan
    return float(np.median(np.array(reno, dtype=float)) / np.median(np.array(highspeed, dtype=float)))


@dataclass(frozen=True)
class Recoveries:
    """The recovery of one congestion control in one set-up, over seeds."""

    seconds: tuple[float | None, ...]

    @classmethod
    def of(cls, results: PaperResults, records: Sequence[Record]) -> Recoveries:
        """Measure it."""
        return cls(tuple(Line.of(record, results.series(record)).recovery_s() for record in records))

    @property
    def median(self) -> float:
        """Median over seeds; NaN when one of them never came back."""
        return float(np.median([float("nan") if item is None else item for item in self.seconds]))

    @property
    def text(self) -> str:
        """Median and range."""
        known = [item for item in self.seconds if item is not None]
        if len(known) < len(self.seconds):
            return "not within the run"
        low, high = min(known), max(known)
        same = f"{low:.2f}" == f"{high:.2f}"
        return f"{self.median:.2f} s" + ("" if same else f" ({low:.2f} to {high:.2f})")


def cc_of(record: Record) -> str:
    """Return the name of a flow's congestion control."""
    return str(record.spec["flows"][0]["transport"]["congestion_control"])


@dataclass(frozen=True)
class Pair:
    """Both congestion controls in one set-up."""

    reno: Recoveries
    highspeed: Recoveries

    @classmethod
    def of(cls, results: PaperResults, records: Sequence[Record]) -> Pair:
        """Take them out of the records of a set-up."""
        return cls(
            *(
                Recoveries.of(results, [record for record in records if cc_of(record) == name])
                for name in ("reno", "highspeed")
            )
        )

    @property
    def ratio(self) -> float:
        """Median recovery time of Reno over that of HSTCP."""
        return ratio_of(self.reno.seconds, self.highspeed.seconds)

    @property
    def found(self) -> Found:
        """What they say of the paper's statement."""
        return compared(self.reno.seconds, self.highspeed.seconds)
