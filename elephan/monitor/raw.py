"""Samples of a day as a Parquet file: whole or not at all, about three bytes a sample.

Times of sending are kept in ms and delays in a power of ten of ns, at most 1/10,000 of the day's median RTT: what is
finer is noise of the time stamps, and noise is what a file is made of. The reverse delay is not kept, because it is the
RTT without the forward delay (RFC 8762: T4 - T3 = (T4 - T1) - (T3 - T2) - (T2 - T1)).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elephan.monitor import journal
from elephan.monitor.summaries import row
from elephan.store.series import read_parquet

RESOLUTION = 10_000
"""Parts of the median RTT that a stored delay is at least as fine as."""
_RECORD = np.dtype(
    [
        ("sent_ns", "<i8"),
        ("rtt_ns", "<i8"),
        ("forward_ns", "<i8"),
        ("ttl", "u1"),
        ("dup", "u1"),
        ("_", "<u2"),
        ("crc", "<u4"),
    ]
)


@dataclass
class Day:
    """Columns of samples in order of their time; NaN where there is no value."""

    time_s: np.ndarray
    rtt_s: np.ndarray
    """NaN: lost."""
    forward_s: np.ndarray
    ttl: np.ndarray
    duplicates: np.ndarray

    def values(self, quantity: str) -> np.ndarray:
        """Return the samples of a quantity of STAMP; NaN where one has none."""
        if quantity == "reverse_delay_s":
            return np.asarray(self.rtt_s - self.forward_s)
        if quantity == "jitter_s":
            # Difference of the delays of packets that follow each other (RFC 3393).
            return np.asarray(np.abs(np.diff(self.rtt_s, prepend=np.nan)))
        if quantity == "loss":
            return np.asarray(np.isnan(self.rtt_s).astype(np.float64))
        found = {"rtt_s": self.rtt_s, "forward_delay_s": self.forward_s, "ttl": self.ttl.astype(np.float64)}
        return np.asarray(found[quantity])

    def between(self, start_s: float, end_s: float) -> Day:
        """Return those of `[start_s, end_s)`."""
        first, behind = np.searchsorted(self.time_s, [start_s, end_s])
        return Day(*(getattr(self, name)[first:behind] for name in self.__dataclass_fields__))

    @classmethod
    def joined(cls, days: list[Day]) -> Day:
        """Return several in one, in the order given."""
        return cls(*(np.concatenate([getattr(one, name) for one in days]) for name in cls.__dataclass_fields__))

    @classmethod
    def nothing(cls) -> Day:
        """Return no samples."""
        none = np.empty(0)
        return cls(none, none, none, none.astype(np.uint8), none.astype(np.uint8))


QUANTITIES = ("rtt_s", "forward_delay_s", "reverse_delay_s", "jitter_s")
"""Quantities that STAMP's samples are summarised for. Loss is in the counts of `rtt_s`."""


def parquet_path(folder: Path, day: str) -> Path:
    """Return the file of a day of the path whose folder this is."""
    return folder / f"{day}.parquet"


def of_journal(path: Path) -> Day:
    """Return the samples of a journal's whole records, sorted; none where there is no file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Day.nothing()
    found = np.frombuffer(data[: len(data) // journal.RECORD_BYTES * journal.RECORD_BYTES], _RECORD)
    found = found[[journal.is_whole(data, number) for number in range(len(found))]] if len(found) else found
    found = found[np.argsort(found["sent_ns"], kind="stable")]
    rtt = np.where(found["rtt_ns"] < 0, np.nan, found["rtt_ns"] / 1e9)
    forward = np.where(found["forward_ns"] == journal.UNKNOWN, np.nan, found["forward_ns"] / 1e9)
    return Day(found["sent_ns"] / 1e9, rtt, forward, found["ttl"].copy(), found["dup"].copy())


def write(day: Day, path: Path) -> None:
    """Write a day's file, whole or not at all. Raises `StoreError`."""
    from elephan.errors import StoreError
    from elephan.store.files import replacing

    arrived = day.rtt_s[~np.isnan(day.rtt_s)]
    median_ns = float(np.median(arrived)) * 1e9 if len(arrived) else 1e9
    unit_ns = 10 ** int(np.clip(np.floor(np.log10(max(median_ns / RESOLUTION, 1.0))), 0, 6))

    def delays(values: np.ndarray) -> pa.Array:
        absent = np.isnan(values)
        numbers = np.where(absent, 0, np.round(values * (1e9 / unit_ns))).astype(np.int64)
        return pa.Array.from_pandas(numbers, mask=absent) if absent.any() else _plain(numbers)

    schema_of = {b"elephan.unit_ns": str(unit_ns).encode()}
    columns = {
        "time_ms": _plain(np.round(day.time_s * 1e3).astype(np.int64)),
        "rtt": delays(day.rtt_s),
        "forward": delays(day.forward_s),
        "ttl": _plain(day.ttl.astype(np.int32)),
        "duplicates": _plain(day.duplicates.astype(np.int32)),
    }
    table = pa.Table.from_arrays(list(columns.values()), list(columns)).replace_schema_metadata(schema_of)
    try:
        with replacing(path, durable=True) as file:
            pq.write_table(
                table,
                file,
                compression="zstd",
                use_dictionary=["ttl", "duplicates"],
                column_encoding=dict.fromkeys(("time_ms", "rtt", "forward"), "DELTA_BINARY_PACKED"),
                write_statistics=False,
            )
    except pa.ArrowException as error:
        raise StoreError(f"cannot write {path}: {str(error).splitlines()[0]}") from error


def _plain(values: np.ndarray) -> pa.Array:
    # pa.array() would import pandas first.
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def read(path: Path) -> Day:
    """Read a day's file. Raises `StoreError` when it is gone or damaged."""
    table = read_parquet(path)
    unit_s = int((table.schema.metadata or {})[b"elephan.unit_ns"]) / 1e9

    def delays(name: str) -> np.ndarray:
        column = table.column(name).combine_chunks()
        values = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column)] * unit_s
        if column.null_count:
            bits = np.frombuffer(column.buffers()[0], np.uint8)
            valid = np.unpackbits(bits, bitorder="little")[column.offset : column.offset + len(column)]
            values = np.where(valid == 1, values, np.nan)
        return values

    def small(name: str) -> np.ndarray:
        column = table.column(name).combine_chunks()
        return np.frombuffer(column.buffers()[1], np.int32)[: len(column)].astype(np.uint8)

    times = table.column("time_ms").combine_chunks()
    time_s = np.frombuffer(times.buffers()[1], np.int64)[: len(times)] / 1e3
    return Day(time_s, delays("rtt"), delays("forward"), small("ttl"), small("duplicates"))


def summaries(day: Day, identity: int, seconds: int) -> list[dict[str, object]]:
    """Return the rows of `monitor_summary` for each whole or partial interval that has samples."""
    rows: list[dict[str, object]] = []
    if not len(day.time_s):
        return rows
    bins = np.floor(day.time_s / seconds).astype(np.int64)
    edges = np.flatnonzero(np.diff(bins, prepend=bins[0] - 1))
    bounds = np.append(edges, len(bins))
    lost = np.isnan(day.rtt_s)
    for quantity in QUANTITIES:
        values = day.values(quantity)
        for first, behind in zip(bounds[:-1], bounds[1:], strict=True):
            inside = values[first:behind]
            inside = np.sort(inside[~np.isnan(inside)])
            gone = int(lost[first:behind].sum())
            if len(inside) or (gone and quantity == "rtt_s"):
                rows.append(row(identity, quantity, seconds, int(bins[first]) * seconds, inside.tolist(), gone))
    return rows


def merged(one: Day, other: Day) -> Day:
    """Return the samples of both, each once, in order of their time (to the ms, as files have it)."""
    both = Day.joined([one, other])
    stamps = np.round(both.time_s * 1e3).astype(np.int64)
    _, first = np.unique(stamps, return_index=True)
    return Day(*(getattr(both, name)[first] for name in Day.__dataclass_fields__))
