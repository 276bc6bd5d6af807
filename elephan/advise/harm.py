"""Harm to ordinary flows, and the operator's limit of it.

Harm is that of Ware, Mukerjee, Seshan and Sherry (HotNets 2019, "Beyond Jain's Fairness Index: Setting the Bar For The
Deployment of Congestion Control Algorithms"): (x - y) / x where a flow has goodput x without the copy and y beside it.
The flows are one Reno and one CUBIC flow on the bottleneck, beside whoever is there already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from elephan.advise.simulation import REFERENCES

ORDINARY = 4
"""Ordinary flows whose harm is the limit unless the operator says another."""
LEAST_LIMIT = 0.05
"""A smaller limit cannot be told from chance: that of the ordinary flows counts as this much at least."""


@dataclass(frozen=True)
class Limit:
    """The largest harm that the operator takes."""

    share: float | None = None
    """None: that of `ORDINARY` CUBIC flows in the copy's place."""
    of_contract: bool = False
    """Those flows use the rate of a policer."""

    @property
    def text(self) -> str:
        """Return it in words."""
        if self.share is None:
            which = " that use the policer's rate" if self.of_contract else ""
            return (
                f"no more harm to others than {ORDINARY} ordinary flows (CUBIC){which} would do in its place; "
                f"{LEAST_LIMIT:.0%} is always allowed, as it cannot be told from chance"
            )
        return f"no other flow loses more than {self.share:.0%} of its goodput"

    def of(self, ordinary: Sequence[float]) -> tuple[float, ...]:
        """Return the limit for each reference flow, where ordinary flows do this harm."""
        if self.share is not None:
            return (self.share,) * len(REFERENCES)
        return tuple(max(LEAST_LIMIT, one) for one in ordinary)


def harm_of(without: Sequence[Sequence[float]], beside: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the harm to each reference flow over several runs: of the sums of goodput, so that no run without any
    counts most; below 0 where the flow gains.
    """
    places = range(len(REFERENCES))
    totals = [(sum(run[place] for run in without), sum(run[place] for run in beside)) for place in places]
    return tuple(1 - y / x if x > 0 else 0.0 for x, y in totals)


def excess_of(
    limit: Limit,
    without: Sequence[Sequence[float]],
    ordinary: Sequence[Sequence[float]],
    beside: Sequence[Sequence[float]],
) -> tuple[float, float]:
    """Return by how much a candidate's harm exceeds the limit at the flow that it hurts most, and the standard error of
    that; runs are paired by seed.
    """
    limits = limit.of(harm_of(without, ordinary))
    harms = harm_of(without, beside)
    place = max(range(len(harms)), key=lambda index: harms[index] - limits[index])
    return harms[place] - limits[place], _error(limit, place, without, ordinary, beside)


def _error(
    limit: Limit,
    place: int,
    without: Sequence[Sequence[float]],
    ordinary: Sequence[Sequence[float]],
    beside: Sequence[Sequence[float]],
) -> float:
    """Return the standard error of a difference of two ratios of sums, whose runs are pairs."""
    count = len(without)
    if count < 2:
        return math.inf
    mean = sum(run[place] for run in without) / count
    if mean <= 0:
        return math.inf
    if limit.share is None:
        values = [(one[place] - other[place]) / mean for one, other in zip(ordinary, beside, strict=True)]
    else:
        values = [(one[place] - other[place]) / mean for one, other in zip(without, beside, strict=True)]
    middle = sum(values) / count
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (count - 1) / count)
