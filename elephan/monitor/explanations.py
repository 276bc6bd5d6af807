"""A monitor's quantities and alerts in words."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from elephan import units

NAMES = {
    "rtt_s": "RTT",
    "forward_delay_s": "delay to the far end",
    "reverse_delay_s": "delay from the far end",
    "jitter_s": "jitter",
    "loss": "loss",
    "capacity_bps": "capacity",
    "available_bps": "available bandwidth",
    "throughput_bps": "throughput",
    "queue_bytes": "queue",
    "queue_delay_s": "queueing delay",
    "path_mtu_bytes": "path MTU",
    "hops": "hops",
    "ttl": "TTL",
    "policer_rate_bps": "policer's rate",
    "policer_burst_bytes": "policer's burst",
}


def name_of(quantity: str) -> str:
    """Return a quantity's name."""
    return NAMES.get(quantity, quantity)


def value_text(quantity: str, value: float | None) -> str:
    """Return a value with its unit."""
    return units.of_quantity(quantity, value, otherwise=units.plain)


def moment(at_s: float) -> str:
    """Return a time as people of this machine read it."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at_s))


def alert_text(path: str, quantity: str, kind: str, evidence: Mapping[str, Any]) -> str:
    """Return an alert in one line."""
    if kind == "silent":
        return f"{path}: no answer"
    before, after = evidence.get("before"), evidence.get("after")
    if kind == "agreed_missed" and before is not None:
        return f"{path}: {name_of(quantity)} {value_text(quantity, after)}; agreed: {value_text(quantity, before)}"
    was = "" if before is None else f" instead of {value_text(quantity, before)}"
    return f"{path}: {name_of(quantity)} {value_text(quantity, after)}{was}"


def alert_body(alert: Mapping[str, Any]) -> str:
    """Return an alert for a message: what, since when, the evidence, the likely cause, what it does to transfers."""
    evidence = alert["evidence"]
    lines = [alert["text"], f"since {moment(alert['since'])}"]
    told = []
    if evidence.get("samples") is not None:
        told.append(units.pluralize(int(evidence["samples"]), "sample"))
    if evidence.get("confidence") is not None:
        told.append(f"confidence {units.share(evidence['confidence'])}")
    for quantity, change in evidence.get("with", {}).items():
        told.append(f"{name_of(quantity)} {value_text(quantity, change.get('before'))} -> "
                    f"{value_text(quantity, change.get('after'))}")  # fmt: skip
    if told:
        lines.append(f"evidence: {'; '.join(told)}")
    if alert.get("cause"):
        lines.append(f"likely cause: {alert['cause'].replace('_', ' ')}")
    lines += [str(reason) for reason in evidence.get("reasons", [])]
    lines += [str(one["text"]) for one in alert.get("forecast", [])]
    return "\n".join(lines)


def recovery_text(
    path: str, quantity: str, kind: str, value: float | None, lasted_s: float, end: str = "recovered"
) -> str:
    """Return the end of an alert in one line."""
    if kind == "silent":
        return f"{path}: answers again after {units.duration(lasted_s)}"
    now = "" if value is None else f" {value_text(quantity, value)}"
    if end == "new_benchmark":
        return f"{path}: {name_of(quantity)}{now} counts as usual from now on, after {units.duration(lasted_s)}"
    return f"{path}: {name_of(quantity)}{now} as usual again after {units.duration(lasted_s)}"
