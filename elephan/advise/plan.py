"""The work of one advice: how many candidates, paths and packets, so that all of it fits its time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from elephan.advise.draws import middle
from elephan.advise.facts import PathFacts
from elephan.advise.measure import window_of
from elephan.advise.simulation import Horizon, Path, horizon_of, packets_of

PACKETS_PER_S = 6_000_000
"""Packets of a full bottleneck that one core simulates in a second, or more."""
PACKETS = 300_000.0
"""Of a run at most, unless its round trips need more."""
LONGEST_S = 10.0
LEAST_RTTS = 25.0
"""Round trips that a run of a short copy has at least: slow start and some of what comes after it."""
LONG_RTTS = 50.0
"""The same of a long one, of which the second half counts: slow start says nothing of it."""
LONG = 3.0
"""Times of a run that a copy takes at the line's rate at least, if it is long."""
CUBIC_K = 0.75
"""CUBIC is back at its window W, in packets, (0.75 W)^(1/3) s after a loss: (1 - beta) / C (RFC 9438, 4.2); Reno after
W / 2 round trips."""
RUNS = 200
"""Of a full plan."""


@dataclass(frozen=True)
class Plan:
    """Rounds of an advice."""

    horizon: Horizon
    candidates: int = 40
    first_draws: int = 2
    harm_draws: int = 3
    batch: int = 6
    finalists: int = 4
    draws: int = 10


def is_long(takes_s: float, horizon: Horizon) -> bool:
    """Return True if a copy that takes so long at the line's rate is mostly what comes after its start."""
    return takes_s > LONG * horizon.copy_s


def is_start(path: Path, horizon: Horizon, flows: int, window_bytes: float = math.inf) -> bool:
    """Return True if the measured part of a run is shorter than the time from one loss to the next of one of so many
    flows with this window: it says nothing of what comes after their start."""
    held = min(path.bound_bps * path.rtt_s / 8 / max(1, flows), window_bytes) / path.mtu_bytes
    packets = min(held, window_of(path.loss, path.rtt_s))
    cycle_s = min(packets / 2 * path.rtt_s, float((CUBIC_K * packets) ** (1 / 3)))
    return horizon.copy_s - horizon.unmeasured_s < cycle_s


def plan_of(
    facts: PathFacts, bytes_to_copy: float, core_seconds: float, *, most: float = PACKETS, longest_s: float = LONGEST_S
) -> Plan:
    """Return the plan that fits so many seconds of one core."""
    path = middle(facts)
    packets = PACKETS_PER_S * core_seconds
    takes_s = bytes_to_copy * 8 / path.bound_bps
    horizon = horizon_of(path, min(most, packets / RUNS), longest_s, LONG_RTTS)
    if is_long(takes_s, horizon):
        horizon = replace(horizon, unmeasured_s=horizon.copy_s / 2)
    else:
        horizon = horizon_of(path, min(most, packets / RUNS), longest_s, LEAST_RTTS)
        horizon = replace(horizon, copy_s=max(10 * path.rtt_s, min(horizon.copy_s, 1.2 * takes_s)))
    runs = packets / packets_of(path, horizon)
    if runs >= RUNS:
        return Plan(horizon)
    if runs >= RUNS / 2:
        return Plan(horizon, candidates=24, first_draws=1, harm_draws=2, finalists=3, draws=6)
    if runs >= RUNS / 4:
        return Plan(horizon, candidates=14, first_draws=1, harm_draws=1, batch=4, finalists=3, draws=3)
    return Plan(horizon, candidates=8, first_draws=1, harm_draws=1, batch=4, finalists=2, draws=2)
