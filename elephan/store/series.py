"""Time series of one run, as Arrow tables over the core's own memory, and as Parquet files.

A file appears under its name only when it is whole and on the disk.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elephan.errors import StoreError
from elephan.store.files import KINDS, Syncs, names_of, paths_of, replace_together, replacing


def table(columns: Mapping[str, Any]) -> pa.Table:
    """Return an Arrow table whose columns share the memory of the numpy arrays: nothing is copied."""
    return pa.Table.from_arrays([_column(np.ascontiguousarray(values)) for values in columns.values()], list(columns))


def _column(values: np.ndarray) -> pa.Array:
    # pa.array() would do the same, and import pandas first, which takes longer than many a run.
    if values.dtype == bool:
        return pa.array(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def values_of(data: pa.Table, name: str) -> np.ndarray:
    """Return a column of a table as a numpy array; that of a fresh run is the core's own memory.

    Arrow's to_numpy() would do the same, and import pandas first, which takes longer than many a run.
    """
    column = data.column(name)
    # One that was read from a file may come in chunks.
    parts = [_array(chunk) for chunk in column.chunks if len(chunk)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, column.type.to_pandas_dtype()), *parts])


def _arrays(data: pa.Table) -> dict[str, np.ndarray]:
    return {name: values_of(data, name) for name in data.column_names}


def _array(chunk: pa.Array) -> np.ndarray:
    if chunk.null_count or pa.types.is_boolean(chunk.type):
        return np.asarray(chunk.to_numpy(zero_copy_only=False))
    return np.frombuffer(chunk.buffers()[1], chunk.type.to_pandas_dtype())[chunk.offset :][: len(chunk)]


@cache
def _arrow_name(kind: np.dtype[Any]) -> str:
    return str(pa.from_numpy_dtype(kind))


def digest_of(flow: Mapping[str, Any], link: Mapping[str, Any]) -> str:
    """Return the SHA-256 over names, types and bytes of the columns of both tables: equal series, equal digest.

    Columns count in the form in which 0.1 wrote them, so that a run keeps its digest.
    """
    total = hashlib.sha256()
    for kind, columns in zip(KINDS, (flow, link), strict=True):
        for name, values in columns.items():
            hashed = _as_hashed(name, np.ascontiguousarray(values))
            total.update(f"{kind}.{name}:{_arrow_name(hashed.dtype)}:{len(hashed)}\n".encode())
            total.update(hashed.data)
    return total.hexdigest()


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
        # Their `nbytes` would say the same, in seventy times the time, several times for each run.
        return int(self.flow.get_total_buffer_size() + self.link.get_total_buffer_size())

    def __bool__(self) -> bool:
        return bool(self.flow.num_rows or self.link.num_rows)

    def digest(self) -> str:
        """Return the digest of both tables, see `digest_of`."""
        return digest_of(_arrays(self.flow), _arrays(self.link))

    def write(self, folder: Path, stem: str) -> dict[str, str]:
        """Write both tables under `folder`; return the file name of each kind. Raises `StoreError`."""
        with Syncs() as syncs:
            return write_series([(self, stem)], folder, syncs)[0]

    @classmethod
    def read(cls, folder: Path, names: Mapping[str, str]) -> Series:
        """Read what `write` wrote. Raises `StoreError` when a file is gone or damaged."""
        return cls(**{kind: _present(read_parquet(folder / names[kind])) for kind in KINDS})


@dataclass(frozen=True)
class SeriesFiles:
    """Series as the contents of their files, as they come from another machine."""

    flow: bytes
    link: bytes

    @classmethod
    def of(cls, series: Series) -> SeriesFiles:
        """Encode series."""
        return cls(*(as_parquet(getattr(series, kind), Path(kind)) for kind in KINDS))

    @property
    def nbytes(self) -> int:
        """Memory of both files, bytes."""
        return len(self.flow) + len(self.link)

    def decoded(self) -> Series:
        """Return the tables."""
        return Series(**{kind: pq.read_table(io.BytesIO(getattr(self, kind))) for kind in KINDS})


INFINITE_SSTHRESH = 2**31 - 1
"""Linux's number for no threshold yet, in series written before 0.2."""


HASHED_ABSENT: dict[str, tuple[int, np.dtype[Any]]] = {
    "ssthresh_packets": (INFINITE_SSTHRESH, np.dtype(np.uint32)),
    "srtt_s": (0, np.dtype(np.float64)),
}
"""The number that 0.1 wrote for "none yet", and the type of the column then, by column."""


def _as_hashed(name: str, values: np.ndarray) -> np.ndarray:
    """Return a column with the number that 0.1 wrote for "none yet": `_present` the other way round."""
    if name not in HASHED_ABSENT or values.dtype != np.float64:
        return values
    absent, kind = HASHED_ABSENT[name]
    return np.where(np.isnan(values), absent, values).astype(kind)


def _present(data: pa.Table) -> pa.Table:
    """Return a table as it would be written now: NaN where 0.1 wrote a number for "none yet"."""
    names = data.column_names
    if "ssthresh_packets" not in names or pa.types.is_floating(data.schema.field("ssthresh_packets").type):
        return data
    for name, bound, is_above in (("ssthresh_packets", INFINITE_SSTHRESH - 1, True), ("srtt_s", 0, False)):
        values = values_of(data, name).astype(np.float64)
        is_absent = values > bound if is_above else values <= bound
        data = data.set_column(names.index(name), name, _column(np.where(is_absent, np.nan, values)))
    return data


SMALL_VALUES = 4096
"""Values of a table up to which Snappy compresses it, in half of Zstandard's time, to about 8 kB at most."""

WRITTEN_AT_ONCE_BYTES = 64 * 2**20
"""Series in memory whose files wait for the disk together, bytes."""


def write_series(
    several: Sequence[tuple[Series | SeriesFiles, str]], folder: Path, syncs: Syncs
) -> list[dict[str, str]]:
    """Write series under `folder`, each by its stem; return the file names of each by kind. Raises `StoreError`."""
    waiting: list[tuple[Path, bytes]] = []
    waiting_bytes = 0
    for series, stem in several:
        for kind, path in zip(KINDS, paths_of(folder, stem), strict=True):
            data = getattr(series, kind)
            content = data if isinstance(data, bytes) else as_parquet(data, path)
            waiting.append((path, content))
            waiting_bytes += len(content)
        if waiting_bytes > WRITTEN_AT_ONCE_BYTES:
            replace_together(waiting, syncs)
            waiting.clear()
            waiting_bytes = 0
    replace_together(waiting, syncs)
    return [dict(zip(KINDS, names_of(stem), strict=True)) for _, stem in several]


def as_parquet(data: pa.Table, path: Path) -> bytes:
    """Return the content of a table's file. Raises `StoreError`, which names `path`."""
    # Arrow's own buffer: it writes in many small steps, which for one of Python's are calls.
    buffer = pa.BufferOutputStream()
    is_small = data.num_rows * data.num_columns <= SMALL_VALUES
    try:
        # Dictionaries and statistics make files of measurements larger, and take longer (docs/design/store.md).
        pq.write_table(
            data,
            buffer,
            compression="snappy" if is_small else "zstd",
            use_dictionary=False,
            write_statistics=False,
        )
    except pa.ArrowException as error:
        raise StoreError(f"cannot write {path}: {str(error).splitlines()[0]}") from error
    return bytes(buffer.getvalue())


def write_parquet(data: pa.Table, path: Path) -> None:
    """Write `data` to `path`, whole or not at all. Raises `StoreError` (no permission, disk full)."""
    try:
        with replacing(path, durable=True) as file:
            pq.write_table(data, file, compression="zstd")
    except pa.ArrowException as error:
        raise StoreError(f"cannot write {path}: {str(error).splitlines()[0]}") from error


def read_parquet(path: Path) -> pa.Table:
    """Read a table. Raises `StoreError` when the file is gone or damaged."""
    try:
        return pq.read_table(path, partitioning=None)
    except FileNotFoundError as error:
        raise StoreError(f"the series {path} is missing; run it again with --again") from error
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"cannot read the series {path}: {str(error).splitlines()[0]}") from error
