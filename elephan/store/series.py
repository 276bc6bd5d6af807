"""Time series of one run, as Arrow tables over the core's own memory, and as Parquet files.

A file appears under its name only when it is whole and on the disk: it is written beside, synced, then renamed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elephan.errors import StoreError

KINDS = ("flow", "link")


def table(columns: Mapping[str, Any]) -> pa.Table:
    """Return an Arrow table whose columns share the memory of the numpy arrays: nothing is copied."""
    return pa.table({name: pa.array(np.ascontiguousarray(values)) for name, values in columns.items()})


@dataclass(frozen=True)
class Series:
    """The two tables of a run: `flow` (a row per connection and instant) and `link` (per link and instant).

    Columns carry their unit: `time_s`, `cwnd_packets`, `srtt_s`, `in_flight_bytes`, `goodput_bps`, `lag_s`; `flow` and
    `link` are indices into the record's lists of the same name.
    """

    flow: pa.Table
    link: pa.Table

    @classmethod
    def from_columns(cls, flow: Mapping[str, Any], link: Mapping[str, Any]) -> Series:
        """Wrap the core's numpy columns without copying them."""
        return cls(table(flow), table(link))

    @property
    def nbytes(self) -> int:
        """Memory of both tables, bytes."""
        return int(self.flow.nbytes + self.link.nbytes)

    def __bool__(self) -> bool:
        return bool(self.flow.num_rows or self.link.num_rows)

    def digest(self) -> str:
        """Return the SHA-256 over names, types and bytes of all columns: equal series, equal digest."""
        total = hashlib.sha256()
        for kind in KINDS:
            for name, column in zip(getattr(self, kind).column_names, getattr(self, kind).columns, strict=True):
                total.update(f"{kind}.{name}:{column.type}:{len(column)}\n".encode())
                # to_numpy and not buffers(): a column read from a file may come in chunks and with validity bits.
                total.update(np.ascontiguousarray(column.to_numpy()).tobytes())
        return total.hexdigest()

    def write(self, folder: Path, stem: str) -> dict[str, str]:
        """Write both tables under `folder`; return the file name of each kind. Raises `StoreError`."""
        for kind, path in zip(KINDS, paths_of(folder, stem), strict=True):
            write_parquet(getattr(self, kind), path)
        return {kind: str(path.relative_to(folder)) for kind, path in zip(KINDS, paths_of(folder, stem), strict=True)}

    @classmethod
    def read(cls, folder: Path, names: Mapping[str, str]) -> Series:
        """Read what `write` wrote. Raises `StoreError` when a file is gone or damaged."""
        return cls(**{kind: read_parquet(folder / names[kind]) for kind in KINDS})


def paths_of(folder: Path, stem: str) -> tuple[Path, ...]:
    """Return where the tables of a run are, one for each of `KINDS`."""
    return tuple(folder / f"{stem}.{kind}.parquet" for kind in KINDS)


def write_parquet(data: pa.Table, path: Path) -> None:
    """Write `data` to `path`, whole or not at all. Raises `StoreError` (no permission, disk full)."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            pq.write_table(data, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except (OSError, pa.ArrowException) as error:
        discard(temporary)
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise StoreError(f"cannot write {path}: {reason}") from error


def read_parquet(path: Path) -> pa.Table:
    """Read a table. Raises `StoreError` when the file is gone or damaged."""
    try:
        return pq.read_table(path, partitioning=None)
    except FileNotFoundError as error:
        raise StoreError(f"the series {path} is gone; run it again with --again") from error
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"cannot read the series {path}: {str(error).splitlines()[0]}") from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises `StoreError`."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        discard(temporary)
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def discard(temporary: Path) -> None:
    """Remove what was half written. There is nothing where the folder itself could not be made."""
    with suppress(OSError):
        temporary.unlink()


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
