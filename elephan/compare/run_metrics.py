"""The numbers of a congestion control on a path: one set per seed, means and intervals over all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from elephan.record import Record
from elephan.report.flow_limits import BULK, own_limit
from elephan.report.limits import window_bytes
from elephan.report.statistics import Estimate, estimate
from elephan.run_spec.route import header_bytes, passing_bps, round_trip_ns


@dataclass(frozen=True)
class Run:
    """Numbers of one repetition: the scenario alone, and beside the neighbour. None where a number does not apply."""

    goodput_bps: float
    line_share: float
    offered_share: float | None
    """Part of the workload's data that was delivered, or is in flight for no longer than two round trips; None for a
    workload without end."""
    load_share: float | None
    """The workload's rate as a part of the line's; None for a workload without a rate of its own."""
    caused_drops: float
    """Packets that queues dropped, full or by AQM: the loss that the congestion control itself causes. Alone."""
    line_drops: float
    """Packets that the line lost, whatever the congestion control."""
    sent_segments: float
    retransmitted_segments: float
    timeouts: float
    recoveries: float | None
    """Episodes of loss recovery, time-outs among them; None where the kernel cannot tell whose they were."""
    rtt_mean_s: float | None
    rtt_min_s: float | None
    lag_p99_s: float | None
    latency_p99_s: float | None
    completion_s: float | None
    window_packets: float | None
    """Mean window: goodput times mean RTT."""
    neighbour_bps: float
    """Goodput of the reno neighbour beside this congestion control."""
    fair_bps: float
    """Goodput of the reno neighbour beside reno, with the same seed."""
    passing_share: float | None = None
    """Goodput as a part of what passes: the least rate of the route's links and policers. None: as `line_share`."""
    policer_drops: float = 0
    """Packets that policers dropped, part of `caused_drops`."""
    rtt_max_s: float | None = None
    drain_s: float | None = None
    """Time after the run's end in which the rest of the workload's data arrived; None where some never did."""
    window_share: float | None = None
    """Goodput as a part of what the windows of all connections allow at the mean RTT."""
    connections: float = 1

    @property
    def filled(self) -> float:
        """Goodput as a part of what passes."""
        return self.line_share if self.passing_share is None else self.passing_share


GREEDY = BULK | {"replicate", "constant_rate"}
"""Workloads that send what they get, or what they offer, without an answer to wait for."""

Number = Callable[[Run], float | None]
"""A number of one repetition."""


@dataclass(frozen=True)
class Measured:
    """A congestion control and its repetitions, in the order of their seeds."""

    cc: str
    runs: tuple[Run, ...]
    path_packets: float
    """Packets that the line holds without a queue."""
    exact: bool
    """True if nothing is drawn by chance: every seed gives the same numbers, and one repetition has no error."""
    is_policed: bool = False
    """A policer passes less than any link."""
    is_greedy: bool = True
    """All flows take what they get: none has requests of its own to wait for."""
    own_limits: tuple[str, ...] = ()
    """Per repetition, the rate of its own that every flow reaches, such as its pacing rate; "" for none."""

    def estimate(self, number: Number) -> Estimate | None:
        """Return the mean over the repetitions and half its 95 % interval; None when no repetition has it."""
        found = estimate([number(run) for run in self.runs])
        return Estimate(found.mean, 0.0, found.count) if found is not None and self.exact else found

    def mean(self, number: Number) -> float | None:
        """Return the mean over the repetitions."""
        found = self.estimate(number)
        return None if found is None else found.mean

    def samples(self, number: Number) -> tuple[float, ...] | None:
        """Return the number of each repetition; None when one of them lacks it, such as a copy that did not end."""
        found = tuple(value for run in self.runs if (value := number(run)) is not None)
        return found if len(found) == len(self.runs) else None

    @property
    def neighbour_kept(self) -> Estimate | None:
        """The neighbour's goodput, as a part of its goodput beside reno; None when that is zero.

        The ratio of the means; its interval is that of the residuals (Cochran 1977, 2.11), which pairs both by seed.
        """
        fair = math.fsum(run.fair_bps for run in self.runs) / len(self.runs)
        if fair <= 0:
            return None
        ratio = math.fsum(run.neighbour_bps for run in self.runs) / len(self.runs) / fair
        residual = self.estimate(lambda run: (run.neighbour_bps - ratio * run.fair_bps) / fair)
        return Estimate(ratio, residual.half_width if residual else None, len(self.runs))


def bounds(found: Estimate | None) -> tuple[float, float]:
    """Return the ends of a 95 % interval; without repetitions it holds everything."""
    if found is None or found.half_width is None:
        return -math.inf, math.inf
    return found.mean - found.half_width, found.mean + found.half_width


def measure(
    cc: str,
    alone: Sequence[Record],
    beside: Sequence[Record],
    yardstick: Sequence[Record],
    flows: int,
    exact: bool = False,
) -> Measured:
    """Return the numbers of a congestion control from its runs alone, beside the neighbour, and the neighbour's beside
    reno.

    The three have the same seeds in the same order. `flows` is the number of the scenario's own flow entries.
    """
    runs = tuple(_run(*three, flows) for three in zip(alone, beside, yardstick, strict=True))
    line_bps, packet_bytes, rtt_s = path_of(alone[0])
    spec = alone[0].spec
    return Measured(
        cc,
        runs,
        line_bps * rtt_s / (8 * packet_bytes),
        exact,
        is_policed=line_bps < min(spec["links"][hop]["rate_bps"] for hop in spec["flows"][0]["route"]),
        is_greedy=all(flow["workload"]["kind"] in GREEDY for flow in spec["flows"]),
        own_limits=tuple(own_limit(record) for record in alone),
    )


def _run(alone: Record, beside: Record, yardstick: Record, flows: int) -> Run:
    def metric(name: str) -> float | None:
        return alone.metrics.get(name)

    def count(name: str) -> float:
        return metric(name) or 0.0

    goodput, rtt_mean_s = count("goodput_bps"), metric("rtt_mean_s")
    passing_bps, packet_bytes, _ = path_of(alone)
    payload_bits = 8 * (packet_bytes - header_bytes(alone.spec["flows"][0]["transport"]))
    windows_bits = 8 * sum(window_bytes(flow) for flow in alone.spec["flows"])
    return Run(
        goodput_bps=goodput,
        line_share=count("line_share"),
        offered_share=offered_share(alone),
        load_share=load_share(alone),
        caused_drops=_links(alone, "dropped_by_queue", "dropped_by_aqm", "dropped_by_policer"),
        line_drops=_links(alone, "dropped_by_loss", "dropped_by_outage"),
        sent_segments=float(sum(flow.get("sent_segments") or 0 for flow in alone.flows)),
        retransmitted_segments=count("retransmitted_segments"),
        timeouts=count("timeouts"),
        recoveries=None if metric("fast_retransmits") is None else count("timeouts") + count("fast_retransmits"),
        rtt_mean_s=rtt_mean_s,
        rtt_min_s=metric("rtt_min_s"),
        lag_p99_s=metric("lag_p99_s"),
        latency_p99_s=metric("latency_p99_s"),
        completion_s=metric("completion_s"),
        window_packets=None if rtt_mean_s is None else goodput * rtt_mean_s / payload_bits,
        neighbour_bps=neighbour_of(beside, flows) or 0.0,
        fair_bps=neighbour_of(yardstick, flows) or 0.0,
        passing_share=goodput / passing_bps,
        policer_drops=_links(alone, "dropped_by_policer"),
        rtt_max_s=metric("rtt_max_s"),
        drain_s=metric("drain_s"),
        window_share=None if rtt_mean_s is None else goodput * rtt_mean_s / windows_bits,
        connections=len(alone.flows),
    )


def number_of(name: str) -> Number:
    """Return the number of a repetition by its name in `Run`. Raises ValueError for another name."""
    if name not in NUMBERS:
        raise ValueError(f"{name}: one of {', '.join(NUMBERS)}")

    def number(run: Run) -> float | None:
        value: float | None = getattr(run, name)
        return value

    return number


NUMBERS = tuple(field.name for field in fields(Run))
"""Names of the numbers of a repetition."""


def offered_share(record: Record) -> float | None:
    """Return the delivered part of the offered data, None for a workload without end."""
    offered = record.metrics.get("offered_bytes")
    if not offered:
        return None
    delivered = record.metrics.get("fc_bytes", record.metrics.get("delivered_bytes")) or 0
    on_its_way = 2 * (record.metrics.get("rtt_mean_s") or 0.0) * (record.metrics.get("goodput_bps") or 0.0) / 8
    return min(1.0, (delivered + on_its_way) / offered)


def load_share(record: Record) -> float | None:
    """Return the offered load over the run as a part of the line's rate, None for a workload without such a rate."""
    offered = record.metrics.get("offered_bytes")
    return 8e9 * offered / record.spec["duration_ns"] / path_of(record)[0] if offered else None


def neighbour_of(record: Record, flows: int) -> float | None:
    """Return the goodput of the neighbour, the flow entry after the scenario's own `flows`."""
    found = [flow.get("goodput_bps") for flow in record.flows if flow.get("group") == flows]
    return found[0] if found else None


def path_of(record: Record) -> tuple[float, int, float]:
    """Return the least rate of the first flow's links and policers in bit/s, its packet in bytes, its propagation RTT
    in s."""
    flow = record.spec["flows"][0]
    rate, rtt_ns = passing_bps(record.spec, flow["route"]), round_trip_ns(record.spec, flow)
    return float(rate), int(flow["transport"]["mtu_bytes"]), rtt_ns / 1e9


def _links(record: Record, *names: str) -> float:
    return float(sum(link.get(name) or 0 for link in record.links for name in names))
