"""Stream counts that a comparison tries, where one stream cannot fill the path: its window, or the line's losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from elephan import units
from elephan.compare.loss_window import mean_window
from elephan.compare.run_metrics import Measured, bounds
from elephan.compare.selection import Choice
from elephan.report.chance import loss_per_packet
from elephan.report.statistics import estimate
from elephan.run_spec.route import header_bytes, passing_bps, round_trip_ns

COUNTS = (2, 4, 8)
"""Stream counts that are tried beside the one of the scenario: eight lose little to a further doubling, and harm others
by as much."""
STREAMS_CC = "cubic"
"""The congestion control that is compared with several streams: the default of Linux, Windows and macOS (RFC 9438)."""
LIMITED = 0.8
"""Share of what passes below which one stream counts as limited by its window or by the line's losses."""
GAIN = 1.05
"""Goodput of several streams, in times that of one, from which it counts as gained."""


def streamed(choices: Sequence[Choice], spec: Mapping[str, Any], *, is_count_set: bool) -> list[Choice]:
    """Return the choices that stream counts add: none where the scenario sets a count (`is_count_set`), has more than
    one flow or another workload than a bulk transfer or a copy, or where one stream is limited by neither window nor
    losses.
    """
    base = next((choice for choice in choices if choice.label == STREAMS_CC), None)
    flows = spec["flows"]
    if base is None or is_count_set or len(flows) != 1 or "udt" in flows[0]["transport"]:
        return []
    if flows[0]["workload"]["kind"] not in ("bulk", "copy") or "max_pacing_bps" in flows[0]["transport"]:
        return []
    if one_stream_bps(spec, flows[0]) >= LIMITED * passing_bps(spec, flows[0]["route"]):
        return []
    return [replace(base, label=f"{base.label}, {units.pluralize(n, 'stream')}", streams=n) for n in COUNTS]


def one_stream_bps(spec: Mapping[str, Any], flow: Mapping[str, Any]) -> float:
    """Return the rate of packets, bit/s, that one stream's window and the losses of its route's lines allow."""
    transport = flow["transport"]
    rtt_s, packet_bytes = max(round_trip_ns(spec, flow), 1) / 1e9, int(transport["mtu_bytes"])
    payload_bytes = packet_bytes - header_bytes(transport)
    limits = [transport["window_bytes"], transport.get("send_buffer_bytes")]
    packets = min(float(limit) / payload_bytes for limit in limits if limit is not None)
    if transport["cwnd_clamp"] is not None:
        packets = min(packets, float(transport["cwnd_clamp"]))
    kept = 1.0
    for hop in flow["route"]:
        kept *= 1.0 - loss_per_packet(spec["links"][hop]["loss"], packet_bytes)
    if (lost := 1.0 - kept) > 0:
        packets = min(packets, mean_window(lost, rtt_s))
    return packets * 8 * packet_bytes / rtt_s


def gain(item: Measured, one: Measured) -> str:
    """Return the phrase on the goodput of several streams beside that of one; "" where it is not certain."""
    pairs = list(zip(item.runs, one.runs, strict=True))
    if any(not other.goodput_bps for _, other in pairs):
        return ""
    found = estimate([run.goodput_bps / other.goodput_bps for run, other in pairs])
    if found is None:
        return ""
    low, high = (found.mean, found.mean) if item.exact else bounds(found)
    if low >= GAIN:
        return f"{units.digits(found.mean)} times the goodput of one stream"
    return "gains nothing over one stream" if high < GAIN else ""
