"""What a path did: the network's part, as the scenario asked for, and the emulator's own, told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LATE_P99_NS = 200_000
"""Above this the emulator's own delay is no longer small beside what it emulates (0.2 ms)."""


@dataclass(frozen=True)
class Direction:
    """One direction's counters."""

    name: str
    core: dict[str, Any]
    """As `_native.EmulatedPath.stop` gives them."""
    overflowed: int
    """Packets that found the device's own queue full, before the emulator could read them."""
    undelivered: int
    """Packets that the far device took from the emulator and dropped."""

    @property
    def own_drops(self) -> int:
        """Packets that the emulator lost and the network model did not."""
        return self.overflowed + self.undelivered + int(self.core["refused_packets"])

    def faults(self) -> list[str]:
        """What the emulator did wrong, in words."""
        found = []
        late = self.core["late_p99_ns"]
        if late is not None and late > LATE_P99_NS:
            found.append(f"{self.name}: 1 packet in 100 came late by {_ms(late)} or more (allowed: {_ms(LATE_P99_NS)})")
        if self.own_drops:
            found.append(f"{self.name}: {self.own_drops} packets were dropped in the emulator's own buffers")
        if self.core["failure"]:
            found.append(f"{self.name}: {self.core['failure']}")
        return found

    def lines(self) -> list[str]:
        """What happened, two lines."""
        core = self.core
        network = (
            f"{self.name}: {core['delivered_packets']} packets, {core['delivered_bytes']} B delivered; the network "
            f"dropped {core['dropped_by_queue'] + core['dropped_by_aqm']} in the queue, lost {core['dropped_by_loss']}"
        )
        late = "no packet to be late"
        if core["late_count"]:
            p50, p99, most = (_ms(core[f"late_{which}_ns"]) for which in ("p50", "p99", "max"))
            late = f"late by p50 {p50}, p99 {p99}, max {most}"
        share = 100 * core["cpu_ns"] / max(core["elapsed_ns"], 1)
        plain = "" if core["precedence"] else ", without precedence over other programs"
        return [network, f"  emulator: {late}; {self.own_drops} own drops; {share:.0f} % of a core{plain}"]


@dataclass(frozen=True)
class Report:
    """Both directions."""

    directions: tuple[Direction, ...]

    def faults(self) -> list[str]:
        """What the emulator did wrong, in words; empty when the path was what the scenario says."""
        return [fault for direction in self.directions for fault in direction.faults()]

    def text(self) -> str:
        """All of it as lines."""
        lines = [line for direction in self.directions for line in direction.lines()]
        faults = self.faults()
        if faults:
            lines.append("THE EMULATOR DID NOT HONOUR THE PATH; what was measured over it is not the network's doing:")
            lines += [f"  {fault}" for fault in faults]
        return "\n".join(lines)


def of(core: list[dict[str, Any]], counters: list[dict[str, Any]]) -> Report:
    """Put the core's reports, there and back, and the two devices' counters together."""
    names = ("a to b", "b to a")
    return Report(
        tuple(
            Direction(
                name=names[index],
                core=core[index],
                # What a device sends goes to the emulator, what it receives comes from there.
                overflowed=int(counters[index]["tx"]["dropped"]),
                undelivered=int(counters[1 - index]["rx"]["dropped"]),
            )
            for index in range(2)
        )
    )


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3f} ms"
