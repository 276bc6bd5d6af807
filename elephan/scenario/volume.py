"""Block requests and the disk behind a target: what workloads `iscsi` and `fcp` have in common."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import model_validator

from elephan.run_spec.types import OutOfRangeSpec, SchedulerSpec, TraceFormatSpec
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import U64_MAX, BlockDevice, Bytes, Part, Positive, PositiveSize, Span, Whole
from elephan.scenario.table import Table, Tagged, setting

_SECTOR = 512
_TRANSFER_MAX = 16 * 2**20
"""Most data of a command, bytes; crates/storage/src/scsi/mod.rs."""


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
    """Its format (docs/reference/traces.md)."""
    columns: str | None = setting(None, examples=["time:us,device,op,offset:B,size:B"])
    """Instead of `format`: the fields of a line (docs/reference/traces.md)."""
    pace: Literal["timed", "closed"] = setting("timed", examples=["closed"])
    """As recorded, if the queue has room; or as fast as it lets."""
    time_scale: Annotated[Fraction, Positive(1_000_000, "4.5")] = setting(1, examples=[4.5])
    """Factor on all times; 2 is half as fast."""
    loop: bool = setting(False, examples=[True])
    """Begin again at its end."""
    device: BlockDevice | None = setting(None, examples=[0, "8,16"])
    """Only requests to this device, as `elephan trace` names it. When absent: all."""
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


class Volume(Table):
    """Requests for the disk behind a target."""

    kind: str
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

    @model_validator(mode="after")
    def _disk_exists(self) -> Volume:
        whole_sectors(self, "stripe", "size")
        if self.disk == "none":
            if self.disks != 1:
                raise wrong('1, because disk is "none"', "disks")
            if self.scheduler is not None:
                raise wrong('absent, because disk is "none"', "scheduler")
        return self
