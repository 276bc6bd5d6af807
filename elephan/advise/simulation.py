"""One candidate on a path of known facts, in the simulator: its goodput, and that of reference flows beside it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from elephan import control_process
from elephan.advise.candidate import OPEN_WINDOW_BYTES, Candidate
from elephan.run_spec.defaults import FORMAT, TRANSPORT
from elephan.run_spec.route import PACKET_OVERHEAD_BYTES
from elephan.run_spec.types import BackgroundSpec, FlowSpec, LinkSpec, LossSpec, RunSpec, TransportSpec, WorkloadSpec

if TYPE_CHECKING:
    from elephan._native import RunResult

REFERENCES = ("reno", "cubic")
"""Controls of the flows whose loss of goodput is the harm."""
FASTER = 2.5
"""Rate of the links around the bottleneck, in times of its own."""
QUEUE_PACKETS_MIN = 8
SAMPLES = 100
"""Samples of each flow's delivered data while the copy runs."""
BEFORE_RTTS = 12
"""Round trips that the others have before the copy starts."""


@dataclass(frozen=True)
class Path:
    """A path that is known exactly: facts without ranges."""

    rate_bps: float
    rtt_s: float
    loss: float = 0.0
    loss_burst: float = 1.0
    queue_bytes: float = 0.0
    policer_rate_bps: float | None = None
    policer_burst_bytes: float | None = None
    policer_is_shared: bool = False
    """Others pass the policer too; else it is the copy's own, and they join behind it."""
    competitors: tuple[str, ...] = ()
    """Control of each long flow on the bottleneck."""
    background_bps: float = 0.0
    """Others' traffic that does not give way, bit/s."""
    mtu_bytes: int = 1500

    @property
    def bdp_bytes(self) -> float:
        """Bytes that the empty path holds."""
        return self.rate_bps * self.rtt_s / 8

    @property
    def payload_share(self) -> float:
        """Payload of a full packet, of its bytes."""
        return (self.mtu_bytes - PACKET_OVERHEAD_BYTES) / self.mtu_bytes

    @property
    def bound_bps(self) -> float:
        """Rate that a copy cannot exceed: the bottleneck's, or the policer's."""
        return min(self.rate_bps, self.policer_rate_bps or self.rate_bps)


@dataclass(frozen=True)
class Horizon:
    """Times of a run, s: others alone, then with the copy."""

    before_s: float
    copy_s: float
    unmeasured_s: float = 0.0
    """First part of the copy that does not count: its start, where that is a small part of it."""


@dataclass(frozen=True)
class Outcome:
    """Goodput while the copy ran, bit/s."""

    copy_bps: float
    references_bps: tuple[float, ...] = ()


def horizon_of(path: Path, packets: float, longest_s: float, least_rtts: float) -> Horizon:
    """Return the times of a run of about `packets` on the bottleneck, at most `longest_s`, at least `least_rtts`."""
    copy = max(min(longest_s, packets * path.mtu_bytes * 8 / path.rate_bps), least_rtts * path.rtt_s)
    return Horizon(max(BEFORE_RTTS * path.rtt_s, copy / 4), copy)


def packets_of(path: Path, horizon: Horizon) -> float:
    """Return packets that a full bottleneck carries in a run."""
    return (horizon.before_s + horizon.copy_s) * path.rate_bps / 8 / path.mtu_bytes


def simulated(spec: RunSpec, deadline_s: float | None) -> RunResult:
    """Return the result of a run. Raises `native.Stopped` when `deadline_s` of time.monotonic has passed, also within
    it: how long a run takes depends on the machine and its load.
    """
    if deadline_s is None:
        return control_process.simulate(json.dumps(spec))
    return control_process.simulate(json.dumps(spec), lambda now, end: time.monotonic() > deadline_s)


def simulate(
    path: Path,
    candidate: Candidate | None,
    horizon: Horizon,
    seed: int,
    *,
    with_references: bool,
    deadline_s: float | None = None,
) -> Outcome:
    """Run a candidate (None: nobody copies) beside the path's competitors and, if asked, the reference flows. Raises
    `native.Stopped` as `simulated` does.
    """
    spec = spec_of(path, candidate, horizon, seed, with_references=with_references)
    spec["measure"]["series_interval_ns"] = max(1, round(horizon.copy_s / SAMPLES * 1e9))
    result = simulated(spec, deadline_s)
    mine = 0 if candidate is None else candidate.streams
    # The policer's bucket is left out: it counts at the start of a copy alone, which is not bounded.
    copy_bps = _arrived_bps(spec, result, range(mine), path.bound_bps * path.payload_share) if mine else 0.0
    references = range(mine + len(path.competitors), len(spec["flows"]))
    line_bps = path.rate_bps * path.payload_share
    return Outcome(copy_bps, tuple(_arrived_bps(spec, result, range(one, one + 1), line_bps) for one in references))


def _arrived_bps(spec: RunSpec, result: RunResult, flows: range, bound_bps: float) -> float:
    """Return the rate at which payload of these flows arrived in the measured part, bit/s.

    Goodput counts data when it is delivered in order. Data that waits in the receiver for a retransmission when the
    measured part begins would be delivered in it all at once: at 10 Gbit/s and 85 ms up to 200 MB, 6 % of 2 s more than
    the line carries. Of the data delivered by any later time, the path has carried at most `bound_bps` since the begin,
    so the rest arrived before.
    """
    end_s = spec["duration_ns"] / 1e9
    first_s = min(spec["flows"][one]["start_ns"] for one in flows) / 1e9
    begin_s = max(first_s, spec["measure"]["warmup_ns"] / 1e9)
    all_bits = 8 * sum(int(cast(int, result.flows[one]["delivered_bytes"])) for one in flows)
    if begin_s == first_s:
        return all_bits / (end_s - begin_s)
    goodput_bps = sum(float(cast(float, result.flows[one]["goodput_bps"])) for one in flows)
    before_bits = all_bits - goodput_bps * (end_s - begin_s)
    series, interval_s = result.flow_series, (spec["measure"]["series_interval_ns"] or 0) / 1e9
    bits_at: dict[float, float] = {}
    for time_s, flow, rate_bps in zip(series["time_s"], series["flow"], series["goodput_bps"], strict=True):
        if int(flow) in flows:
            bits_at[float(time_s)] = bits_at.get(float(time_s), 0.0) + float(rate_bps) * interval_s
    delivered_bits = 0.0
    for time_s, bits in bits_at.items():
        delivered_bits += bits
        if time_s > begin_s:
            before_bits = max(before_bits, delivered_bits - bound_bps * (time_s - begin_s))
    before_bits = max(before_bits, all_bits - bound_bps * (end_s - begin_s))
    return (all_bits - before_bits) / (end_s - begin_s)


def outcome_of(path: Path, candidate: Candidate | None, rates: Sequence[float]) -> Outcome:
    """Return the outcome of a run of `spec_of` from the goodput of each of its flows, bit/s."""
    mine = 0 if candidate is None else candidate.streams
    return Outcome(sum(rates[:mine]), tuple(rates[mine + len(path.competitors) :]))


def spec_of(
    path: Path, candidate: Candidate | None, horizon: Horizon, seed: int, *, with_references: bool
) -> RunSpec:
    """Return the run: the copy's streams, then competitors, then reference flows."""
    # A drop-tail queue without chance can lock a flow out for good: starts that differ by seed are the chance.
    chance = random.Random(seed)
    start_ns = round(horizon.before_s * 1e9)
    links = links_of(path)
    policed = path.policer_rate_bps is not None
    there, back = ([0, 1], [2, 3]) if policed else ([0], [1])
    flows: list[FlowSpec] = []
    ends = (0, len(links) // 2, there, back)
    competing: list[FlowSpec] = []
    first = 0 if candidate is None else candidate.streams
    for index, control in enumerate([*path.competitors, *(REFERENCES if with_references else ())]):
        others = (1, 2, [1], [2]) if policed and not path.policer_is_shared else ends
        begin_ns = round(chance.random() * horizon.before_s * 0.3e9)
        transport = _transport(path, control)
        competing.append(_flow(f"other-{index}", first + index, others, begin_ns, transport, _BULK))
    if candidate is not None:
        flows += _streams(path, candidate, ends, start_ns + round(chance.random() * path.rtt_s * 1e9))
    flows += competing
    return {
        "format": FORMAT,
        "seed": seed,
        "duration_ns": start_ns + round(horizon.copy_s * 1e9),
        "stop_when_done": False,
        "nodes": [f"n{place}" for place in range(len(links) // 2 + 1)],
        "links": links,
        "flows": flows,
        "background": _background(path, policed),
        "events": [],
        "measure": {
            "warmup_ns": start_ns + round(horizon.unmeasured_s * 1e9),
            "series_interval_ns": None,
            "pcap": None,
            "pcap_node": 0,
            "pcap_packets": 0,
        },
    }


_BULK: WorkloadSpec = {"kind": "bulk", "bytes": None}


def links_of(path: Path) -> list[LinkSpec]:
    """Return the links there, then back. A policed path has the policer's link before the bottleneck."""
    hops = [FASTER * path.rate_bps] if path.policer_rate_bps is not None else []
    hops.append(path.rate_bps)
    delay_ns = round(path.rtt_s / 2 / len(hops) * 1e9)
    depth = max(QUEUE_PACKETS_MIN * path.mtu_bytes, path.queue_bytes)
    links: list[LinkSpec] = []
    for back in (False, True):
        for place in range(len(hops))[:: -1 if back else 1]:
            ends = (place + 1, place) if back else (place, place + 1)
            link: LinkSpec = {
                "name": f"n{ends[0]}->n{ends[1]}",
                "from": ends[0],
                "to": ends[1],
                "rate_bps": round(hops[place]),
                "delay_ns": delay_ns,
                "queue": {
                    "kind": "drop_tail",
                    "limit_bytes": round(depth * hops[place] / path.rate_bps),
                    "limit_packets": None,
                },
                "loss": {"kind": "none"} if back or place < len(hops) - 1 else _loss(path),
                "jitter": None,
            }
            if not back and place == 0 and path.policer_rate_bps is not None:
                link["policer"] = {
                    "rate_bps": round(path.policer_rate_bps),
                    "burst_bytes": max(2 * path.mtu_bytes, round(path.policer_burst_bytes or 0)),
                }
            links.append(link)
    return links


def _loss(path: Path) -> LossSpec:
    if path.loss <= 0:
        return {"kind": "none"}
    if path.loss_burst <= 1.05:
        return {"kind": "independent", "probability_e12": round(path.loss * 1e12)}
    # Gilbert's channel that loses all in its bad state: mean run 1 / P(bad to good), share P(bad).
    leave = 1 / path.loss_burst
    enter = path.loss * leave / (1 - path.loss)
    return {
        "kind": "gilbert_elliott",
        "good_to_bad_e12": round(enter * 1e12),
        "bad_to_good_e12": round(leave * 1e12),
        "loss_good_e12": 0,
        "loss_bad_e12": 10**12,
    }


def _transport(path: Path, control: str, window_bytes: int = OPEN_WINDOW_BYTES) -> TransportSpec:
    window = max(window_bytes, 4 * path.mtu_bytes)
    return {**TRANSPORT, "congestion_control": control, "mtu_bytes": path.mtu_bytes, "window_bytes": window}


def _background(path: Path, policed: bool) -> list[BackgroundSpec]:
    """Return four sources that are on for half of the time, 5 ms in the mean."""
    if path.background_bps <= 0:
        return []
    return [
        {
            "name": f"background-{index}",
            "route": [1] if policed else [0],
            "rate_bps": max(1, round(path.background_bps / 2)),
            "packet_bytes": path.mtu_bytes,
            "start_ns": 0,
            "stop_ns": None,
            "on_off_ns": [5_000_000, 5_000_000],
            "enabled": True,
        }
        for index in range(4)
    ]


def _flow(
    name: str,
    group: int,
    ends: tuple[int, int, Sequence[int], Sequence[int]],
    start_ns: int,
    transport: TransportSpec,
    workload: WorkloadSpec,
) -> FlowSpec:
    source, destination, route, back = ends
    return {
        "name": name,
        "group": group,
        "source": source,
        "destination": destination,
        "route": list(route),
        "return_route": list(back),
        "start_ns": start_ns,
        "stop_ns": None,
        "transport": transport,
        "workload": workload,
    }


def _streams(
    path: Path, candidate: Candidate, ends: tuple[int, int, Sequence[int], Sequence[int]], start_ns: int
) -> list[FlowSpec]:
    transport = _transport(path, candidate.control, candidate.window_bytes)
    if candidate.stream_pacing_bps is not None:
        # Each connection is paced at its part, as crates/copy-net does (SO_MAX_PACING_RATE).
        transport["max_pacing_bps"] = candidate.stream_pacing_bps
    # Connections are opened one after the other: the first tells the next ones nothing, so a little apart.
    return [
        _flow(f"copy-{index}", index, ends, start_ns + index * 1_000_000, transport, _BULK)
        for index in range(candidate.streams)
    ]
