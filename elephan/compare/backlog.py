"""Backlogs that grow without bound: a flow that offers more than it can send never catches up, however long it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elephan import units
from elephan.compare.pacing import load_of
from elephan.record import Record

BEHIND = 0.01
"""Part of its offered data that a flow has not delivered at the run's end, from which on its drain is judged."""
RTO_MIN_S = 0.2
"""Time that a lost last packet may add to a drain: Linux TCP_RTO_MIN."""


def growing(records: Sequence[Record]) -> str | None:
    """Return the flow whose backlog grows in most of the repetitions, in words; None if there is none."""
    texts = [text for record in records if (text := _of_run(record)) is not None]
    return f"backlog grows: {texts[0]}" if 2 * len(texts) > len(records) else None


def _of_run(record: Record) -> str | None:
    flows = record.spec["flows"]
    for spec in flows:
        load_bps, pace_bps = load_of(spec, flows).mean_bps, spec["transport"].get("max_pacing_bps")
        if pace_bps is not None and load_bps > pace_bps:
            return f"flow {spec['name']} offers {units.rate(load_bps)}, its pacing rate is {units.rate(pace_bps)}"
    if record.spec["events"] or record.spec["measure"]["warmup_ns"]:
        # The drain tells the rate of the run only if the path stays the same, and the counters are of the whole run.
        return None
    for spec, flow in zip(flows, record.flows, strict=True):
        load_bps = load_of(spec, flows).mean_bps
        drain_bps = _drain_bps(flow, load_bps)
        if drain_bps is not None:
            return f"flow {spec['name']} offers {units.rate(load_bps)}, its backlog drains at {units.rate(drain_bps)}"
    return None


def _drain_bps(flow: Mapping[str, Any], load_bps: float) -> float | None:
    """Return the rate at which a flow sent its backlog after the run's end, if it is below its mean load."""
    offered, drain_s = flow.get("offered_bytes"), flow.get("drain_s")
    if not offered or not load_bps or drain_s is None:
        return None
    backlog_bits = 8 * (offered - flow["delivered_bytes"])
    slack_s = 2 * (flow.get("rtt_mean_s") or 0.0) + RTO_MIN_S
    if backlog_bits < 8 * BEHIND * offered or drain_s - slack_s <= backlog_bits / load_bps:
        return None
    return float(backlog_bits / drain_s)
