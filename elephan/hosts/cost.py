"""A host's time per packet and per byte: a line through the CPU times of transfers at several packet sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan import units
from elephan.scenario.toml import format_value

MOST_ERROR = 0.1
"""Deviation of the transfers from the line, root mean square, beyond which no cost is told; as a part of their mean."""

MOST_OTHERS = 0.1
"""CPU time of others before the transfers, as a part of that in them, beyond which it cannot be told whose it was."""

FULL = 0.95
"""Busy part of a core from which on it, and not the line, was the limit."""


@dataclass(frozen=True)
class Sample:
    """One transfer, as one of its ends saw it."""

    packets: int
    packet_bytes: float
    """Mean size of an IP packet."""
    window_s: float
    cpu_s: float
    """CPU time of all cores."""
    busiest: float
    """Busy part of the core that worked most."""
    others: float
    """CPU time per second of others before the transfer, in cores."""
    payload_bps: float
    machine: str
    """Id of the machine's boot."""

    @classmethod
    def of(cls, told: Mapping[str, Any], sent: Mapping[str, Any]) -> Sample:
        """Take an agent's answer (docs/design/agent.md) about a transfer of which the sender has told `sent`.

        The sender's kernel counts every packet. A receiver's takes what its adapter or hypervisor has joined for one
        where that does not say how many they were (virtio_net_hdr_to_skb leaves gso_segs 0).
        """
        window_s = told["window_s"]
        payload = sent["payload_bytes"] / sent["packets"] if sent["packets"] else 0.0
        return cls(
            packets=round(told["payload_bytes"] / payload) if payload else 0,
            packet_bytes=payload + sent["header_bytes"],
            window_s=window_s,
            cpu_s=told["cpu_s"],
            busiest=told["busiest_core_s"] / window_s,
            others=told["idle_cpu_per_s"],
            payload_bps=told["payload_bytes"] * 8 / window_s,
            machine=told["boot_id"],
        )

    def packet_ns(self, others: float) -> float:
        """Return the CPU time per packet, without that of others, who take `others` cores."""
        return (self.cpu_s - others * self.window_s) * 1e9 / self.packets


def others_of(samples: Sequence[Sample]) -> float:
    """Return the cores that others take: the mean, because one look before a transfer is as rough as the kernel's
    ticks of 10 ms for each core.
    """
    return math.fsum(sample.others for sample in samples) / len(samples)


@dataclass(frozen=True)
class Fit:
    """A packet of n bytes takes `packet_ns` + n `byte_ns` of CPU time."""

    packet_ns: float
    packet_error_ns: float
    """Standard error of it."""
    byte_ns: float
    error: float
    """Deviation of the transfers from the line, root mean square, as a part of their mean."""

    @property
    def rate_bps(self) -> float:
        """Bits of packets per second of one core, were there no time per packet."""
        return 8e9 / self.byte_ns

    def as_cost(self) -> dict[str, str]:
        """Return the values of a scenario's `send` or `receive`."""
        return {"packet": f"{round(self.packet_ns)}ns", "rate": f"{_significant(self.rate_bps / 1e9)}Gbit/s"}


def fit(samples: Sequence[Sample]) -> Fit:
    """Return the line of least squares (Draper and Smith 1998, 1.2), through 0 where it would have less than no time
    per packet. The samples have two sizes or more.
    """
    others = others_of(samples)
    sizes = [sample.packet_bytes for sample in samples]
    times = [sample.packet_ns(others) for sample in samples]
    count, mean_size, mean_time = len(samples), math.fsum(sizes) / len(sizes), math.fsum(times) / len(times)
    spread = math.fsum((size - mean_size) ** 2 for size in sizes)
    byte_ns = math.fsum((size - mean_size) * (time - mean_time) for size, time in zip(sizes, times, strict=True))
    byte_ns /= spread
    packet_ns = mean_time - byte_ns * mean_size
    if packet_ns < 0:
        packet_ns = 0.0
        byte_ns = math.fsum(size * time for size, time in zip(sizes, times, strict=True))
        byte_ns /= math.fsum(size * size for size in sizes)
    squares = math.fsum((time - packet_ns - byte_ns * size) ** 2 for size, time in zip(sizes, times, strict=True))
    variance = squares / max(count - 2, 1)
    return Fit(
        packet_ns=packet_ns,
        packet_error_ns=math.sqrt(variance * (1 / count + mean_size**2 / spread)),
        byte_ns=byte_ns,
        error=math.sqrt(squares / count) / abs(mean_time) if mean_time else math.inf,
    )


@dataclass(frozen=True)
class Side:
    """Cost of a host for what it sends, or for what it receives."""

    verb: str
    """send or receive."""
    samples: tuple[Sample, ...]
    fit: Fit | None
    """None where a transfer carried nothing."""
    problem: str | None
    """Reason that the line tells nothing; None: it does."""

    @property
    def cost(self) -> Fit | None:
        """The line, where it tells something."""
        return None if self.problem else self.fit


@dataclass(frozen=True)
class Measured:
    """A host, measured against another one."""

    name: str
    offloads: tuple[str, ...]
    """Those of its interface that are on."""
    coalescing: Mapping[str, Any]
    """Its interface's, as the agent tells; empty where its driver does not."""
    ring_packets: int | None
    send: Side
    receive: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both."""
        return self.send, self.receive


def side(verb: str, samples: Sequence[Sample], peers: Sequence[Sample]) -> Side:
    """Judge the samples of one end; `peers` are those of the other end of the same transfers."""
    own = tuple(samples)
    if not all(sample.packets for sample in own):
        return Side(verb, own, None, "a transfer carried no packet")
    line = fit(own)
    return Side(verb, own, line, _problem(own, peers, line))


def _problem(own: Sequence[Sample], peers: Sequence[Sample], line: Fit) -> str | None:
    if own[0].machine and own[0].machine == peers[0].machine:
        return "both hosts are one machine, and its CPU time is that of both: name two machines"
    busy = others_of(own)
    used = math.fsum(sample.cpu_s / sample.window_s - busy for sample in own) / len(own)
    if busy > MOST_OTHERS * used:
        return (
            f"the CPU was busy otherwise: {units.digits(busy)} cores before the transfers, {units.digits(used)} more "
            "in them; end the other work"
        )
    if line.error > MOST_ERROR:
        return (
            f"the transfers lie {units.share(line.error)} off a line, more than {units.share(MOST_ERROR)}: a longer "
            "--time, or less other work"
        )
    if line.byte_ns <= 0:
        return "larger packets took no more time than small ones: a longer --time, or a larger MTU"
    return None


def as_json(one: Measured) -> dict[str, Any]:
    """Return a host's measurement, samples included; `cost` is absent where there is a `problem`."""
    return {
        "name": one.name,
        "offloads": list(one.offloads),
        "coalescing": dict(one.coalescing),
        **({} if one.ring_packets is None else {"ring_packets": one.ring_packets}),
        **{each.verb: _side_as_json(each) for each in one.sides},
    }


def _side_as_json(each: Side) -> dict[str, Any]:
    told: dict[str, Any] = {
        "samples": [
            {
                "packets": sample.packets,
                "packet_bytes": round(sample.packet_bytes, 1),
                "window_s": sample.window_s,
                "cpu_s": sample.cpu_s,
                "busiest_core": sample.busiest,
                "others_cores": sample.others,
                "payload_bps": sample.payload_bps,
            }
            for sample in each.samples
        ]
    }
    if each.fit is not None:
        line = each.fit
        told["fit"] = {
            "packet_ns": line.packet_ns,
            "packet_error_ns": line.packet_error_ns,
            "byte_ns": line.byte_ns,
            "error": line.error,
        }
    if each.cost is not None:
        told["cost"] = each.cost.as_cost()
    if each.problem is not None:
        told["problem"] = each.problem
    return told


def as_lines(one: Measured) -> list[str]:
    """Return a line for each direction, and one for what the interface does to packets."""
    rows = [(each.verb, _side_as_text(each)) for each in one.sides]
    rows.append(("adapter", _adapter(one)))
    return [f"{name:<10} {one.name}: {text}" for name, text in rows]


def _side_as_text(each: Side) -> str:
    if each.problem is not None or each.fit is None:
        return f"no cost was measured: {each.problem}"
    line, largest = each.fit, max(each.samples, key=lambda sample: sample.packet_bytes)
    busiest = max(sample.busiest for sample in each.samples)
    limit = "a core was the limit" if busiest >= FULL else "no core was the limit"
    # One core's: a time per packet of 0 is one that cannot be told from 0.
    error = units.duration(line.packet_error_ns / 1e9)
    sizes = sorted({round(sample.packet_bytes) for sample in each.samples})
    return (
        f"{units.duration(line.packet_ns / 1e9)} (± {error}) of CPU time per packet, {units.rate(line.rate_bps)} of "
        "bytes; "
        f"{len(each.samples)} transfers of packets of {sizes[0]} to {sizes[-1]} B lie {units.share(line.error)} off; "
        f"{units.rate(largest.payload_bps)} at {round(largest.packet_bytes)} B, {limit} ({units.share(busiest)} busy)"
    )


def _adapter(one: Measured) -> str:
    parts = [f"offloads {', '.join(one.offloads) or 'none'}"]
    if one.coalescing:
        adaptive = ", adaptive" if one.coalescing.get("adaptive") else ""
        parts.append(f"interrupt after {one.coalescing['us']} us or {one.coalescing['packets']} packets{adaptive}")
    if one.ring_packets is not None:
        parts.append(f"ring of {one.ring_packets} packets")
    return "; ".join(parts)


def as_toml(one: Measured) -> list[str]:
    """Return the lines of a scenario's node, for what was told; none where nothing was."""
    costs: dict[str, dict[str, Any]] = {
        each.verb: {**each.cost.as_cost()} for each in one.sides if each.cost is not None
    }
    if "receive" in costs:
        if one.ring_packets is not None:
            costs["receive"]["ring"] = f"{one.ring_packets} packets"
        costs["receive"] |= _coalescing(one)
    if not costs:
        return []
    lines = [f"{key} = {format_value(value)}" for key, value in costs.items()]
    return ["[[node]]", f"name = {format_value(one.name)}", *lines]


def _coalescing(one: Measured) -> dict[str, Any]:
    """Return the keys of the wait for an interrupt; none where there is no wait, or the driver changes it by itself."""
    told = one.coalescing
    if told.get("adaptive") or not 0 < told.get("us", 0) <= 1_000_000 or told["packets"] == 1:
        return {}
    packets = {"coalesce_packets": told["packets"]} if 1 < told["packets"] <= 1_000_000 else {}
    return {"coalesce": f"{told['us']}us", **packets}


def _significant(value: float) -> str:
    """Return a number with four significant digits, as TOML's text of a rate has it."""
    places = max(0, 3 - math.floor(math.log10(value)))
    return f"{value:.{places}f}"
