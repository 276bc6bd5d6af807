"""Mean and confidence interval over repetitions, and the test by which two series of them differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

NORMAL_975 = 1.959963984540054
"""The normal distribution's quantile at 97.5 %: Student's, for infinitely many degrees of freedom."""


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
    # scipy.special has it, and takes as much CPU time to load as hundreds of short runs.
    log_factor = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(degrees * math.pi) / 2
    t, step = NORMAL_975, math.inf
    # Newton's method from below: the distribution is concave there, so that no step leads beyond the root.
    while step > 1e-9 * t:
        density = math.exp(log_factor - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = (0.95 - _inside(t, degrees)) / (2 * density)
        t += step
    return t


def _inside(t: float, degrees: int) -> float:
    """Return the probability that Student's t lies between -`t` and `t`.

    Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(degrees))
    is_odd = degrees % 2
    term, total = math.cos(angle) if is_odd else 1.0, 0.0
    square = math.cos(angle) ** 2
    for factor in range(1 + is_odd, degrees, 2):
        total += term
        term *= square * factor / (factor + 1)
    return 2 / math.pi * (angle + math.sin(angle) * total) if is_odd else math.sin(angle) * total


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
