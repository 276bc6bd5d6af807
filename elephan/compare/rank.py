"""What is measured of each stack, and the order that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from elephan.errors import InputError
from elephan.record import Record
from elephan.report import units
from elephan.report.statistics import estimate

TIE = 0.01
"""Values that differ by less than this part of the better one are taken as equal: packets, not stacks, make that."""

PACKET_OVERHEAD_BYTES = 52
"""IP and TCP header with timestamps (RFC 791, 9293, 7323)."""


@dataclass(frozen=True)
class Measured:
    """Numbers of one stack: means over the repetitions. None where a number does not apply."""

    stack: str
    goodput_bps: float
    line_share: float
    offered_share: float | None
    """Part of what the workload offered that was delivered; None for one that offers without end."""
    caused_drops: float
    """Packets that queues dropped, full or by AQM: the loss that the stack itself causes. Of the run, alone."""
    line_drops: float
    """Packets that the line took, whatever the stack."""
    sent_segments: float
    retransmitted_segments: float
    timeouts: float
    recoveries: float | None
    """Episodes of loss recovery, time-outs among them; None where the ground kernel cannot tell whose they were."""
    rtt_mean_s: float | None
    rtt_min_s: float | None
    lag_p99_s: float | None
    latency_p99_s: float | None
    completion_s: float | None
    window_packets: float | None
    """Mean window: goodput times mean RTT."""
    path_packets: float
    """Packets that the line holds without a queue."""
    neighbour_bps: float
    """Goodput of the reno neighbour beside this stack."""
    neighbour_kept: float | None
    """The same as a part of what it gets beside reno; None when that is nothing."""
    repetitions: int


@dataclass(frozen=True)
class Row:
    """A stack in the ranking."""

    rank: int
    """From 1; equal for those that are taken as equal."""
    numbers: Measured
    queue_s: float | None
    """Mean RTT above the least RTT that any of the stacks saw."""
    why: tuple[str, ...]
    """A few words each: why it stands there, and what it costs."""

    @property
    def stack(self) -> str:
        """Its label."""
        return self.numbers.stack


@dataclass(frozen=True)
class Key:
    """What a rank may be by."""

    title: str
    higher: bool
    """Whether more is better."""
    value: Callable[[Measured], float | None]
    show: Callable[[float | None], str]


KEYS: dict[str, Key] = {
    "goodput": Key("goodput", True, lambda m: m.goodput_bps, units.rate),
    "lag": Key("replication lag p99", False, lambda m: m.lag_p99_s, units.duration),
    "latency": Key("latency p99", False, lambda m: m.latency_p99_s, units.duration),
    "completion": Key("completion", False, lambda m: m.completion_s, units.duration),
    "neighbour": Key("what a reno neighbour keeps", True, lambda m: m.neighbour_kept, units.share),
    "queue": Key("mean RTT", False, lambda m: m.rtt_mean_s, units.duration),
    "drops": Key("drops caused", False, lambda m: m.caused_drops, units.count),
    "retransmissions": Key("retransmissions", False, lambda m: m.retransmitted_segments, units.count),
}
"""By the word after --by."""


def key_of(by: str) -> Key:
    """Return what a word after --by means. Raises `InputError`."""
    if by not in KEYS:
        raise InputError(f"--by {by}: one of {', '.join(KEYS)}")
    return KEYS[by]


def default_key(found: Sequence[Measured]) -> str:
    """Return what the workload is about: how far the copy is behind, how long frames take, or how much arrives."""
    for name in ("lag", "latency", "completion"):
        if all(KEYS[name].value(item) is not None for item in found):
            return name
    return "goodput"


def ranked(found: Sequence[Measured], by: str) -> list[Row]:
    """Return rows by rank. Ties go by fewer drops caused, then by the shorter RTT, then by name.

    Raises `InputError` when the runs have no such number.
    """
    from elephan.compare.words import why

    key = key_of(by)
    values = {item.stack: key.value(item) for item in found}
    if all(value is None for value in values.values()):
        raise InputError(f"--by {by}: these runs have no {key.title}")

    def sort(item: Measured) -> tuple[bool, float, str]:
        value = values[item.stack]
        return (value is None, 0.0 if value is None else -value if key.higher else value, item.stack)

    groups: list[list[Measured]] = []
    for item in sorted(found, key=sort):
        first = values[groups[-1][0].stack] if groups else None
        if groups and _equal(first, values[item.stack]):
            groups[-1].append(item)
        else:
            groups.append([item])
    least_rtt_s = min((item.rtt_min_s for item in found if item.rtt_min_s), default=None)
    rows: list[Row] = []
    for group in groups:
        rank = len(rows) + 1
        for item in sorted(group, key=lambda m: (m.caused_drops, m.rtt_mean_s or 0.0, m.stack)):
            queue_s = None
            if item.rtt_mean_s is not None and least_rtt_s is not None:
                queue_s = max(0.0, item.rtt_mean_s - least_rtt_s)
            rows.append(Row(rank, item, queue_s, why(item, queue_s, least_rtt_s)))
    return rows


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= TIE * max(abs(one), abs(other))


def measured(
    stack: str, alone: Sequence[Record], beside: Sequence[Record], yardstick: Sequence[Record], flows: int
) -> Measured:
    """Return the numbers of a stack from its runs alone, beside the neighbour, and the neighbour's beside reno."""

    def mean(value: Callable[[Record], float | None], records: Sequence[Record] = alone) -> float | None:
        found = estimate([value(record) for record in records])
        return None if found is None else found.mean

    def metric(name: str) -> float | None:
        return mean(lambda record: record.metrics.get(name))

    def count(name: str) -> float:
        return metric(name) or 0.0

    goodput, rtt_mean_s = count("goodput_bps"), metric("rtt_mean_s")
    line_bps, packet_bytes, rtt_s = path_of(alone[0])
    payload_bits = 8 * (packet_bytes - PACKET_OVERHEAD_BYTES)
    near = mean(lambda record: neighbour_of(record, flows), beside) or 0.0
    fair = mean(lambda record: neighbour_of(record, flows), yardstick) or 0.0
    return Measured(
        stack=stack,
        goodput_bps=goodput,
        line_share=count("line_share"),
        offered_share=mean(offered_share),
        caused_drops=mean(lambda record: _links(record, "dropped_by_queue", "dropped_by_aqm")) or 0.0,
        line_drops=mean(lambda record: _links(record, "dropped_by_loss", "dropped_by_outage")) or 0.0,
        sent_segments=mean(lambda record: sum(flow.get("sent_segments") or 0 for flow in record.flows)) or 0.0,
        retransmitted_segments=count("retransmitted_segments"),
        timeouts=count("timeouts"),
        recoveries=None if metric("fast_retransmits") is None else count("timeouts") + count("fast_retransmits"),
        rtt_mean_s=rtt_mean_s,
        rtt_min_s=metric("rtt_min_s"),
        lag_p99_s=metric("lag_p99_s"),
        latency_p99_s=metric("latency_p99_s"),
        completion_s=metric("completion_s"),
        window_packets=None if rtt_mean_s is None else goodput * rtt_mean_s / payload_bits,
        path_packets=line_bps * rtt_s / (8 * packet_bytes),
        neighbour_bps=near,
        neighbour_kept=near / fair if fair else None,
        repetitions=len(alone),
    )


def offered_share(record: Record) -> float | None:
    """Return the part of what was offered that was delivered, None for a workload that offers without end."""
    offered = record.metrics.get("offered_bytes")
    return (record.metrics.get("delivered_bytes") or 0) / offered if offered else None


def neighbour_of(record: Record, flows: int) -> float | None:
    """Return the goodput of the neighbour, the flow entry after the scenario's own `flows`."""
    found = [flow.get("goodput_bps") for flow in record.flows if flow.get("group") == flows]
    return found[0] if found else None


def path_of(record: Record) -> tuple[float, int, float]:
    """Return the first flow's slowest rate in bit/s, its packet in bytes, and its propagation RTT in s."""
    flow, links = record.spec["flows"][0], record.spec["links"]
    rate = min(links[hop]["rate_bps"] for hop in flow["route"])
    delay = sum(links[hop]["delay_ns"] for hop in (*flow["route"], *flow["return_route"]))
    return float(rate), int(flow["stack"]["mtu_bytes"]), delay / 1e9


def _links(record: Record, *names: str) -> float:
    return float(sum(link.get(name) or 0 for link in record.links for name in names))
