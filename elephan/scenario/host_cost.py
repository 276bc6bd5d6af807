"""The time that a host takes for packets: a + b x bytes, on its CPU, memory and bus together."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from elephan.run_spec.types import FramingSpec
from elephan.scenario.line import DropTail
from elephan.scenario.quantity import QueueLimit, Rate, Span, Whole
from elephan.scenario.table import Table, setting

_NS_PER_S = 1_000_000_000
OVERHEAD_MAX_BYTES = 1 << 30
"""Most bytes that a time per packet may come to; link::MAX_OVERHEAD_BYTES."""


class SendCost(Table):
    """Time that a host takes to send: `packet` / `batch` + bytes / `rate`, for one IP packet after the other. Packets
    wait in the host; none is dropped (Linux holds a socket back)."""

    packet: Span = setting("0us", examples=["4.11us"])
    """Time per packet, whatever its size: system call, protocol, interrupt."""
    batch: Annotated[int, Whole(1, 1_000_000)] = setting(1, examples=[7])
    """Packets that share this time: with TSO those of a large segment, 7 of 9000 B or 45 of 1500 B in 64 KiB. Each is
    taken as long as the mean; that they leave together is not modelled."""
    rate: Rate = setting(examples=["8.512Gbit/s"])
    """Bytes per time: copying and the bus. PCI-X of 133 MHz and 64 bits has 8.512 Gbit/s."""

    @property
    def framing(self) -> FramingSpec:
        """The time per packet as bytes at `rate`, which a link takes as a frame's."""
        return {"header_bytes": self.packet_bytes, "min_frame_bytes": 0, "gap_bytes": 0}

    @property
    def packet_bytes(self) -> int:
        """Bytes that take the time per packet at `rate`, rounded."""
        return round(Fraction(self.packet * self.rate, 8 * _NS_PER_S * self.batch))


class ReceiveCost(SendCost):
    """Time that a host takes to receive: `packet` / `batch` + bytes / `rate`, for one IP packet after the other."""

    packet: Span = setting("0us", examples=["4.11us"])
    """Time per packet, whatever its size: interrupt, protocol, wake-up."""
    batch: Annotated[int, Whole(1, 1_000_000)] = setting(1, examples=[7])
    """Packets that share this time: with GRO those that it joins, with interrupt coalescing those of an interrupt. Each
    is taken as long as the mean; the wait for the others is not modelled."""
    ring: QueueLimit = setting("1024 packets", examples=["4096 packets"])
    """Packets that wait in the adapter's receive ring (ethtool -g); one that finds it full is dropped."""

    @property
    def queue(self) -> DropTail:
        """The ring as a queue."""
        return DropTail.model_construct(discipline="droptail", limit=self.ring)
