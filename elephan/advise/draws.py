"""Paths that are in keeping with the facts: the middle one first, then drawn from the facts' ranges."""

from __future__ import annotations

import random
from dataclasses import replace

from elephan.advise.facts import PathFacts
from elephan.advise.simulation import Path

LOW, HIGH = 0.025, 0.975
"""Quantiles that the ends of a range are."""
BURST_MAX = 64.0
LEAST_LOSS = 1e-9
"""Losses of a line are rarer by chance: a bit error rate of 1e-13 (IEEE 802.3ae: 1e-12 at most) in 1500 bytes."""
POISSON_HIGH = 3.7
"""Events at the high end of the 95 % interval of a count of none."""


def middle(facts: PathFacts) -> Path:
    """Return the path by the facts' values."""
    return _path(facts, {name: float(getattr(facts, name) or 0.0) for name in _NAMES}, round(facts.competing_flows))


def has_others(facts: PathFacts) -> bool:
    """Return True if other traffic was seen on the path."""
    return facts.competing_flows > 0 or facts.competing_bps > 0


def drawn(facts: PathFacts, count: int, seed: int) -> list[Path]:
    """Return `count` paths: the middle, then one from each of as many even parts of every range, in an order of chance
    (Latin hypercube: McKay, Beckman and Conover 1979).
    """
    chance = random.Random(f"advise/{seed}")
    columns = {}
    for name in (*_NAMES, "competing_flows"):
        parts = [(place + chance.random()) / max(1, count - 1) for place in range(count - 1)]
        chance.shuffle(parts)
        columns[name] = [_at(facts, name, part) for part in parts]
    paths = [middle(facts)]
    are_others = has_others(facts)
    for place in range(count - 1):
        values = {name: columns[name][place] for name in _NAMES}
        path = _path(facts, values, round(columns["competing_flows"][place]))
        # No test tells whether the others pass the same policer: they do on every second path. One that no others
        # were seen at is the bound of the copy's own contract.
        is_shared = path.policer_rate_bps is not None and are_others and place % 2 == 0
        paths.append(replace(path, policer_is_shared=is_shared))
    return paths


_NAMES = ("rate_bps", "loss", "loss_burst", "queue_bytes", "policer_rate_bps", "policer_burst_bytes", "competing_bps")


def _at(facts: PathFacts, name: str, part: float) -> float:
    """Return a fact's value at a quantile: straight between low, value and high."""
    value = float(getattr(facts, name) or 0.0)
    if name not in facts.ranges:
        return value
    low, high = facts.ranges[name]
    if name == "loss" and value == 0:
        # No loss was seen: none at all, as likely as a rate of any order below the one that so many packets show.
        return 0.0 if part < 0.5 else LEAST_LOSS * max(1.0, high / POISSON_HIGH / LEAST_LOSS) ** (2 * part - 1)
    if part < 0.5:
        return value + (low - value) * min(1.0, (0.5 - part) / (0.5 - LOW))
    return value + (high - value) * min(1.0, (part - 0.5) / (HIGH - 0.5))


def _path(facts: PathFacts, values: dict[str, float], flows: int) -> Path:
    return Path(
        rate_bps=values["rate_bps"],
        rtt_s=facts.rtt_s,
        loss=min(0.5, max(0.0, values["loss"])),
        loss_burst=min(BURST_MAX, max(1.0, values["loss_burst"])),
        queue_bytes=values["queue_bytes"],
        policer_rate_bps=values["policer_rate_bps"] if facts.policer_rate_bps else None,
        policer_burst_bytes=values["policer_burst_bytes"] if facts.policer_rate_bps else None,
        competitors=("cubic",) * max(0, flows),
        # Others that are no long flows do not give way.
        background_bps=values["competing_bps"] if facts.competing_flows == 0 else 0.0,
        mtu_bytes=facts.mtu_bytes,
    )
