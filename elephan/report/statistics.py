"""Mean and confidence interval over repetitions, and the test by which two series of them differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Estimate:
    """A mean over repetitions, and half the width of its 95 % confidence interval (None for a single value)."""

    mean: float
    half_width: float | None
    count: int


@cache
def t_975(degrees: int) -> float:
    """Return Student's t at 97.5 % for `degrees` >= 1 of freedom: that of a two-sided 95 % interval."""
    if degrees < 1:
        raise ValueError(f"degrees of freedom = {degrees}: at least 1")
    # Imported here: it takes twice as long to load as numpy, and one repetition needs none of it.
    from scipy import special

    return float(special.stdtrit(degrees, 0.975))


def estimate(values: Sequence[int | float | None]) -> Estimate | None:
    """Return the mean of the values that are not None; None without any."""
    given = [float(value) for value in values if value is not None]
    if not given:
        return None
    count = len(given)
    mean = math.fsum(given) / count
    if count == 1:
        return Estimate(mean, None, 1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in given) / (count - 1))
    # Equal values differ from their own mean by the last binary digit; that is no spread.
    if deviation <= 1e-12 * abs(mean):
        deviation = 0.0
    return Estimate(mean, t_975(count - 1) * deviation / math.sqrt(count), count)


def student_tail(t: float, degrees: int) -> float:
    """Return the probability that Student's t with `degrees` >= 1 of freedom lies outside of -`t` to `t`."""
    if degrees < 1:
        raise ValueError(f"degrees of freedom = {degrees}: at least 1")
    from scipy import special

    return float(2 * special.stdtr(degrees, -abs(t)))


def paired_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the p-value of the paired t-test: value i of both was drawn with the same random numbers.

    1 where chance and difference cannot be told apart: fewer than two pairs, or no difference at all; 0 where every
    pair differs by the same. Raises ValueError when the numbers of values differ.
    """
    found = estimate([a - b for a, b in zip(first, second, strict=True)])
    if found is None or found.half_width is None or found.mean == 0:
        return 1.0
    if found.half_width == 0:
        return 0.0
    degrees = found.count - 1
    return student_tail(t_975(degrees) * found.mean / found.half_width, degrees)


def holm(values: Sequence[float], level: float = 0.05) -> list[bool]:
    """Return the p-values that are significant when all are tested together (Holm 1979).

    The probability that any of them is called significant by chance stays below `level`.
    """
    order = sorted(range(len(values)), key=lambda index: values[index])
    found = [False] * len(values)
    for place, index in enumerate(order):
        if values[index] > level / (len(values) - place):
            break
        found[index] = True
    return found
