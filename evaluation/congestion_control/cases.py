"""The runs, made from congestion_controls.toml: no running and no judging here."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.api import job_of
from elephan.backends import Job
from evaluation.congestion_control.models import cycle_of
from evaluation.performance.dumbbell import (
    DEEP_QUEUE,
    LARGEST_WINDOW_BYTES,
    NS_PER_S,
    PACKET_BYTES,
    PAYLOAD_BYTES,
    TRANSPORT,
    flow,
    link,
    rest,
    uniform_jitter,
)

FILE = Path(__file__).resolve().parent / "congestion_controls.toml"
NS_PER_MS = 1_000_000
BPS_PER_MBPS = 1_000_000
FOREVER_NS = 10**16
"""Four months: a run that counts packets ends before."""

CongestionControl = dict[str, Any]
"""An entry of congestion_controls.toml."""


def load() -> dict[str, Any]:
    """Read congestion_controls.toml."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Cell:
    """One run, and the measurements of it."""

    kind: str
    """Name of the function in evaluation/congestion_control/measuring.py."""
    key: tuple[Any, ...]
    """Row and seed of the run."""
    spec: dict[str, Any]
    """Specification of the run (the crate spec)."""
    options: dict[str, Any]
    """Arguments of the measuring function."""

    @property
    def job(self) -> Job:
        """The run for the runner."""
        return job_of(self.spec, "congestion-control")

    @property
    def weight(self) -> float:
        """About how many packets it takes, to run the longest first."""
        packets = [flow["workload"]["bytes"] for flow in self.spec["flows"]]
        if packets[0] is not None:
            return float(packets[0]) / PAYLOAD_BYTES
        rate_bps: float = self.spec["links"][0]["rate_bps"]
        duration_s: float = self.spec["duration_ns"] / NS_PER_S
        return duration_s * rate_bps / (8 * PACKET_BYTES)


@dataclass(frozen=True)
class Sender:
    """One flow of a network."""

    cc: CongestionControl
    rtt_ns: int
    start_ns: int = 0
    initial_ssthresh: int | None = None
    packets: int | None = None


def network(
    senders: list[Sender],
    rate_bps: int,
    queue_packets: int,
    *,
    loss: dict[str, Any] | None = None,
    jitter: bool = False,
    duration_ns: int = FOREVER_NS,
    warmup_ns: int = 0,
    series_ns: int | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """Return a dumbbell as in evaluation/performance/dumbbell.py whose flows each have their own congestion control and
    round trip.

    The bottleneck has no delay of its own; the access links, ten times as fast, have all of it.
    """
    nodes = ["left", "right"]
    queue = {"kind": "drop_tail", "limit_bytes": None, "limit_packets": queue_packets}
    links = [
        link("left->right", 0, 1, rate_bps, 0, queue, loss),
        link("right->left", 1, 0, rate_bps, 0),
    ]
    packet_ns = 8 * PACKET_BYTES * NS_PER_S // rate_bps
    flows = []
    for index, sender in enumerate(senders):
        source, destination, first = len(nodes), len(nodes) + 1, len(links)
        nodes += [f"source{index}", f"destination{index}"]
        near = link(f"source{index}->left", source, 0, 10 * rate_bps, sender.rtt_ns // 4, DEEP_QUEUE)
        if jitter:
            near["jitter"] = uniform_jitter(packet_ns)
        links += [
            near,
            link(f"right->destination{index}", 1, destination, 10 * rate_bps, sender.rtt_ns // 4),
            link(f"destination{index}->right", destination, 1, 10 * rate_bps, sender.rtt_ns // 4),
            link(f"left->source{index}", 0, source, 10 * rate_bps, sender.rtt_ns // 4),
        ]
        transport = TRANSPORT | {
            "congestion_control": sender.cc["congestion_control"],
            "parameters": sender.cc.get("parameters", {}),
            "window_bytes": LARGEST_WINDOW_BYTES,
            "initial_ssthresh": sender.initial_ssthresh,
        }
        sends_bytes = None if sender.packets is None else sender.packets * PAYLOAD_BYTES
        flows.append(flow(index, source, first, transport, sender.start_ns, sends_bytes))
    return {
        "seed": seed,
        "duration_ns": duration_ns,
        "stop_when_done": True,
        "nodes": nodes,
        "links": links,
        "flows": flows,
    } | rest(series_ns, warmup_ns)


def response_cells(reference: dict[str, Any], cc: CongestionControl) -> Iterator[Cell]:
    """Yield the runs of a congestion control's response function: periodic loss, then independent."""
    table = reference["response"]
    for loss, warmup, counted in zip(table["loss"], table["warmup"], table["counted"], strict=True):
        yield periodic_cell(table, cc, loss, warmup, counted)
    for loss, counted in zip(table["independent_loss"], table["independent_counted"], strict=True):
        for seed in range(1, table["independent_seeds"] + 1):
            yield independent_cell(table, cc, loss, counted, seed)


def periodic_cell(table: dict[str, Any], cc: CongestionControl, loss: float, warmup: int, counted: int) -> Cell:
    """One segment lost in every 1 / loss. The first loss comes where slow start has reached the published peak."""
    period = round(1 / loss)
    cycle = cycle_of(cc, loss, table["rtt_ms"] / 1000)
    peak = None if cycle is None else max(4, round(cycle.peak))
    # The window is 10 more than the segments acknowledged: this one is missed when it has just reached the peak.
    first = period if peak is None else min(period, peak + 10)
    lost = {"kind": "list", "packets": [first + index * period for index in range(warmup + counted + 2)]}
    return response_cell(table, cc, ("periodic", loss, 1), lost, (warmup, counted), peak)


def independent_cell(table: dict[str, Any], cc: CongestionControl, loss: float, counted: int, seed: int) -> Cell:
    """Each segment lost with the same probability."""
    cycle = cycle_of(cc, loss, table["rtt_ms"] / 1000)
    peak = None if cycle is None else max(4, round(cycle.peak))
    model = {"kind": "independent", "probability_e12": round(loss * 1e12)}
    span = (table["independent_warmup"], counted)
    return response_cell(table, cc, ("independent", loss, seed), model, span, peak, seed)


def response_cell(
    table: dict[str, Any],
    cc: CongestionControl,
    key: tuple[Any, ...],
    model: dict[str, Any],
    span: tuple[int, int],
    initial_ssthresh: int | None,
    seed: int = 1,
) -> Cell:
    """One point. It ends after the packets that its losses need, whatever the window."""
    rtt_ns = table["rtt_ms"] * NS_PER_MS
    period, (warmup, counted) = round(1 / key[1]), span
    # A little more than what counts: the end, with nothing left to send, is not the steady state.
    packets = (warmup + counted) * period + period // 4
    sender = Sender(cc, rtt_ns, initial_ssthresh=initial_ssthresh, packets=packets)
    spec = network([sender], table["line_bps"], 10_000_000, loss=model, series_ns=rtt_ns // 4, seed=seed)
    options = {"period": period, "warmup": warmup, "counted": counted, "rtt_ns": rtt_ns}
    return Cell("response", key, spec, options)


def sharing_cells(reference: dict[str, Any], cc: CongestionControl) -> Iterator[Cell]:
    """Yield the runs on a shared line: n alike, two round trips, beside Reno, a newcomer."""
    table, seeds = reference["sharing"], range(1, reference["sharing"]["seeds"] + 1)
    rtt_ns = table["rtt_ms"] * NS_PER_MS
    reno = {"name": "reno", "congestion_control": "reno"}
    for seed in seeds:
        for count in table["flows"]:
            yield sharing_cell(table, ("flows", count, seed), [(cc, rtt_ns)] * count, seed)
        for ratio in table["rtt_ratios"]:
            pair = [(cc, rtt_ns), (cc, ratio * rtt_ns)]
            yield sharing_cell(table, ("rtt_ratio", ratio, seed), pair, seed)
        if cc["congestion_control"] != "reno":
            yield sharing_cell(table, ("reno", 1, seed), [(cc, rtt_ns), (reno, rtt_ns)], seed)
        yield convergence_cell(reference, cc, seed)


def sharing_cell(
    table: dict[str, Any], key: tuple[Any, ...], flows: list[tuple[CongestionControl, int]], seed: int
) -> Cell:
    """Flows that start at about the same time."""
    draw = random.Random(f"{key[0]} {key[1]} {seed}")
    senders = [Sender(cc, rtt_ns, start_ns=int(draw.uniform(0, table["start_s"]) * NS_PER_S)) for cc, rtt_ns in flows]
    spec = network(
        senders,
        table["rate_mbps"] * BPS_PER_MBPS,
        product_packets(table),
        jitter=True,
        duration_ns=table["seconds"] * NS_PER_S,
        warmup_ns=table["warmup_s"] * NS_PER_S,
        seed=seed,
    )
    return Cell("goodputs", key, spec, {})


def convergence_cell(reference: dict[str, Any], cc: CongestionControl, seed: int) -> Cell:
    """A flow that has had the line, and one that joins."""
    table, convergence = reference["sharing"], reference["convergence"]
    rtt_ns = table["rtt_ms"] * NS_PER_MS
    # Over a few seconds, so that the newcomer meets the first one's window at another height with each seed.
    join_s = convergence["join_s"] + random.Random(f"convergence {seed}").uniform(0, 10)
    spec = network(
        [Sender(cc, rtt_ns), Sender(cc, rtt_ns, start_ns=int(join_s * NS_PER_S))],
        table["rate_mbps"] * BPS_PER_MBPS,
        product_packets(table),
        jitter=True,
        duration_ns=convergence["seconds"] * NS_PER_S,
        series_ns=NS_PER_S // 10,
        seed=seed,
    )
    options = {name: convergence[name] for name in ("window_s", "hold_s", "jain")} | {"join_s": join_s}
    return Cell("convergence", ("convergence", 2, seed), spec, options)


def product_packets(table: dict[str, Any]) -> int:
    """Return the bandwidth-delay product of the shared line, packets."""
    return int(table["rate_mbps"] * BPS_PER_MBPS * table["rtt_ms"] / 1000 / (8 * PACKET_BYTES))
