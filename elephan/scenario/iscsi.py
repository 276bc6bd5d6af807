"""Workload `iscsi`: one session, its requests, the disk behind the target."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import model_validator

from elephan.run_spec.types import AllegianceSpec, OutOfRangeSpec, SchedulerSpec, TraceFormatSpec
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import (
    U32_MAX,
    U64_MAX,
    Bytes,
    Part,
    Positive,
    PositiveSize,
    Span,
    Whole,
)
from elephan.scenario.table import Table, Tagged, setting

_SECTOR = 512
_LENGTH = Bytes(512, 2**24 - 1)
"""Range of most lengths of RFC 7143, section 13."""
_TRANSFER_MAX = 16 * 2**20
"""Most data of a command, bytes; crates/storage/src/scsi/mod.rs."""

FIRST_BURST = 65_536
"""Default of FirstBurstLength (RFC 7143, 13.14)."""


def whole_sectors(table: Table, *keys: str) -> None:
    """Raise for the first of `keys` that is no multiple of a sector."""
    for key in keys:
        value = getattr(table, key)
        if value is not None and value % _SECTOR:
            raise wrong(f"a multiple of {_SECTOR}B", key)


class Mix(Table):
    """Requests of one size, as many as the queue depth."""

    kind: Literal["mix"] = setting("mix", examples=["mix"])
    """Kind of source."""
    reads: Part = setting(1, examples=["70%", 0.5])
    """Share of reads."""
    size: Annotated[int, Bytes(_SECTOR, _TRANSFER_MAX)] = setting("64KiB", examples=["4KiB"])
    """Data of a request."""
    order: Literal["random", "sequential"] = setting("random", examples=["sequential"])
    """Their places on the unit."""
    think: Span = setting("0s", examples=["1ms"])
    """From a request's end to the next in its place."""
    requests: Annotated[int, Whole(1, U64_MAX)] | None = setting(None, examples=[1000])
    """Requests in all. When absent: without end."""
    span: PositiveSize | None = setting(None, examples=["10GB"])
    """Part of the unit, from its beginning. When absent: all of it."""

    @model_validator(mode="after")
    def _sectors(self) -> Mix:
        whole_sectors(self, "size", "span")
        if self.span is not None and self.span < self.size:
            raise wrong("a size not below that of a request", "span")
        return self


class TraceSource(Table):
    """Requests of a block trace, reads and writes."""

    kind: Literal["trace"]
    """Kind of source."""
    trace: str = setting(examples=["traces/tpcc-small.trace"])
    """Trace file."""
    format: TraceFormatSpec = setting("auto", examples=["msr"])
    """Its form (docs/reference/traces.md)."""
    pace: Literal["timed", "closed"] = setting("timed", examples=["closed"])
    """As recorded, if the queue has room; or as fast as it lets."""
    time_scale: Annotated[Fraction, Positive(1_000_000, "4.5")] = setting(1, examples=[4.5])
    """Factor on all times; 2 is half as fast."""
    loop: bool = setting(False, examples=[True])
    """Begin again at its end."""
    device: Annotated[int, Whole(0, U32_MAX)] | None = setting(None, examples=[0])
    """Only requests to this device. When absent: all."""
    out_of_range: OutOfRangeSpec = setting("refuse", examples=["wrap"])
    """A request beyond the unit: refused before the run, left out, or taken modulo its size."""


class Postmark(Table):
    """Postmark's file server (Katcher 1997; docs/reference/iscsi.md), a client per place of the queue."""

    kind: Literal["postmark"]
    """Kind of source."""
    files: Annotated[int, Whole(1, 2**30)] = setting(500, examples=[20_000])
    """Files at the start."""
    smallest: Annotated[int, Bytes(1, _TRANSFER_MAX // 2)] = setting("500B", examples=["500B"])
    """Smallest file."""
    largest: Annotated[int, Bytes(1, _TRANSFER_MAX // 2)] = setting("10kB", examples=["1MB"])
    """Largest file; Postmark's is 9.77 kB."""
    transactions: Annotated[int, Whole(1, U64_MAX)] | None = setting(None, examples=[500])
    """Each of two operations. When absent: without end."""

    @model_validator(mode="after")
    def _sizes(self) -> Postmark:
        if self.smallest > self.largest:
            raise wrong("a size not below the smallest", "largest")
        return self


Source = Annotated[
    Mix | TraceSource | Postmark,
    Tagged(
        (("mix", Mix), ("trace", TraceSource), ("postmark", Postmark)),
        key="kind",
        default="mix",
        short="kind",
        expected='"mix", "postmark", or a table whose kind is "mix", "trace" or "postmark"',
    ),
]


class Iscsi(Table):
    """One iSCSI session (RFC 7143, whose defaults these are): initiator at `from`, target with a disk at `to`. Places
    and sizes on the unit are multiples of 512 B."""

    kind: Literal["iscsi"]
    """Kind of workload."""
    source: Source = setting({"kind": "mix"}, examples=[{"kind": "mix", "reads": "70%", "size": "8KiB"}])
    """Source of the requests."""
    queue_depth: Annotated[int, Whole(1, 65_536)] = setting(32, examples=[1])
    """Requests in flight, on all connections."""
    disk: str = setting("none", examples=["cheetah-9lp", "nvme", "disks/cheetah9LP.parv"])
    """"none": takes no time; a name of `elephan disk list`; or a .parv or .diskspecs file of DiskSim (FILE:DRIVE of
    several)."""
    disks: Annotated[int, Whole(1, 1024)] = setting(1, examples=[8])
    """Disks, striped (RAID 0)."""
    stripe: PositiveSize = setting("64KiB", examples=["256KiB"])
    """Bytes on one disk before the next."""
    scheduler: SchedulerSpec | None = setting(None, examples=["sptf"])
    """Order of requests at the disk. When absent: as its description."""
    size: PositiveSize = setting("1TiB", examples=["100GB"])
    """Size of the unit with disk = "none"."""
    allegiance: AllegianceSpec = setting("round_robin", examples=["least_outstanding"])
    """Connection of a command."""
    command_window: Annotated[int, Whole(1, 4096)] = setting(128, examples=[32])
    """Commands that the target admits (MaxCmdSN - ExpCmdSN + 1: RFC 7143, 4.2.2.1)."""
    initial_r2t: bool = setting(True, examples=[False])
    """InitialR2T: only immediate data goes unasked."""
    immediate_data: bool = setting(True, examples=[False])
    """ImmediateData: data on the command, up to `first_burst` and the target's segment."""
    max_burst: Annotated[int, _LENGTH] = setting("256KiB", examples=["4KiB"])
    """MaxBurstLength: data of one R2T or Data-In sequence."""
    first_burst: Annotated[int, _LENGTH] | None = setting(None, examples=["64KiB"])
    """FirstBurstLength: data of a command that goes unasked. When absent: 64KiB, or `max_burst` if less."""
    max_recv_segment_initiator: Annotated[int, _LENGTH] = setting("8KiB", examples=["256KiB"])
    """Its MaxRecvDataSegmentLength: of a Data-In."""
    max_recv_segment_target: Annotated[int, _LENGTH] = setting("8KiB", examples=["256KiB"])
    """Its MaxRecvDataSegmentLength: of a Data-Out or command."""
    max_outstanding_r2t: Annotated[int, Whole(1, 65_535)] = setting(1, examples=[8])
    """MaxOutstandingR2T: unanswered R2Ts of a command."""
    header_digest: bool = setting(False, examples=[True])
    """HeaderDigest: CRC32C, 4 B each."""
    data_digest: bool = setting(False, examples=[True])
    """DataDigest: CRC32C, 4 B each."""

    @model_validator(mode="after")
    def _consistent(self) -> Iscsi:
        whole_sectors(self, "stripe", "size")
        if self.first_burst is not None and self.first_burst > self.max_burst:
            raise wrong(f"at most max_burst, {self.max_burst}B (RFC 7143, 13.14)", "first_burst")
        if self.disk == "none":
            if self.disks != 1:
                raise wrong('1, because disk is "none"', "disks")
            if self.scheduler is not None:
                raise wrong('absent, because disk is "none"', "scheduler")
        return self
