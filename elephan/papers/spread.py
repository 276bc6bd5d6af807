"""A quantity over repetitions: its median and its range."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

Measured = float | Sequence[float]
"""A measured quantity: one number, or one per repetition, in the order of their seeds."""


@dataclass(frozen=True)
class Spread:
    """A quantity over repetitions, at least one."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, measured: Measured) -> Spread:
        """Return a measured quantity as a spread. Raises ValueError when it has no value, or one is not a number."""
        values = (measured,) if isinstance(measured, (int, float)) else measured
        found = cls(tuple(map(float, values)))
        if not found.values or not all(map(math.isfinite, found.values)):
            raise ValueError(f"no number, or one that is not finite: {measured}")
        return found

    @cached_property
    def median(self) -> float:
        """The middle one."""
        return float(statistics.median(self.values))

    @property
    def low(self) -> float:
        """The least."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.values)

    def is_below(self, other: Spread) -> bool:
        """Return True if it is less than another one and their ranges do not overlap."""
        return self.high < other.low

    def __str__(self) -> str:
        """Median, with the range where two digits show one."""
        low, high = f"{self.low:.2f}", f"{self.high:.2f}"
        return f"{self.median:.2f}" if low == high else f"{self.median:.2f} ({low} to {high})"


def shown(value: float) -> str:
    """Return a measured number with four significant digits, whole from 10,000 on; an exponent from a million on."""
    if abs(value) < 1e6 and (float(value).is_integer() or abs(value) >= 9999.5):  # There four digits round to 1e+04.
        return f"{value:.0f}"
    return f"{value:.4g}" if 1e-3 <= abs(value) < 1e6 else f"{value:.3g}"


def shown_with_range(spread: Spread) -> str:
    """Return the median as `shown` does, with the range where one shows: "12 (11 to 14)"."""
    low, high = shown(spread.low), shown(spread.high)
    return shown(spread.median) if low == high else f"{shown(spread.median)} ({low} to {high})"
