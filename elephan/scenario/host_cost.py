"""The time that a host takes for packets: a + b x bytes, on its CPU, memory and bus together."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import model_validator

from elephan.run_spec.types import BatchingSpec, FramingSpec
from elephan.scenario.line import DropTail
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import AtMost, PositiveSize, PositiveSpan, QueueLimit, Rate, Span, Whole
from elephan.scenario.table import Table, setting

_NS_PER_S = 1_000_000_000
OVERHEAD_MAX_BYTES = 1 << 30
"""Most bytes that a time per packet may come to; link::MAX_OVERHEAD_BYTES."""


class _Cost(Table):
    """Time per packet and per byte."""

    packet: Span = setting("0us", examples=["4.11us"])
    """Time per packet, whatever its size."""
    batch: Annotated[int, Whole(1, 1_000_000)] = setting(1, examples=[7])
    """Packets that share this time."""
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

    @property
    def batching(self) -> BatchingSpec | None:
        """Batches of packets; None: each is taken alone, at once."""
        return None

    def _require_no_batch(self, key: str) -> None:
        if self.batch != 1:
            raise wrong(f"absent: {key} tells which packets share the time", "batch")


class SendCost(_Cost):
    """Time that a host takes to send: `packet` / `batch` + bytes / `rate`, for one IP packet after the other. Packets
    wait in the host; none is dropped (Linux holds a socket back)."""

    packet: Span = setting("0us", examples=["4.11us"])
    """Time per packet, whatever its size: system call, protocol, interrupt. With `tso` per segment before it is cut."""
    batch: Annotated[int, Whole(1, 1_000_000)] = setting(1, examples=[7])
    """Packets that share this time: with TSO those of a large segment, 7 of 9000 B or 45 of 1500 B in 64 KiB. Each is
    taken as long as the mean, and leaves alone; `tso` has them leave together."""
    tso: Annotated[PositiveSize, AtMost(1 << 20, "1MiB")] | None = setting(None, examples=["64KiB"])
    """Segmentation offload: TCP data of one connection that waits together, up to this size, takes the time of one
    packet, and its packets leave at one moment, as fast as the line takes them. Linux has 64 KiB (gso_max_size). When
    absent: each packet alone. Simulator alone."""

    @model_validator(mode="after")
    def _one_sharing(self) -> SendCost:
        if self.tso is not None:
            self._require_no_batch("tso")
        return self

    @property
    def batching(self) -> BatchingSpec | None:
        """Batches of packets; None: each is taken alone, at once."""
        return None if self.tso is None else {"max_bytes": self.tso, "wait_ns": 0, "wait_packets": None}


class ReceiveCost(_Cost):
    """Time that a host takes to receive: `packet` / `batch` + bytes / `rate`, for one IP packet after the other."""

    packet: Span = setting("0us", examples=["4.11us"])
    """Time per packet, whatever its size: interrupt, protocol, wake-up. With `gro` per joined segment."""
    batch: Annotated[int, Whole(1, 1_000_000)] = setting(1, examples=[7])
    """Packets that share this time: with GRO those that it joins, with interrupt coalescing those of an interrupt. Each
    is taken as long as the mean, at once; `gro` and `coalesce` have them wait and arrive together."""
    ring: QueueLimit = setting("1024 packets", examples=["4096 packets"])
    """Packets that wait in the adapter's receive ring (ethtool -g); one that finds it full is dropped."""
    coalesce: Annotated[PositiveSpan, AtMost(_NS_PER_S, "1s")] | None = setting(None, examples=["50us"])
    """Interrupt coalescing: where nothing is being received, the first packet waits this long for others (ethtool -C,
    rx-usecs). Then all go that wait, and those that come meanwhile. When absent: at once. Simulator alone."""
    coalesce_packets: Annotated[int, Whole(1, 1_000_000)] | None = setting(None, examples=[32])
    """With `coalesce`: packets at which the interrupt comes before (rx-frames). When absent: the time alone counts."""
    gro: Annotated[PositiveSize, AtMost(1 << 20, "1MiB")] | None = setting(None, examples=["64KiB"])
    """Receive offload: TCP data of one connection that waits together, up to this size, takes the time of one packet,
    and TCP acknowledges it once. Linux has 64 KiB (gro_max_size). When absent: each packet alone. Simulator alone."""

    @model_validator(mode="after")
    def _one_sharing(self) -> ReceiveCost:
        if self.gro is not None:
            self._require_no_batch("gro")
        if self.coalesce is None and self.coalesce_packets is not None:
            raise wrong('absent, or with coalesce, such as coalesce = "50us"', "coalesce_packets")
        return self

    @property
    def batching(self) -> BatchingSpec | None:
        """Batches of packets; None: each is taken alone, at once."""
        if self.gro is None and self.coalesce is None:
            return None
        return {"max_bytes": self.gro or 0, "wait_ns": self.coalesce or 0, "wait_packets": self.coalesce_packets}

    @property
    def queue(self) -> DropTail:
        """The ring as a queue."""
        return DropTail.model_construct(discipline="droptail", limit=self.ring)
