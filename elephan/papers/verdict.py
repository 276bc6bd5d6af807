"""Hold what was measured against what a paper claims.

**Invariant: a verdict follows from the claim's data and the measured numbers alone.** From strong to weak:

- reproduced: every value is within its tolerance and every order holds;
- ordering holds: every order holds, some value is outside;
- not decided: no order is broken, but the ranges of repetitions overlap in one;
- depends: no order is broken, but a statement holds in a part of the set-ups that the paper leaves open;
- differs: an order is broken; a statement holds in no set-up; or a value is outside and the claim states no order.

A quantity may be measured once per repetition. Its median is held against a value. An order holds only where the ranges
of neighbours do not overlap, and is broken only where they do not overlap either, or are one number.

Two more are for claims that no run measures: "held by tests", a statement without numbers that tests of the core hold;
and "not yet", for which there is nothing so far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from elephan.papers.claims import Claim, Order, Outcome, Region, Value
from elephan.papers.spread import Measured, Spread, shown, shown_with_range


class Verdict(Enum):
    """See the module's text."""

    REPRODUCED = "reproduced"
    ORDERING_HOLDS = "ordering holds"
    NOT_DECIDED = "not decided"
    DEPENDS = "depends"
    DIFFERS = "differs"
    HELD = "held by tests"
    NOT_YET = "not yet"


@dataclass(frozen=True)
class ValueCheck:
    """A number of the paper beside ours."""

    value: Value
    spread: Spread
    unit: str

    @property
    def measured(self) -> float:
        """Ours, of repetitions the median."""
        return self.spread.median

    @property
    def holds(self) -> bool:
        """True if ours is within the tolerance."""
        return self.value.holds(self.measured)

    @property
    def deviation(self) -> float | None:
        """Ours relative to the paper's, 0.01 = 1 % more; None when the paper's is 0."""
        return (self.measured - self.value.paper) / self.value.paper if self.value.paper else None


@dataclass(frozen=True)
class OrderCheck:
    """A statement about sizes beside our numbers."""

    order: Order
    spreads: tuple[Spread, ...]
    names: tuple[str, ...]
    """Labels of the quantities."""

    @property
    def outcome(self) -> Outcome:
        """The answer to whether ours grow as the paper's do."""
        return self.order.outcome(self.spreads)


@dataclass(frozen=True)
class RegionCheck:
    """A statement that depends on what the paper leaves open, beside the number of set-ups in which it holds."""

    region: Region
    held: int
    tried: int
    """Set-ups, at least one."""

    @classmethod
    def of(cls, region: Region, setups: Spread) -> RegionCheck:
        """Count them. Raises ValueError where a set-up has another number than 1 and 0."""
        if not set(setups.values) <= {0.0, 1.0}:
            raise ValueError(f"{region.name}: a set-up has 1 where the statement holds, else 0, not {setups.values}")
        return cls(region, sum(map(int, setups.values)), len(setups.values))

    @property
    def said(self) -> str:
        """The count in words."""
        which = {0: "in none", self.tried: "in all"}.get(self.held, f"in {self.held}")
        return f"{which} of {self.tried} set-ups"


@dataclass(frozen=True)
class Judgement:
    """A claim, what was measured for it, and the verdict."""

    claim: Claim
    verdict: Verdict
    values: tuple[ValueCheck, ...]
    orders: tuple[OrderCheck, ...]
    regions: tuple[RegionCheck, ...]
    because: str
    """The verdict's reason in words, from the numbers."""


def judge(claim: Claim, measured: Mapping[str, Measured]) -> Judgement:
    """Return the verdict on `claim`. Raises KeyError when a quantity that it names was not measured."""
    if claim.not_yet:
        return Judgement(claim, Verdict.NOT_YET, (), (), (), claim.not_yet)
    if claim.held_by:
        return Judgement(claim, Verdict.HELD, (), (), (), claim.held_by)
    values = tuple(
        ValueCheck(item, _spread(claim, measured, item.name), claim.unit if item.unit is None else item.unit)
        for item in claim.value
    )
    labels = {item.name: item.label for item in claim.value}
    orders = tuple(
        OrderCheck(
            item,
            tuple(_spread(claim, measured, name) for name in item.rising),
            tuple(labels.get(name, name) for name in item.rising),
        )
        for item in claim.order
    )
    outside = [item for item in values if not item.holds]
    regions = tuple(RegionCheck.of(item, _spread(claim, measured, item.name)) for item in claim.region)
    outcomes = {item.outcome for item in orders}
    nowhere = any(item.held == 0 for item in regions)
    if Outcome.BROKEN in outcomes or nowhere or (outside and not orders and not regions):
        verdict = Verdict.DIFFERS
    elif any(item.held < item.tried for item in regions):
        verdict = Verdict.DEPENDS
    elif Outcome.NOT_DECIDED in outcomes:
        verdict = Verdict.NOT_DECIDED
    else:
        verdict = Verdict.ORDERING_HOLDS if outside else Verdict.REPRODUCED
    said = _of_orders(orders) + _of_regions(regions) + _of_values(values, outside)
    return Judgement(claim, verdict, values, orders, regions, "; ".join(said))


def _spread(claim: Claim, measured: Mapping[str, Measured], name: str) -> Spread:
    try:
        return Spread.of(measured[name])
    except (KeyError, ValueError):
        raise KeyError(f"{claim.id}: {name} was not measured") from None


SAID = {Outcome.BROKEN: "not so here", Outcome.NOT_DECIDED: "not decided, as ranges overlap"}
"""Words on orders that do not hold, worst first."""


def _of_orders(orders: tuple[OrderCheck, ...]) -> list[str]:
    parts = []
    for outcome, words in SAID.items():
        checks = [check for check in orders if check.outcome is outcome]
        if len(checks) == 1:
            sizes = zip(checks[0].names, map(shown_with_range, checks[0].spreads), strict=True)
            parts.append(f"{words}: {checks[0].order.label} ({', '.join(map(' '.join, sizes))})")
        elif checks:
            # Their numbers are in the table of the claim.
            labels = "; ".join(check.order.label for check in checks)
            parts.append(f"{words}: {labels} ({len(checks)} of {len(orders)})")
    if orders and not parts:
        parts.append("the order holds" if len(orders) == 1 else f"all {len(orders)} orders hold")
    return parts


def _of_regions(regions: tuple[RegionCheck, ...]) -> list[str]:
    return [f"{item.region.label}: {item.said}, by {', '.join(item.region.on)}" for item in regions]


def _of_values(values: tuple[ValueCheck, ...], outside: list[ValueCheck]) -> list[str]:
    parts = []
    if outside:
        worst = max(outside, key=lambda check: abs(check.deviation or math.inf))
        many = f"{len(outside)} of {len(values)} values" if len(values) > 1 else "the value"
        parts.append(f"{many} outside the tolerance, most of all {worst.value.label}: {_off(worst)}")
    elif values:
        worst = max(values, key=lambda check: abs(check.deviation or 0.0))
        if abs(worst.deviation or 0.0) < 1e-9:
            parts.append("equal" if len(values) == 1 else f"all {len(values)} values equal")
        else:
            parts.append(f"largest deviation {percent(worst.deviation)} ({worst.value.label})")
    return parts


def _off(check: ValueCheck) -> str:
    if check.deviation is None or abs(check.deviation) < 1:
        return percent(check.deviation) if check.deviation is not None else f"{shown(check.measured)} for 0"
    return f"{shown(check.measured / check.value.paper)} times the paper's"


def percent(deviation: float | None) -> str:
    """Return a deviation with its sign and two significant digits, whole from 100 % on; 0 for none."""
    points = (deviation or 0.0) * 100
    return f"{points:+.2g} %" if abs(points) < 99.5 else f"{points:+.0f} %"
