"""Limits that a scenario sets itself, found in records: nothing delivered, too short, a small window, too much load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan import units
from elephan.record import Record
from elephan.run_spec.route import header_bytes, round_trip_ns

SHORT_ROUND_TRIPS = 10
"""Round trips below which a run is mostly slow start: ten double the initial window of 10 segments to 10,240."""

BELOW_LINE = 0.98
"""Part of the line's rate, below which a window is reported to limit a flow: above it the difference is headers."""

LARGEST_WINDOW = 65_535 << 14
"""Largest window that TCP can express, bytes (RFC 7323, 2.3)."""

FILLED = 0.7
"""Part of a window per round trip, below which a flow that lost packets is limited by these: its start takes a part of
a short run, and a kernel offers less than its buffer holds."""

MISSING = 0.01
"""Part of the frames of a flow that never arrived, from which on the 99th percentile of those that did says nothing of
all."""

CHANGES = frozenset({"rate", "delay", "move", "link_down"})
"""Events after which a flow's rate and round trip are others than its route says."""


@dataclass(frozen=True)
class Entry:
    """A flow entry of a record's specification with its connections."""

    name: str
    specs: Sequence[Mapping[str, Any]]
    flows: Sequence[Mapping[str, Any]]
    rate_bps: int
    """Rate of the slowest link of its route."""
    framing_bytes: int
    """Bytes that that link adds to a full packet."""
    rtt_s: float
    """Propagation delay there and back, s."""

    @property
    def window_bps(self) -> float:
        """Limit by its windows or send buffers together per round trip, bit/s of payload."""
        return sum(8.0 * window_bytes(spec) for spec in self.specs) / self.rtt_s

    @property
    def payload_bps(self) -> float:
        """Payload rate of the line in full packets, bit/s."""
        tcp = self.specs[0]["transport"]
        mtu = int(tcp["mtu_bytes"])
        return self.rate_bps * (mtu - header_bytes(tcp)) / (mtu + self.framing_bytes)

    @property
    def offered_bps(self) -> float | None:
        """The mean rate of its workload, bit/s; None where the workload has no rate of its own."""
        workload = self.specs[0]["workload"]
        source = workload.get("writes") or workload
        rate, active = source.get("rate_bps"), source.get("active")
        if rate is None:
            return None
        part = 1.0 if active is None else active["on_ns"] / (active["on_ns"] + active["off_ns"])
        shared = self.specs[0].get("distribution", "each") == "striped"
        return float(rate) * part * (1 if shared else len(self.specs))


def limits(record: Record) -> list[str]:
    """Return notes on the effects of a run's own settings, rather than the path, on its numbers."""
    found = policers(record)
    if record.extrapolation is not None:
        return found
    changed = any(event["action"]["kind"] in CHANGES for event in record.spec["events"])
    for entry in entries(record):
        found += nothing_delivered(entry)
        found += frames_under_way(entry)
        found += too_short(record, entry)
        if not changed and record.spec.get("manager") is None:
            found += held_by_window(entry)
            found += above_line(entry)
    return found


def policers(record: Record) -> list[str]:
    """Return a note for each policer that dropped packets: the line behind it has room left, and no queue shows it."""
    found = []
    for spec, counted in zip(record.spec["links"], record.links, strict=True):
        policer = spec.get("policer")
        if policer is None or not counted.get("dropped_by_policer"):
            continue
        what = f"{units.rate(policer['rate_bps'])}, burst {units.size(policer['burst_bytes'])}"
        # Without the number, which a table has: runs that differ in it alone share the note.
        found.append(
            f"link {spec['name']}: its policer ({what}) dropped packets; senders paced below its rate "
            "(flow.max_pacing_rate) lose none there"
        )
    return found


def entries(record: Record) -> Iterator[Entry]:
    """Yield the flow entries of a record."""
    links = record.spec["links"]
    groups: dict[int, list[int]] = {}
    for index, spec in enumerate(record.spec["flows"]):
        groups.setdefault(spec["group"], []).append(index)
    for indices in groups.values():
        specs = [record.spec["flows"][index] for index in indices]
        first = specs[0]
        name = re.sub(r"\.\d+$", "", first["name"]) if len(specs) > 1 else first["name"]
        rtt_ns = round_trip_ns(record.spec, first)
        slowest = min((links[index] for index in first["route"]), key=lambda link: int(link["rate_bps"]))
        framing: Mapping[str, Any] = slowest.get("framing") or {}
        added = int(framing.get("header_bytes", 0)) + int(framing.get("gap_bytes", 0))
        flows = [record.flows[index] for index in indices]
        yield Entry(name, specs, flows, int(slowest["rate_bps"]), added, rtt_ns / 1e9)


def nothing_delivered(entry: Entry) -> list[str]:
    """Return a note where not a byte of a flow arrived."""
    counted = [flow.get("delivered_bytes") for flow in entry.flows]
    other = any(flow.get(name) for flow in entry.flows for name in ("reads", "writes", "requests"))
    if other or any(value is None or value > 0 for value in counted):
        return []
    return [f"flow {entry.name}: nothing was delivered within the run"]


def missing_share(flows: Sequence[Mapping[str, Any]]) -> float:
    """Return the part of the Fibre Channel frames of connections that had not arrived when their run ended; 0 of other
    workloads: their runs go on until all has arrived, or have a note of their own."""
    frames = [flow for flow in flows if flow.get("workload") == "fc" and flow.get("messages")]
    sent = sum(flow["messages"] for flow in frames)
    return 1 - sum(flow["fc_frames"] for flow in frames) / sent if sent else 0.0


def frames_under_way(entry: Entry) -> list[str]:
    """Return a note where so many frames had not arrived at the end that percentiles of the others say little."""
    share = missing_share(entry.flows)
    if not MISSING <= share < 1:
        return []
    sent = sum(flow["messages"] for flow in entry.flows)
    part = f"{units.share(share)} of its {units.count(sent)} frames"
    return [f"flow {entry.name}: {part} had not arrived when the run ended: latency is of those that had"]


def too_short(record: Record, entry: Entry) -> list[str]:
    """Return a note where a flow was measured for less than ten round trips, and did not end by itself."""
    if entry.rtt_s <= 0 or any(flow.get("completion_s") is not None for flow in entry.flows):
        return []
    first = entry.specs[0]
    warmup_ns = record.spec["measure"]["warmup_ns"]
    end_ns = min(record.spec["duration_ns"], first["stop_ns"] or record.spec["duration_ns"])
    lasted = (end_ns - max(first["start_ns"], warmup_ns)) / 1e9 / entry.rtt_s
    if not 0 < lasted < SHORT_ROUND_TRIPS:
        return []
    trips = f"{lasted:.1f}".removesuffix(".0")
    return [
        f"flow {entry.name}: measured for {trips} round trips, which is mostly its start; run.duration makes it longer"
    ]


def held_by_window(entry: Entry) -> list[str]:
    """Return a note if a window, or a send buffer, holds a flow below the line and below its load."""
    if entry.rtt_s <= 0:
        return []
    share = entry.window_bps / entry.payload_bps
    wanted = entry.offered_bps
    if share >= BELOW_LINE or (wanted is not None and wanted <= entry.window_bps):
        return []
    if entry.specs[0]["workload"].get("credits") is not None or _stays_below_window(entry):
        return []
    spec = entry.specs[0]
    tcp = spec["transport"]
    buffered = tcp["send_buffer_bytes"] is not None and tcp["send_buffer_bytes"] < tcp["window_bytes"]
    size = units.size(window_bytes(spec))
    each = f"{len(entry.specs)} windows" if len(entry.specs) > 1 else "its window"
    what = each.replace("window", "send buffer") if buffered else each
    why = f"{what} of {size} {'hold' if len(entry.specs) > 1 else 'holds'} it to {units.share(share)} of the line"
    if not buffered and tcp["window_bytes"] >= LARGEST_WINDOW:
        return [f"flow {entry.name}: {why}, and is the largest there is (RFC 7323); more connections carry more"]
    key = "flow.send_buffer" if buffered else "flow.window"
    return [f"flow {entry.name}: {why} ({key})"]


def _stays_below_window(entry: Entry) -> bool:
    """Return True if losses keep a flow without a load of its own below a window per round trip."""
    rates = [flow["goodput_bps"] for flow in entry.flows if flow.get("goodput_bps") is not None]
    lost = any(flow.get("retransmitted_segments") for flow in entry.flows)
    if not lost or entry.offered_bps is not None or len(rates) < len(entry.flows):
        return False
    rtts = [flow["rtt_mean_s"] for flow in entry.flows if flow.get("rtt_mean_s")]
    rtt_s = sum(rtts) / len(rtts) if rtts else entry.rtt_s
    return bool(sum(rates) < FILLED * entry.window_bps * entry.rtt_s / rtt_s)


def above_line(entry: Entry) -> list[str]:
    """Return a note if the offered load is above the line's capacity."""
    wanted = entry.offered_bps
    if wanted is None or wanted <= entry.payload_bps or entry.specs[0]["workload"].get("credits") is not None:
        return []
    load, line = units.rate(wanted), units.rate(entry.payload_bps)
    return [
        f"flow {entry.name}: its load of {load} is above the {line} of payload that the line carries: what waits, and "
        "the latency, grow as long as it lasts"
    ]


def window_bytes(spec: Mapping[str, Any]) -> int:
    """Return the largest window of a connection's specification, or its send buffer if that is smaller, bytes."""
    tcp = spec["transport"]
    return int(min(tcp["window_bytes"], tcp["send_buffer_bytes"] or tcp["window_bytes"]))
