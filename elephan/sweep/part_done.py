"""The part of a simulated run that is done at a moment of its virtual time.

A run of `duration` alone is done in proportion to that time. One that ends with its copies is done in proportion to
their bytes: its duration is no more than a bound, often far off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from elephan.run_spec.types import FlowSpec, RunSpec
from elephan.scenario.copy import mean_sent_bytes


def ends_with_its_copies(spec: RunSpec) -> bool:
    """Return True if the end of the run follows from delivered bytes, at least in part."""
    return _ends_early(spec) and any(_bytes(flow) is not None for flow in spec["flows"])


def part_done(spec: RunSpec, now_ns: int, flows: Sequence[Mapping[str, Any]] = ()) -> float | None:
    """Return the part of a run that is done, above 0 up to 1; None where nothing tells it.

    `now_ns` is the virtual time. `flows` are the metrics of the connections at that time, which a run needs that
    `ends_with_its_copies`.
    """
    by_time = _up_to(now_ns, spec["duration_ns"])
    if not _ends_early(spec):
        return by_time or None
    parts = [_up_to(now_ns, entry["stop_ns"] or spec["duration_ns"]) for entry in spec.get("short_flows", ())]
    for of_workload in _workloads(spec["flows"]):
        flow = spec["flows"][of_workload[0]]
        volume = _bytes(flow)
        if volume is None and flow["stop_ns"] is None:
            # Its trace or its requests end some time before the duration, or not.
            return None
        delivered = _sum("delivered_bytes", [flows[index] for index in of_workload] if flows else ())
        stopped = 0.0 if flow["stop_ns"] is None else _up_to(now_ns, flow["stop_ns"])
        parts.append(max(stopped, 0.0 if volume is None else _up_to(delivered, volume)))
    done = min(parts, default=by_time)
    extrapolate = spec.get("extrapolate")
    if extrapolate is not None:
        # So many packets are simulated at most, whatever the copy's length.
        done = max(done, _up_to(_sum("delivered_packets", flows), extrapolate["most_packets"]))
    return max(by_time, done) if done else None


def cut_off(spec: RunSpec, at_ns: int) -> RunSpec:
    """Return the same run up to a moment: its record has the metrics of that moment."""
    measure = spec["measure"]
    cut: RunSpec = {
        **spec,
        "duration_ns": at_ns,
        "measure": {**measure, "pcap": None, "series_interval_ns": None, "warmup_ns": min(measure["warmup_ns"], at_ns)},
    }
    cut.pop("extrapolate", None)
    return cut


def _up_to(now: int, end: int) -> float:
    return min(1.0, now / max(end, 1))


def _ends_early(spec: RunSpec) -> bool:
    """Return True if the run may end before its duration: when all is delivered."""
    return spec["stop_when_done"] and not any(_is_endless(flow) for flow in spec["flows"])


def _is_endless(flow: FlowSpec) -> bool:
    """Return True if a flow sends until the end of the run."""
    if flow["stop_ns"] is not None:
        return False
    workload = flow["workload"]
    match workload["kind"]:
        case "constant_rate" | "fc":
            return True
        case "bulk" | "program":
            return workload["bytes"] is None
        case "copy":
            return False
        case "replicate":
            trace = workload.get("trace")
            return trace is None or trace["looped"]
    source = workload["source"]
    match source["kind"]:
        case "mix":
            return source["requests"] is None
        case "postmark":
            return source["transactions"] is None
    return source["trace"]["looped"]


def _bytes(flow: FlowSpec) -> int | None:
    """Return the bytes of a copy, None for another workload."""
    workload = flow["workload"]
    if workload["kind"] == "copy":
        return mean_sent_bytes(workload) * workload["jobs"]
    return workload["bytes"] if workload["kind"] == "bulk" or workload["kind"] == "program" else None


def _sum(metric: str, flows: Sequence[Mapping[str, Any]]) -> int:
    return sum(int(flow.get(metric) or 0) for flow in flows)


def _workloads(flows: Sequence[FlowSpec]) -> list[list[int]]:
    """Return the connections, by index, of each workload: one, or those of a flow that share it."""
    found: list[list[int]] = []
    for _, members in groupby(range(len(flows)), lambda index: flows[index]["group"]):
        together = list(members)
        first = flows[together[0]]
        workload = first["workload"]
        # The connections of a flow have a program each, but for the streams of one.
        shared = first.get("distribution") == "striped" and (
            workload["kind"] != "program" or workload.get("streams", 1) > 1
        )
        found += [together] if shared else [[index] for index in together]
    return found
