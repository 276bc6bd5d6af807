"""Mean and confidence interval over repetitions, and the test by which two series of them differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Student's t at 97.5 %, for 1 .. 30 degrees of freedom: a two-sided 95 % interval. Abramowitz and Stegun (1964),
# table 26.10. The tests hold it, and the expansion beyond it, against the distribution itself.
T_975 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)

Z_975 = 1.959964
"""The normal distribution's 97.5 % point."""


@dataclass(frozen=True)
class Estimate:
    """A mean over repetitions, and half the width of its 95 % confidence interval (None for a single value)."""

    mean: float
    half_width: float | None
    count: int


def t_975(degrees: int) -> float:
    """Return Student's t at 97.5 % for `degrees` >= 1 of freedom, to 1e-4."""
    if degrees < 1:
        raise ValueError(f"degrees of freedom = {degrees}: at least 1")
    if degrees <= len(T_975):
        return T_975[degrees - 1]
    # Cornish-Fisher expansion in 1/degrees (Abramowitz and Stegun 26.7.5), two terms.
    z = Z_975
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / degrees + second / degrees**2


def estimate(values: Sequence[int | float | None]) -> Estimate | None:
    """Return the mean of what is there, None when nothing is."""
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
    """Return the probability that Student's t with `degrees` >= 1 of freedom lies outside of -`t` to `t`.

    Exact sums for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4); absolute error about 1e-14.
    """
    if degrees < 1:
        raise ValueError(f"degrees of freedom = {degrees}: at least 1")
    angle = math.atan2(abs(t), math.sqrt(degrees))
    square = math.cos(angle) ** 2
    # The first term, and the numerator of the first factor between two terms.
    term, numerator = (math.cos(angle), 2) if degrees % 2 else (1.0, 1)
    total = 0.0
    for _ in range(degrees // 2):
        total += term
        term *= square * numerator / (numerator + 1)
        numerator += 2
    inside = math.sin(angle) * total
    if degrees % 2:
        inside = 2 / math.pi * (angle + inside)
    return max(0.0, 1.0 - inside)


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
    """Return which p-values are significant when all of them are looked at together (Holm 1979).

    The probability that any of them is called significant by chance stays below `level`.
    """
    order = sorted(range(len(values)), key=lambda index: values[index])
    found = [False] * len(values)
    for place, index in enumerate(order):
        if values[index] > level / (len(values) - place):
            break
        found[index] = True
    return found
