"""Time of a copy by earlier runs: a fixed part (start, connect, compare, commit), and a rate of the data beside it.

A run with little data takes about the fixed part alone, and its bytes over its time are no rate of the path.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elephan import units
from elephan.backup.forecasts import HISTORY, CopyForecast
from elephan.backup.outcome import COPIED

SMALL = 0.1
"""Largest share of a run's time that its data takes if the run tells the fixed part: runs differ by as much anyway."""
RATE_SHARE = 1 / 3
"""Least share of a run's time that its data takes if the run tells a rate, so half as long as the fixed part: that has
ten round trips and more, so slow start is over by then, and a fixed part wrong by `VARIATION` is an error of 60 % at
most.
"""
RATE_BYTES_MIN = 1_000_000
"""Least data of a run that tells a rate: less is sent in five round trips of slow start (ten segments a stream, doubled
each round trip, four streams), so its time is a number of round trips, or noise.
"""
VARIATION = 0.3
"""Variation of the fixed part beyond that of the runs that tell it: 1.74 s followed 1.93 s between two sites, and
0.79 s followed 1.10 s on a path of 32 ms between busy hosts.
"""
VARIATION_S = 0.1
"""The same at least, s, but no more than half of it: the load of a machine. 123 ms followed 184 ms on one."""
ASSUMED_S = (0.1, 1.0, 3.0)
"""Fixed part (low, middle, high) if no run tells it, s: it opens two sessions with a host. Measured: 0.1 to 0.4 s on
one machine, and 1.7 to 1.9 s between sites.
"""
NEAR = 2
"""Most data, as a multiple of a run's, that the run stands for if no run tells a rate."""
OUTLIERS_FROM = 5
"""Runs from which the quickest and the slowest fixed part are left out of the band."""


@dataclass(frozen=True)
class Fixed:
    """The part of a run's time that its data does not change, s."""

    low_s: float
    middle_s: float
    high_s: float
    runs: int
    """Runs that tell it; 0: it is assumed."""

    def text(self) -> str:
        """Return it in words."""
        source = f"in {units.pluralize(self.runs, 'earlier run')} with little data" if self.runs else "assumed"
        return f"start, connect, compare and commit: {units.duration(self.middle_s)} {source}"


@dataclass(frozen=True)
class History:
    """Sent bytes and time of the runs that count, newest first; see `of_rows`."""

    runs: tuple[tuple[int, float], ...] = ()

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> History:
        """Return it of rows of runs, newest first. Runs that were not made to their end do not count."""
        return cls(tuple(
            (row["sent_bytes"], row["seconds"])
            for row in rows
            if row["state"] in COPIED and row["sent_bytes"] is not None and row["seconds"]
        ))  # fmt: skip

    @property
    def fixed(self) -> Fixed:
        """Return the fixed part of a run's time."""
        # The path carries at least this, B/s: no run's data took longer than that says, if the path stayed the same.
        best = max((sent / seconds for sent, seconds in self.runs), default=0.0)
        small = [
            seconds - (sent / best if sent else 0.0)
            for sent, seconds in self.runs
            if sent <= SMALL * seconds * best
        ][:HISTORY]  # fmt: skip
        if small:
            ends = sorted(small)[1:-1] if len(small) >= OUTLIERS_FROM else sorted(small)
            low_s = max(ends[0] / 2, ends[0] - max(VARIATION * ends[0], VARIATION_S))
            high_s = ends[-1] + max(VARIATION * ends[-1], VARIATION_S)
            return Fixed(low_s, statistics.median(small), high_s, len(small))
        # No run is quicker than the fixed part.
        least_s = min((seconds for _, seconds in self.runs), default=ASSUMED_S[-1])
        low_s, middle_s, high_s = (min(assumed_s, least_s) for assumed_s in ASSUMED_S)
        return Fixed(low_s, middle_s, high_s, 0)

    def telling(self) -> list[tuple[int, float]]:
        """Return the newest runs that tell a rate."""
        fixed = self.fixed
        # An assumed fixed part may be as large as its band says.
        fixed_s = fixed.middle_s if fixed.runs else fixed.high_s
        return [
            (sent, seconds)
            for sent, seconds in self.runs
            if sent >= RATE_BYTES_MIN and seconds - fixed_s >= RATE_SHARE * seconds
        ][:HISTORY]  # fmt: skip

    def forecast(self, bytes_: int, files: int | None = None) -> CopyForecast | None:
        """Return the forecast of a copy by earlier runs; None if none tells a rate, or sent about as much."""
        fixed = self.fixed
        if bytes_ == 0:
            return None if not self.runs else CopyForecast(
                "earlier runs", files, 0, fixed.low_s, fixed.middle_s, fixed.high_s, 0.0, [fixed.text()], fixed.middle_s
            )  # fmt: skip
        telling = self.telling()
        runs = telling or [run for run in self.runs if NEAR * run[0] >= bytes_][:HISTORY]
        if not runs:
            return None
        # The fixed part of the earlier run and that of this one vary independently of each other.
        low_s = min(fixed.low_s + _data_s(run, fixed.high_s, bytes_) for run in runs)
        middle_s = statistics.median(fixed.middle_s + _data_s(run, fixed.middle_s, bytes_) for run in runs)
        high_s = max(fixed.high_s + _data_s(run, fixed.low_s, bytes_) for run in runs)
        if telling:
            rates = sorted(8 * sent / (seconds - fixed.middle_s) for sent, seconds in telling)
            goodput_bps = statistics.median(rates)
            to = f" to {units.rate(rates[-1])}" if units.rate(rates[-1]) != units.rate(rates[0]) else ""
            told = f"rate of {units.pluralize(len(rates), 'earlier run')}: {units.rate(rates[0])}{to}"
        else:
            goodput_bps = 8 * bytes_ / middle_s
            told = (
                "no earlier run tells a rate, since data took too little of its time; the forecast is the time of "
                f"{units.pluralize(len(runs), 'run')} with at least half as much data"
            )
        return CopyForecast(
            "earlier runs", files, bytes_, low_s, middle_s, high_s, goodput_bps, [told, fixed.text()], fixed.middle_s
        )  # fmt: skip

    def with_fixed(self, told: CopyForecast, connect_s: float) -> CopyForecast:
        """Return a simulated forecast with the fixed part; `connect_s`: part of it that was simulated too, s."""
        fixed = self.fixed
        # A run tells all of its fixed part, while the assumed one is that beside the connections.
        twice_s = connect_s if fixed.runs else 0.0
        return replace(
            told, seconds_low=max(0.0, told.seconds_low - twice_s) + fixed.low_s,
            seconds=max(0.0, told.seconds - twice_s) + fixed.middle_s,
            seconds_high=max(0.0, told.seconds_high - twice_s) + fixed.high_s, fixed_s=fixed.middle_s,
            explanation=[*told.explanation, fixed.text()],
        )  # fmt: skip


def _data_s(run: tuple[int, float], fixed_s: float, bytes_: int) -> float:
    """Return the time of so much data at a run's rate, s."""
    sent, seconds = run
    return max(0.0, seconds - fixed_s) * bytes_ / sent
