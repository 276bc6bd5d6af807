"""Properties of hosts and path as they were found, for the record and its notes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from elephan import units
from elephan.backends.hosts.layout import Layout
from elephan.hosts.facts import Facts

CLOCK_OFF_S = 60.0
"""Offset of a host's time of day that is worth a note, s. No measurement takes part of its accuracy from it."""

RTT_OFF = 0.1
"""Part by which a path's round-trip time may differ from the scenario's without a note."""

RTT_OFF_S = 0.001
"""The same in s, for short paths."""


def notes_of(
    left: Facts, right: Facts, layout: Layout | None = None, sent: Mapping[str, Any] | None = None
) -> list[str]:
    """Return notes on clocks, and on what of the path is not as the scenario expects it."""
    notes = []
    for facts in (left, right):
        if abs(facts.clock_offset_s) > CLOCK_OFF_S:
            way = "ahead of" if facts.clock_offset_s > 0 else "behind"
            notes.append(
                f"{facts.name}: its time of day is {units.duration(abs(facts.clock_offset_s))} {way} this machine's; "
                "the run does not use it, its logs do"
            )
    if layout is None or sent is None:
        return notes
    own = ipaddress.ip_address(left.address).version
    if own != layout.ip_version:
        notes.append(f"the hosts' addresses are of IPv{own}, and the scenario has ip_version = {layout.ip_version}")
    path = sent.get("path", {})
    rtt_s, expected_s = path.get("rtt_min_s"), layout.expected_rtt_ns / 1e9
    if rtt_s is not None and abs(rtt_s - expected_s) > max(RTT_OFF * expected_s, RTT_OFF_S):
        notes.append(
            f"the path's round-trip time is {units.duration(rtt_s)}, and the scenario expects "
            f"{units.duration(expected_s)}: path.rtt is what the window and the simulator take"
        )
    mtu = path.get("path_mtu_bytes")
    if mtu is not None and mtu != layout.expected_mtu_bytes:
        notes.append(f"the path's MTU is {mtu} B, and the scenario expects {layout.expected_mtu_bytes} B")
    return [*notes, *path.get("notes", [])]


def changed_notes(host: str, answer: Mapping[str, Any]) -> list[str]:
    """Return notes on sysctls that a run relied on, and that somebody else changed in its time."""
    changed = answer.get("sysctls_changed", {})
    return [f"{host}: somebody set {name} to {value} during the run" for name, value in changed.items()]


def metrics_of(layout: Layout, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics of the path itself."""
    path = sent.get("path", {})
    return {"path_rtt_s": path.get("rtt_min_s"), "path_mtu_bytes": path.get("path_mtu_bytes")}


def facts_of_record(left: Facts, right: Facts, sent: Mapping[str, Any], received: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record says of both hosts, and of what their kernels gave the connections."""
    return {
        "left": _host(left),
        "right": _host(right),
        "sender_ends": sent["ends"],
        "receiver_ends": received["ends"],
        **({"probes": sent["probes"]} if "probes" in sent else {}),
        "clock": {name: value for name, value in sent.get("path", {}).items() if name.startswith("clock_")},
    }


def _host(facts: Facts) -> dict[str, Any]:
    told = facts.told
    names = ("kernel", "machine", "cores", "memory_bytes", "limits")
    return {"name": facts.name, "address": facts.address} | {name: told[name] for name in names if name in told}
