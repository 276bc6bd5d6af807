"""Runs of a sweep by number: counted and found without making the others.

**Invariant: memory and time follow the number of values on the axes, never their product.**
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from elephan.scenario.sweep import Axis, Mode

RUNS_MAX = 1_000_000
"""Default limit of the runs of a scenario: at one second each, twelve days."""

LOOKED_AT_MAX = 1_000
"""Combinations that are validated before the first one runs: about a second, and all of any usual sweep."""


@dataclass(frozen=True)
class Run:
    """Place of one run in its sweep."""

    combination: int
    """Number of its combination of values, from 0."""
    repetition: int
    """From 0."""


class Runs:
    """All runs of a sweep, in order: combinations with the last axis fastest, repetitions of each together."""

    def __init__(self, axes: Sequence[Axis], mode: Mode, repetitions: Sequence[int], swept_by: int | None) -> None:
        """Count them. `repetitions` has a number for each value of axis `swept_by`; one for all where that is None."""
        self._axes = tuple(axes)
        self._zipped = mode == "zip" and bool(axes)
        lengths = [len(axis.values) for axis in axes]
        self.combinations = lengths[0] if self._zipped else math.prod(lengths)
        # Runs fall into equal blocks, each with all values of the axis that repetitions hang on.
        self._values = len(repetitions)
        self._inner = 1 if self._zipped or swept_by is None else math.prod(lengths[swept_by + 1 :])
        self._ends = list(itertools.accumulate(self._inner * count for count in repetitions))
        self._repetitions = tuple(repetitions)
        self.count = self.combinations // (self._values * self._inner) * self._ends[-1]

    def __len__(self) -> int:
        return self.count

    @property
    def each(self) -> int | None:
        """Return the repetitions of each combination, None where they differ."""
        return self._repetitions[0] if len(set(self._repetitions)) == 1 else None

    def run(self, number: int) -> Run:
        """Return the place of run `number`, from 0."""
        block, rest = divmod(number, self._ends[-1])
        value = bisect_right(self._ends, rest)
        rest -= self._ends[value - 1] if value else 0
        inner, repetition = divmod(rest, self._repetitions[value])
        return Run((block * self._values + value) * self._inner + inner, repetition)

    def values(self, combination: int) -> dict[str, Any]:
        """Return the value of each swept key in a combination."""
        if self._zipped:
            return {axis.key: axis.values[combination] for axis in self._axes}
        found = {}
        for axis in reversed(self._axes):
            combination, place = divmod(combination, len(axis.values))
            found[axis.key] = axis.values[place]
        return {axis.key: found[axis.key] for axis in self._axes}

    def sample(self, most: int = LOOKED_AT_MAX) -> list[int]:
        """Return at most `most` combinations to look at, all where there are no more: the first, the last, values of
        each axis with the first of the others, as many as half of `most` allows, and others evenly spread."""
        if self.combinations <= most:
            return list(range(self.combinations))
        found = {0, self.combinations - 1}
        if not self._zipped:
            stride = self.combinations
            for axis in self._axes:
                stride //= len(axis.values)
                for place in _spread(len(axis.values), max(1, most // 2 // len(self._axes))):
                    found.add(place * stride)
        # Both ends are there already.
        found.update(_spread(self.combinations, most - len(found) + 2))
        return sorted(found)


def _spread(count: int, most: int) -> list[int]:
    """Return at most `most` of the numbers below `count`, evenly spread, both ends among them."""
    if count <= most:
        return list(range(count))
    return [0] if most < 2 else [index * (count - 1) // (most - 1) for index in range(most)]
