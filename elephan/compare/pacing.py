"""Pacing that a comparison adds below a policer: a bound for each flow by the rate that it offers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elephan.compare.selection import Choice
from elephan.run_spec.route import header_bytes, policers_of
from elephan.units import rate

PACED_CC = "cubic"
"""The congestion control that is paced below a policer too: the default of Linux, which its drops slow down most."""
BELOW_POLICER, MOST_OF_POLICER = 0.97, 0.99
"""Paced rate of all connections together, of the policer's; the second where the loads need more than the first."""
HEADROOM = 1.05
"""Bound of a connection, of the rate that it offers: at utilization 1 / 1.05 a queue of random arrivals holds ten
writes (M/D/1: half of 1 / (1 - utilization)), and a backlog of the start or of an outage shrinks."""
LEAST_BULK = 0.1
"""Part of an equal share that a connection without a rate of its own has at least."""
LONGEST_PERIOD_NS = 3600 * 10**9
"""Longest period, ns, over which a backlog of bursts may last: hours of the day count as their rate while active."""


@dataclass(frozen=True)
class Load:
    """Offered load of a connection, bit/s of payload."""

    mean_bps: float
    """Over whole periods; a bound below it lets the backlog grow."""
    active_bps: float
    """While active; infinite without a rate of its own."""


def paced(choices: Sequence[Choice], spec: Mapping[str, Any]) -> list[Choice]:
    """Return the choices that pacing adds: below a policer that all flows of a run pass, none where there is no such.

    What exceeds a policer is dropped whatever the congestion control does, and whatever the flows carry; a sender that
    stays below it loses nothing.
    """
    base = next((choice for choice in choices if choice.label == PACED_CC), None)
    flows = spec["flows"]
    if base is None or any("udt" in flow["transport"] or "max_pacing_bps" in flow["transport"] for flow in flows):
        return []
    if any(flow["workload"]["kind"] == "program" for flow in flows):
        # A real program opens its own sockets.
        return []
    shared = set(flows[0]["route"]).intersection(*(flow["route"] for flow in flows))
    rates = [policer["rate_bps"] for policer in policers_of(spec, shared)]
    if not rates:
        return []
    largest = max((flow["transport"] for flow in flows), key=lambda transport: transport["mtu_bytes"])
    mtu = largest["mtu_bytes"]
    passes = min(rates) * (mtu - header_bytes(largest)) / mtu
    loads = [load_of(flow, flows) for flow in flows]
    needed = HEADROOM * math.fsum(load.mean_bps for load in loads)
    bounds = shares(min(max(needed, BELOW_POLICER * passes), MOST_OF_POLICER * passes), loads)
    # The connections of a flow offer the same.
    each = {flow["group"]: int(bound) for flow, bound in zip(flows, bounds, strict=True)}
    by_flow = tuple(each[group] for group in sorted(each))
    return [replace(base, label=f"{base.label}, paced at {_listed(by_flow)}", max_pacing_bps=by_flow)]


def _listed(bounds_bps: Sequence[int]) -> str:
    """Return the bounds in words: one that all have, two, or their range."""
    shown = list(dict.fromkeys(rate(bound) for bound in bounds_bps))
    if len(shown) > 2:
        shown = [rate(min(bounds_bps)), rate(max(bounds_bps))]
        return " to ".join(shown)
    return " and ".join(shown)


def load_of(flow: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]) -> Load:
    """Return the offered load of a connection of a run."""
    workload = flow["workload"]
    source = workload.get("writes") or workload
    own = source.get("rate_bps")
    if own is None:
        return Load(0.0, math.inf)
    own = float(own)
    if source.get("header_bytes"):
        own *= 1 + source["header_bytes"] / _mean_bytes(source["sizes"])
    if flow.get("distribution", "each") == "striped":
        own /= sum(other["group"] == flow["group"] for other in flows)
    mean = active = own
    if source.get("arrivals", {}).get("process") == "on_off":
        # Its rate is the mean over both.
        arrivals = source["arrivals"]
        active *= (arrivals["on_ns"] + arrivals["off_ns"]) / max(arrivals["on_ns"], 1)
    periods = source.get("active")
    if periods is not None and periods["on_ns"] + periods["off_ns"] <= LONGEST_PERIOD_NS:
        mean *= periods["on_ns"] / (periods["on_ns"] + periods["off_ns"])
    return Load(mean, active)


def _mean_bytes(sizes: Mapping[str, Any]) -> float:
    """Return the mean of a distribution of sizes."""
    if sizes["kind"] == "fixed":
        return float(sizes["bytes"])
    if sizes["kind"] == "mix":
        of_weight = math.fsum(size * weight for size, weight in sizes["sizes"])
        return float(of_weight / sum(weight for _, weight in sizes["sizes"]))
    if sizes["kind"] == "lognormal":
        return float(sizes["median_bytes"]) * math.exp((sizes["sigma_e3"] / 1000) ** 2 / 2)
    # Bounded Pareto (Johnson et al., Continuous Univariate Distributions, 20.12.2): the mean by its density.
    low, high, shape = float(sizes["min_bytes"]), float(sizes["max_bytes"]), sizes["shape_e3"] / 1000
    if low == high:
        return low
    weight = shape * low**shape / (1 - (low / high) ** shape)
    if shape == 1:
        return float(weight * math.log(high / low))
    return float(weight * (low ** (1 - shape) - high ** (1 - shape)) / (shape - 1))


def shares(total_bps: float, loads: Sequence[Load]) -> list[float]:
    """Return the bounds of connections that share a total: each its mean load with headroom, the rest by max-min
    fairness up to the rate while active with headroom, and what is left then to all."""
    means = [load.mean_bps if load.active_bps < math.inf else LEAST_BULK * total_bps / len(loads) for load in loads]
    wanted = math.fsum(means)
    if wanted > total_bps:
        # More than passes: some backlog grows whatever the bounds are.
        demands = [load.mean_bps if load.active_bps < math.inf else math.inf for load in loads]
        return _max_min(total_bps, [0.0] * len(loads), demands)
    headroom = min(HEADROOM, total_bps / wanted)
    least = [headroom * mean for mean in means]
    most = [max(low, HEADROOM * load.active_bps) for low, load in zip(least, loads, strict=True)]
    if math.fsum(most) > total_bps:
        return _max_min(total_bps, least, most)
    return _max_min(total_bps, most, [math.inf] * len(loads))


def _max_min(total_bps: float, least: Sequence[float], most: Sequence[float]) -> list[float]:
    """Return the max-min fair shares of a total between the bounds of each: one level for all whose bounds hold it."""

    def at(level: float) -> list[float]:
        return [min(max(level, low), high) for low, high in zip(least, most, strict=True)]

    low, high = 0.0, total_bps
    # Halved 64 times, an interval of 2^53 bit/s is below one.
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if math.fsum(at(middle)) <= total_bps else (low, middle)
    return at(low)
