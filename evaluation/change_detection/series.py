"""Labelled series of a path's measurements: a load with a daily pattern, noise, outliers, gaps, and known changes.

The load has working days and weekends, holidays, a backup at night, and days that are busier than others. Noise is half
autocorrelated (an Ornstein-Uhlenbeck process) and half heavy-tailed (Student's t with 4 degrees of freedom). A series
is drawn from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

DAY_S = 86_400
START_S = 1_767_571_200  # Monday, 2026-01-05, 00:00 UTC.
QUANTITIES = {
    10: ("rtt_s", "forward_delay_s"),
    300: ("capacity_bps", "available_bps", "throughput_bps"),
}
"""By the time between two of their values, s: a bin of the monitor's samples, a path test."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Label:
    """A change that was made."""

    start: int
    """Index of its first sample."""
    end: int
    """Index of the first sample after it."""
    factor: float
    """Of the level."""
    ramp: int = 0
    """Samples until it is whole; 0: a step."""


@dataclass
class Series:
    """Samples of one quantity."""

    quantity: str
    period_s: int
    noise: float
    """Standard deviation of a sample around its pattern, relative to the level."""
    times: Floats
    values: Floats
    """NaN: no sample."""
    labels: list[Label] = field(default_factory=list)


@dataclass
class Path:
    """The common part of the series of one path."""

    period_s: int
    times: Floats
    load: Floats
    """Part of the bottleneck that others use, 0 to 1."""
    day: Floats
    """Busyness of a day beside others of its kind, as a logarithm of unit variance."""


def smooth_steps(rng: np.random.Generator, days: int, times: Floats) -> Floats:
    """Return a value per day, correlated with the day before, interpolated between noons."""
    values = np.zeros(days + 2)
    for day in range(1, days + 2):
        values[day] = 0.5 * values[day - 1] + np.sqrt(0.75) * rng.standard_normal()
    return np.interp((times - START_S) / DAY_S, np.arange(days + 2) - 0.5, values)


def path(rng: np.random.Generator, period_s: int, days: int) -> Path:
    """Draw the load of a path."""
    count = days * DAY_S // period_s
    times = START_S + period_s * np.arange(count, dtype=np.float64)
    hour = (times % DAY_S) / 3600
    day_number = ((times - START_S) // DAY_S).astype(int)
    weekend = (day_number % 7) >= 5
    holidays = rng.random(days) < 0.04
    free = weekend | holidays[day_number]
    night, office, evening = rng.uniform(0.05, 0.15), rng.uniform(0.2, 0.45), rng.uniform(0.05, 0.25)

    def rise(at: float, width: float) -> Floats:
        return np.asarray(1 / (1 + np.exp(-(hour - at) / width)))

    begins, ends = rng.uniform(7, 9), rng.uniform(16, 18.5)
    working = rise(begins, 0.4) * (1 - rise(ends, 0.6)) * (1 - 0.2 * np.exp(-(((hour - 12.5) / 0.7) ** 2)))
    evenings = np.exp(-(((hour - 20.5) / 1.8) ** 2))
    load = night + np.where(free, 0.25, 1.0) * office * working + evening * evenings
    if rng.random() < 0.5:
        add, starts, hours = rng.uniform(0.15, 0.35), rng.uniform(0.5, 3.5), rng.uniform(1, 3)
        for day in range(days):
            if (day % 7) < 5 and rng.random() > 0.01:
                begin = starts + rng.normal(0, 2 / 60)
                end = begin + hours * np.exp(rng.normal(0, 0.03))
                within = (day_number == day) & (hour >= begin) & (hour < end)
                load = load + np.where(within, add, 0.0)
    return Path(period_s, times, np.minimum(load, 0.85), smooth_steps(rng, days, times))


def noise(rng: np.random.Generator, count: int, period_s: int) -> Floats:
    """Draw noise of unit variance: half of it autocorrelated, half heavy-tailed."""
    memory_s = rng.uniform(300, 1800)
    keep = np.exp(-period_s / memory_s)
    pushes = rng.standard_normal(count) * np.sqrt(1 - keep * keep)
    slow = np.empty(count)
    level = rng.standard_normal()
    for index, push in enumerate(pushes.tolist()):
        level = keep * level + push
        slow[index] = level
    white = rng.standard_t(4, count) / np.sqrt(2)
    return np.asarray(np.sqrt(0.5) * slow + np.sqrt(0.5) * white)


def changes(rng: np.random.Generator, count: int, period_s: int, first_day: int, worse_up: bool) -> list[Label]:
    """Draw changes of 20 %, each lasting between 6 h and 30 h, with two days or more between them."""
    labels: list[Label] = []
    at = first_day * DAY_S + rng.uniform(0, 2 * DAY_S)
    while True:
        length = rng.uniform(6 * 3600, 30 * 3600)
        start, end = int(at / period_s), int((at + length) / period_s)
        if end + DAY_S // period_s >= count:
            return labels
        worse = rng.random() < 0.75
        labels.append(Label(start, end, 1.2 if worse == worse_up else 0.8))
        at += length + rng.uniform(2 * DAY_S, 4 * DAY_S)


def series(
    rng: np.random.Generator,
    of: Path,
    quantity: str,
    relative_noise: float,
    *,
    first_change_day: int | None = None,
    drift: bool = False,
) -> Series:
    """Draw the samples of one quantity of a path, with changes from a day on, or without any."""
    count = len(of.times)
    load = of.load * np.exp(0.08 * of.day)
    capacity = 10 ** rng.uniform(8, 10)
    unit = noise(rng, count, of.period_s)
    found = Series(quantity, of.period_s, relative_noise, of.times, np.zeros(count))
    if first_change_day is not None:
        found.labels = changes(rng, count, of.period_s, first_change_day, not quantity.endswith("_bps"))
    if drift and first_change_day is not None:
        start, whole = first_change_day * DAY_S // of.period_s, 4 * DAY_S // of.period_s
        found.labels = [Label(start, count, 0.7 if quantity.endswith("_bps") else 1.3, ramp=whole)]
    factor = np.ones(count)
    for label in found.labels:
        if label.ramp:
            rising = np.clip((np.arange(count) - label.start) / label.ramp, 0, 1)
            factor *= 1 + (label.factor - 1) * rising
        else:
            factor[label.start : label.end] *= label.factor
    if quantity in ("rtt_s", "forward_delay_s"):
        base = 10 ** rng.uniform(-2.2, -0.8)
        queue = rng.uniform(0.02, 0.15) * base
        level = base + queue * load / (1 - load)
    elif quantity == "capacity_bps":
        level = np.full(count, capacity)
    elif quantity == "available_bps":
        level = capacity * (1 - load)
    else:
        level = 0.8 * capacity * (1 - load) ** 0.7
    values = level * factor * np.exp(relative_noise * unit)
    outliers = rng.random(count) < 0.003
    sign = 1.0 if quantity.endswith("_s") else -1.0
    # Half of the outliers last two samples.
    outliers |= np.roll(outliers, 1) & (rng.random(count) < 0.5)
    values = values * np.where(outliers, np.exp(sign * rng.uniform(0.2, 1.5, count)), 1.0)
    values = np.where(rng.random(count) < 0.003, np.nan, values)
    for _ in range(rng.poisson(count * of.period_s / (20 * DAY_S))):
        start = int(rng.integers(0, count))
        values[start : start + int(rng.uniform(600, 6 * 3600) / of.period_s)] = np.nan
    found.values = values
    return found
