"""The outcome of a path test in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephan.units import duration, of_quantity, pluralize, size

NAMES = {
    "rtt_s": "round trip",
    "forward_delay_s": "delay there",
    "reverse_delay_s": "delay back",
    "jitter_s": "jitter",
    "loss": "loss",
    "line_loss": "loss by no queue",
    "loss_run_packets": "packets lost together",
    "rtt_min_s": "round trip, least",
    "rtt_mean_s": "round trip, mean",
    "rtt_max_s": "round trip, longest",
    "capacity_bps": "capacity",
    "available_bps": "available",
    "throughput_bps": "throughput",
    "queue_bytes": "queue",
    "queue_delay_s": "queue, as delay",
    "path_mtu_bytes": "MTU of the path",
    "hops": "hops",
    "ttl": "TTL of replies",
    "policer_rate_bps": "policer's rate",
    "policer_burst_bytes": "policer's burst",
}
"""Names of quantities for people."""


def outcome_lines(outcome: Mapping[str, Any]) -> list[str]:
    """Return the lines of an outcome: each quantity with its interval, notes, cost."""
    rows = []
    for estimate in outcome["estimates"]:
        quantity = estimate["quantity"]
        value, low, high = (of_quantity(quantity, estimate[key]) for key in ("value", "low", "high"))
        interval = "" if low == high == value else f"  ({low} to {high})"
        rows.append((NAMES.get(quantity, quantity), value, interval))
    wide, long = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
    lines = [f"{name:<{wide}}  {value:>{long}}{interval}".rstrip() for name, value, interval in rows]
    return [*lines, *outcome["notes"], cost_line(outcome)]


REST_PART = 1.05
"""A rest is named from so many times the test's own time on: starting a test takes time too."""


def cost_line(outcome: Mapping[str, Any]) -> str:
    """Return what a test has cost: `cost.seconds` has the rest in which its share of the line carries its bytes."""
    cost, took_s = outcome["cost"], outcome.get("took_s")
    sent = f"cost: {pluralize(cost['packets'], 'packet')}, {size(cost['bytes'])}"
    if took_s is None:
        return f"{sent}; as much as its share of the line carries in {duration(cost['seconds'])}"
    if cost["seconds"] <= REST_PART * took_s:
        return f"{sent}, took {duration(took_s)}"
    return f"{sent}, took {duration(took_s)}; as much as its share of the line carries in {duration(cost['seconds'])}"


def truth_line(truth: Mapping[str, Any]) -> str:
    """Return the line of a simulated path's truth."""
    known = [name for name in ("capacity_bps", "available_bps", "queue_bytes") if truth.get(name) is not None]
    return "truth: " + ", ".join(f"{NAMES[name]} {of_quantity(name, truth[name])}" for name in known)


def sample_line(sample: Mapping[str, Any]) -> str:
    """Return one packet's line."""
    number = f"packet {sample['sequence']}"
    if sample["rtt_ns"] is None:
        return f"{number}: lost"
    forward, reverse = (duration(sample[key] / 1e9) for key in ("forward_ns", "reverse_ns"))
    order = " out of order" if sample["is_reordered"] else ""
    ttl = "" if sample["ttl"] is None else f", TTL {sample['ttl']}"
    return f"{number}: {duration(sample['rtt_ns'] / 1e9)} ({forward} there, {reverse} back){ttl}{order}"
