"""The time that a host takes for packets: a + b x bytes, on its CPU, memory and bus together."""

from __future__ import annotations

from fractions import Fraction

from elephan.run_spec.types import FramingSpec
from elephan.scenario.line import DropTail
from elephan.scenario.quantity import QueueLimit, Rate, Span
from elephan.scenario.table import Table, setting

_NS_PER_S = 1_000_000_000
OVERHEAD_MAX_BYTES = 1 << 30
"""Most bytes that a time per packet may come to; link::MAX_OVERHEAD_BYTES."""


class SendCost(Table):
    """Time that a host takes to send: `packet` + bytes / `rate`, for one IP packet after the other. Packets wait in the
    host; none is dropped (Linux holds a socket back)."""

    packet: Span = setting("0us", examples=["4.11us"])
    """Time per packet, whatever its size: system call, protocol, interrupt. With TSO: that of a large segment, over its
    packets."""
    rate: Rate = setting(examples=["8.512Gbit/s"])
    """Bytes per time: copying and the bus. PCI-X of 133 MHz and 64 bits has 8.512 Gbit/s."""

    @property
    def framing(self) -> FramingSpec:
        """The time per packet as bytes at `rate`, which a link takes as a frame's."""
        return {"header_bytes": self.packet_bytes, "min_frame_bytes": 0, "gap_bytes": 0}

    @property
    def packet_bytes(self) -> int:
        """Bytes that take the time per packet at `rate`, rounded."""
        return round(Fraction(self.packet * self.rate, 8 * _NS_PER_S))


class ReceiveCost(SendCost):
    """Time that a host takes to receive: `packet` + bytes / `rate`, for one IP packet after the other."""

    packet: Span = setting("0us", examples=["4.11us"])
    """Time per packet, whatever its size: interrupt, protocol, wake-up. With interrupt coalescing or GRO: that of a
    batch, over its packets."""
    ring: QueueLimit = setting("1024 packets", examples=["4096 packets"])
    """Packets that wait in the adapter's receive ring (ethtool -g); one that finds it full is dropped."""

    @property
    def queue(self) -> DropTail:
        """The ring as a queue."""
        return DropTail.model_construct(discipline="droptail", limit=self.ring)
