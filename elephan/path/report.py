"""Report of a path: the network's part, as the scenario asked for, apart from the emulator's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan.units import pluralize

LATE_P99_NS = 200_000
"""Above this the emulator's own delay is no longer small beside what it emulates (0.2 ms)."""
DISHONOURED = "THE EMULATOR DID NOT HONOUR THE PATH; what was measured over it is not the network's doing:"
CPU_SHARE_MOST = 0.95
"""Above this share of a core the emulator's thread has no time left: what came may have waited for it."""


@dataclass(frozen=True)
class Report:
    """Counters of the emulator and of the devices."""

    names: tuple[str, ...]
    """Of the links."""
    core: Mapping[str, Any]
    """As `_native.Emulator.stop` gives it."""
    overflowed: int
    """Packets that found a device's own queue full, before the emulator could read them."""
    undelivered: int
    """Packets that a device took from the emulator and dropped."""
    changes: tuple[str, ...] = ()
    """A line for each change while it ran."""

    @property
    def own_drops(self) -> int:
        """Packets that the emulator lost and the network model did not."""
        return self.overflowed + self.undelivered + int(self.core["refused_packets"])

    @property
    def cpu_share(self) -> float:
        """Share of a core that the emulator's thread used, what both TCP stacks did with its packets
        included."""
        return float(self.core["cpu_ns"] / max(self.core["elapsed_ns"], 1))

    def faults(self) -> list[str]:
        """Faults of the emulator, in words; empty if the path was as the scenario says."""
        found = []
        late, waited = self.core["late_p99_ns"], self.core["waited_p99_ns"]
        if late is not None and late > LATE_P99_NS:
            found.append(f"1 packet in 100 came late by {_ms(late)} or more (allowed: {_ms(LATE_P99_NS)})")
        if waited is not None and waited > LATE_P99_NS:
            found.append(f"1 packet in 100 may have waited {_ms(waited)} or more before it was read")
        if self.own_drops:
            found.append(f"{self.own_drops} packets were dropped in the emulator's own buffers")
        if self.cpu_share > CPU_SHARE_MOST:
            found.append(f"its thread used {100 * self.cpu_share:.0f} % of a core: there was no time left")
        if not self.core["precedence"]:
            found.append("it had no precedence over other programs, which delay it by their time slices")
        if found and self.core["stalls"]:
            stood = f"stood still {pluralize(self.core['stalls'], 'time')}, {_ms(self.core['stalled_ns'])} in all"
            found.append(f"its thread {stood}: the machine was paused, as a hypervisor does")
        if self.core["failure"]:
            found.append(str(self.core["failure"]))
        return found

    def notes(self) -> list[str]:
        """Its faults are the only notes."""
        return []

    def counted(self, link: dict[str, Any]) -> dict[str, Any]:
        """Return the counters of a record's link: all of them."""
        return link

    def metrics(self) -> dict[str, float | None]:
        """The record's entries on the emulator, in the units of docs/reference/metrics.md; None without packets."""

        def seconds(name: str) -> float | None:
            value = self.core[f"late_{name}_ns"]
            return None if not self.core["late_count"] or value is None else value / 1e9

        return {
            "emulator_late_p50_s": seconds("p50"),
            "emulator_late_p99_s": seconds("p99"),
            "emulator_late_max_s": seconds("max"),
            "emulator_own_drops": self.own_drops,
            "emulator_cpu_share": self.cpu_share,
        }

    def text(self) -> str:
        """All of it as lines."""
        links = zip(self.names, self.core["links"], strict=True)
        lines = [_link(name, link) for name, link in links]
        if sources := self.core["background"]:
            sent, arrived, dropped = (
                sum(source[f"{what}_packets"] for source in sources) for what in ("sent", "received", "dropped")
            )
            lines.append(f"background: {sent} packets sent, {arrived} arrived, {dropped} lost")
        lines.append(f"emulator: {self._late()}; {self.own_drops} own drops; {100 * self.cpu_share:.0f} % of a core")
        if self.core["joined_packets"]:
            lines.append(f"  {self.core['joined_packets']} packets, late already, were handed over joined with others")
        if self.core["unroutable_packets"]:
            lines.append(f"  {self.core['unroutable_packets']} packets had an address that the path does not lead to")
        if line := self._routers():
            lines.append(f"  {line}")
        missed = [str(number) for number, time_s in enumerate(self.core["event_times_s"], 1) if time_s is None]
        if missed:
            lines.append(f"  events that never happened: {', '.join(missed)}")
        faults = self.faults()
        if faults:
            lines += [DISHONOURED, *(f"  {fault}" for fault in faults)]
        return "\n".join([*lines, *self.changes])

    def _routers(self) -> str:
        routers = self.core["routers"]
        words = {
            "expired_packets": "had no time to live left",
            "too_big_packets": "were too big for a link",
            "fragmented_packets": "were fragmented",
        }
        found = [f"{routers[key]} packets {what}" for key, what in words.items() if routers[key]]
        return f"routers: {', '.join(found)}; {routers['icmp_messages']} ICMP messages" if found else ""

    def _late(self) -> str:
        if not self.core["late_count"]:
            return "no packet to be late"
        p50, p99, most = (_ms(self.core[f"late_{which}_ns"]) for which in ("p50", "p99", "max"))
        return f"late by p50 {p50}, p99 {p99}, max {most}"


NEVER = ("dropped_by_aqm", "dropped_by_outage", "dropped_by_policer", "marked_packets")
"""Of a record's link: what netem does not do."""


@dataclass(frozen=True)
class NetemReport:
    """Counters of netem (elephan/path/netem.py), which reports less of itself than elephan's emulator."""

    names: Sequence[str]
    """Of the links."""
    links: Sequence[dict[str, int]]
    queues: tuple[int, ...]
    """Packets that may wait, of each link."""
    own_drops: int
    """Packets that devices lost, or the kernel before its protocols: not netem."""
    changes: tuple[str, ...] = ()
    """A line for each change while it ran."""

    def faults(self) -> list[str]:
        """Faults beside the path, in words."""
        if not self.own_drops:
            return []
        return [f"{self.own_drops} packets were dropped by devices or in the kernel's backlog, not by netem"]

    def notes(self) -> list[str]:
        """Notes for a reader of the record."""
        rooms = ", ".join(f"{room} packets ({name})" for name, room in zip(self.names, self.queues, strict=True))
        return [f"netem carried the packets: queues of {rooms}; losses and jitter are the kernel's and follow no seed"]

    def counted(self, link: dict[str, Any]) -> dict[str, Any]:
        """Return the counters of a record's link without those of its queue's length and of losses that netem never
        causes.
        """
        return {name: value for name, value in link.items() if not name.startswith("queue_") and name not in NEVER}

    def metrics(self) -> dict[str, float | None]:
        """Metrics for a record; netem does not tell its lateness."""
        return {"emulator_own_drops": self.own_drops}

    def text(self) -> str:
        """All of it as lines."""
        lines = [_link(name, dict.fromkeys(NEVER, 0) | link) for name, link in zip(self.names, self.links, strict=True)]
        lines.append(f"netem: {self.own_drops} drops beside it; how late it was is not known")
        if faults := self.faults():
            lines += [DISHONOURED, *(f"  {fault}" for fault in faults)]
        return "\n".join([*lines, *self.changes])


AnyReport = Report | NetemReport


def of(names: Sequence[str], core: Mapping[str, Any], counters: list[dict[str, Any]]) -> Report:
    """Put the core's report and the devices' counters, as `ip -s link` has them, together."""
    return Report(
        names=tuple(names),
        core=core,
        # A device sends to the emulator, and receives from it.
        overflowed=sum(int(device["tx"]["dropped"]) for device in counters),
        undelivered=sum(int(device["rx"]["dropped"]) for device in counters),
    )


def _link(name: str, link: dict[str, Any]) -> str:
    line = (
        f"{name}: {link['delivered_packets']} packets, {link['delivered_bytes']} B delivered; the network "
        f"dropped {link['dropped_by_queue'] + link['dropped_by_aqm']} in the queue, lost {link['dropped_by_loss']}"
    )
    outage = f", {link['dropped_by_outage']} in outages" if link["dropped_by_outage"] else ""
    policed = f", {link['dropped_by_policer']} by the policer" if link["dropped_by_policer"] else ""
    marked = f", marked {link['marked_packets']}" if link["marked_packets"] else ""
    return line + outage + policed + marked


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3f} ms"
