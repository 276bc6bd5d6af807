"""Hold what was measured against what a paper claims.

**Invariant: a verdict follows from the claim's data and the measured numbers alone.** From strong to weak:

- reproduced: every value is within its tolerance and every order holds;
- ordering holds: every order holds, some value is outside;
- differs: an order is violated; or a value is outside and the claim states no order.

Two more are for claims that no run measures: "held by tests", a statement without numbers that tests of the core hold;
and "not yet", for which there is nothing so far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from elephan.papers.claims import Claim, Order, Value


class Verdict(Enum):
    """See the module's text."""

    REPRODUCED = "reproduced"
    ORDERING_HOLDS = "ordering holds"
    DIFFERS = "differs"
    HELD = "held by tests"
    NOT_YET = "not yet"


@dataclass(frozen=True)
class ValueCheck:
    """A number of the paper beside ours."""

    value: Value
    measured: float
    unit: str

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
    measured: tuple[float, ...]
    names: tuple[str, ...]
    """Labels of the quantities."""

    @property
    def holds(self) -> bool:
        """True if ours grow as the paper's do."""
        return self.order.holds(self.measured)


@dataclass(frozen=True)
class Judgement:
    """A claim, what was measured for it, and the verdict."""

    claim: Claim
    verdict: Verdict
    values: tuple[ValueCheck, ...]
    orders: tuple[OrderCheck, ...]
    because: str
    """The verdict's reason in words, from the numbers."""


def judge(claim: Claim, measured: Mapping[str, float]) -> Judgement:
    """Return the verdict on `claim`. Raises KeyError when a quantity that it names was not measured."""
    if claim.not_yet:
        return Judgement(claim, Verdict.NOT_YET, (), (), claim.not_yet)
    if claim.held_by:
        return Judgement(claim, Verdict.HELD, (), (), claim.held_by)
    values = tuple(
        ValueCheck(item, _number(claim, measured, item.name), claim.unit if item.unit is None else item.unit)
        for item in claim.value
    )
    labels = {item.name: item.label for item in claim.value}
    orders = tuple(
        OrderCheck(
            item,
            tuple(_number(claim, measured, name) for name in item.rising),
            tuple(labels.get(name, name) for name in item.rising),
        )
        for item in claim.order
    )
    outside = [item for item in values if not item.holds]
    broken = [item for item in orders if not item.holds]
    if not outside and not broken:
        verdict = Verdict.REPRODUCED
    elif not broken and orders:
        verdict = Verdict.ORDERING_HOLDS
    else:
        verdict = Verdict.DIFFERS
    return Judgement(claim, verdict, values, orders, _because(values, outside, orders, broken))


def _number(claim: Claim, measured: Mapping[str, float], name: str) -> float:
    value = measured.get(name)
    if value is None or not math.isfinite(value):
        raise KeyError(f"{claim.id}: {name} was not measured")
    return float(value)


def _because(
    values: tuple[ValueCheck, ...], outside: list[ValueCheck], orders: tuple[OrderCheck, ...], broken: list[OrderCheck]
) -> str:
    parts = []
    if broken:
        for check in broken:
            numbers = ", ".join(
                f"{name} {shown(value)}" for name, value in zip(check.names, check.measured, strict=True)
            )
            parts.append(f"not so here: {check.order.label} ({numbers})")
    elif orders:
        parts.append("the order holds" if len(orders) == 1 else f"all {len(orders)} orders hold")
    if outside:
        worst = max(outside, key=lambda check: abs(check.deviation or math.inf))
        many = f"{len(outside)} of {len(values)} values" if len(values) > 1 else "the value"
        parts.append(f"{many} outside the tolerance, most of all {worst.value.label}: {_off(worst)}")
    elif values:
        worst = max(values, key=lambda check: abs(check.deviation or 0.0))
        if abs(worst.deviation or 0.0) < 1e-9:
            parts.append("equal" if len(values) == 1 else f"all {len(values)} values equal")
        else:
            parts.append(f"largest deviation {_percent(worst.deviation)} ({worst.value.label})")
    return "; ".join(parts)


def _off(check: ValueCheck) -> str:
    if check.deviation is None or abs(check.deviation) < 1:
        return _percent(check.deviation) if check.deviation is not None else f"{shown(check.measured)} for 0"
    return f"{shown(check.measured / check.value.paper)} times the paper's"


def _percent(deviation: float | None) -> str:
    return f"{(deviation or 0.0) * 100:+.2g} %"


def shown(value: float) -> str:
    """Return a measured number with at most four significant digits and no exponent where that can be had."""
    if value == 0 or float(value).is_integer() and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.4g}" if 1e-3 <= abs(value) < 1e6 else f"{value:.3g}"
