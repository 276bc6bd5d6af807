"""Workload `copy`: a set of files, carried by streams that share one queue of chunks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from elephan.run_spec.types import CopyWorkloadSpec, FilesSpec
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import AtMost, Part, PositiveSize, PositiveSpan, Rate, Size, Span, Whole
from elephan.scenario.table import Table, setting

FILES_MAX = 2**40
"""Files of a set: more than a file system has inodes for (ext4: 2^32)."""

BYTES_MAX = 2**62
"""Data of a set, as the core bounds it."""

OVERHEAD_MAX = 2**30

CLASSES_MAX = 1000

CHUNKS_AIM, CHUNK_MIN, CHUNK_MAX = 16_384, 256 << 10, 16 << 20
"""Chunks of a file, and their least and most bytes (crates/spec/src/copy.rs)."""

ALL_CHANGED = 10**6
"""`changed` when every chunk is sent, ppm."""

_Count = Annotated[int, Whole(1, FILES_MAX)]
_Overhead = Annotated[Size, AtMost(OVERHEAD_MAX, "1GiB")]


class Files(Table):
    """Files of about one size."""

    files: _Count = setting(1, examples=[100_000])
    """Their number."""
    size: Size = setting(examples=["20kB"])
    """Size of each, or of the smallest."""
    max: Size | None = setting(None, examples=["40kB"])
    """Size of the largest; sizes between are equally likely. When absent: all have `size`."""

    @model_validator(mode="after")
    def _ascending(self) -> Files:
        if self.max is not None and self.max < self.size:
            raise wrong("a size not below size", "max")
        return self


class Copy(Files):
    """Files that `connections` streams copy: each takes the next chunk when it has room. See Copies of files."""

    kind: Literal["copy"]
    """Kind of workload."""
    more: list[Files] = setting([], examples=[[{"files": 3, "size": "1GB"}]])
    """Files of other sizes, by the same keys; all come in an order drawn at random."""
    chunk: PositiveSize | None = setting(None, examples=["1MiB"])
    """Most data of a file that a stream takes from the queue. When absent: as `elephan copy`, about 16,384 to a file,
    of 256 KiB to 16 MiB."""
    file_overhead: _Overhead = setting("200B", examples=["0B"])
    """Sent with each file: its name and metadata."""
    chunk_overhead: _Overhead = setting("100B", examples=["0B"])
    """Sent with each chunk: its header, and those of its encryption."""
    begin: Annotated[int, Whole(0, 1000)] = setting(5, examples=[1])
    """Round trips of messages from the first connection to the first data; 5 and 2 as `elephan copy` was measured."""
    end: Annotated[int, Whole(0, 1000)] = setting(2, examples=[1])
    """Round trips of messages from the last byte written to the end."""
    changed: Part = setting(1, examples=["2%"])
    """Share of chunks that the destination lacks; below 1 its hashes of all chunks come first."""
    read: Rate | None = setting(None, examples=["500MB/s"])
    """Most that the sender reads. When absent: no limit."""
    write: Rate | None = setting(None, examples=["200MB/s"])
    """Most that the receiver writes. When absent: no limit."""
    hash: Rate | None = setting(None, examples=["1GB/s"])
    """With `changed`: most that the receiver reads and hashes of what it has. When absent: no limit."""
    limit: Rate | None = setting(None, examples=["20Mbit/s"])
    """Most data that all streams send together. When absent: no limit."""
    file_time: Span = setting("0s", examples=["50us"])
    """Time that the receiver takes for each file beside its data."""
    jobs: Annotated[int, Whole(1, 10_000)] = setting(1, examples=[12])
    """Copies of such a set, one `every` so often, each over connections of its own."""
    every: PositiveSpan | None = setting(None, examples=["2h"])
    """With `jobs`: between the beginnings of two."""

    @model_validator(mode="after")
    def _possible(self) -> Copy:
        if (self.jobs > 1) != (self.every is not None):
            if self.jobs > 1:
                raise wrong('the time between two jobs, such as "2h"', "every")
            raise wrong("a number above 1, as every says how often; or every absent", "jobs")
        if self.hash is not None and self.changed == ALL_CHANGED:
            raise wrong("absent: without changed below 1 the receiver hashes nothing that it has", "hash")
        if len(self.more) >= CLASSES_MAX:
            raise wrong(f"at most {CLASSES_MAX - 1} tables", "more")
        if sum(one.files * max(one.size, one.max or 0) for one in (self, *self.more)) > BYTES_MAX:
            raise wrong("files of less than 2^62 B together", "files")
        return self


def copy_spec(copy: Copy) -> CopyWorkloadSpec:
    """Return a copy as the core takes it."""
    return {
        "kind": "copy",
        "files": [_files_spec(one) for one in (copy, *copy.more)],
        "jobs": copy.jobs,
        "chunk_bytes": copy.chunk,
        "file_overhead_bytes": copy.file_overhead,
        "chunk_overhead_bytes": copy.chunk_overhead,
        "begin_round_trips": copy.begin,
        "end_round_trips": copy.end,
        "changed_ppm": copy.changed,
        "read_bps": copy.read,
        "write_bps": copy.write,
        "hash_bps": copy.hash,
        "limit_bps": copy.limit,
        "file_ns": copy.file_time,
    }


def _files_spec(files: Files) -> FilesSpec:
    largest = files.size if files.max is None else files.max
    return {"count": files.files, "min_bytes": files.size, "max_bytes": largest}


def mean_sent_bytes(spec: CopyWorkloadSpec) -> int:
    """Return the bytes that the connections of a job carry, on average over what is drawn."""
    count = sum(one["count"] for one in spec["files"])
    data = sum(one["count"] * (one["min_bytes"] + one["max_bytes"]) for one in spec["files"]) // 2
    pieces = sum(one["count"] * (1 + _mean(one) // _chunk(spec, _mean(one))) for one in spec["files"])
    changed = (data + pieces * spec["chunk_overhead_bytes"]) * spec["changed_ppm"] // ALL_CHANGED
    return changed + count * spec["file_overhead_bytes"]


def _mean(files: FilesSpec) -> int:
    return (files["min_bytes"] + files["max_bytes"]) // 2


def _chunk(spec: CopyWorkloadSpec, size: int) -> int:
    """Return the data of a chunk of a file, as the core cuts it."""
    if spec["chunk_bytes"] is not None:
        return spec["chunk_bytes"]
    power = 1 << (max(1, size // CHUNKS_AIM) - 1).bit_length()
    return min(max(power, CHUNK_MIN), CHUNK_MAX)
