"""Samples of today, one fixed record each, appended to a file.

A record carries its own check sum. So a kill or a power cut costs at most the records that had not been written: the
reader passes over one that is damaged, and the writer cuts a torn end off before it goes on.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_BODY = struct.Struct("<qqqBBBB")
_RECORD = struct.Struct("<qqqBBBBI")
RECORD_BYTES = _RECORD.size
LOST = -1
"""Stands in `rtt_ns` for a packet without an answer."""
UNKNOWN = -(2**63)
"""Stands in `forward_ns` for a delay that the reflector's time stamps did not give."""
DAY_S = 86_400
_LATE_LEAST_NS = 10_000
_LATE_STEP = math.log(1.06)


@dataclass(frozen=True, slots=True)
class Sample:
    """One test packet, answered or lost."""

    sent_ns: int
    """Unix ns."""
    rtt_ns: int
    """Without the reflector's own time; `LOST`."""
    forward_ns: int = UNKNOWN
    """Delay to the reflector by both clocks, offset and all; the reverse delay is the rest of the RTT."""
    ttl: int = 0
    """TTL or hop limit of the answer; 0: not known."""
    duplicates: int = 0
    """Further answers to it, at most 255."""
    late_ns: int = 0
    """Lateness of this host, with sending or with reading."""
    residence_ns: int = 0
    """Time at the reflector: the lateness of the far host."""

    @property
    def is_lost(self) -> bool:
        """Return True if no answer came."""
        return self.rtt_ns < 0


def day_of(unix_s: float) -> str:
    """Return the day (UTC) of a time, as names of files have it."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d")


def day_start(day: str) -> int:
    """Return the first second of a day, Unix s."""
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())


def journal_path(folder: Path, day: str) -> Path:
    """Return the journal of a day of the path whose folder this is."""
    return folder / f"{day}.journal"


def _code(late_ns: int) -> int:
    """Return a byte for a lateness: 6 % a step from 10 µs on, 0 below, 28 s and more alike."""
    return min(255, round(math.log(late_ns / _LATE_LEAST_NS) / _LATE_STEP) + 1) if late_ns >= _LATE_LEAST_NS else 0


def _lateness_ns(code: int) -> int:
    return round(_LATE_LEAST_NS * math.exp(_LATE_STEP * (code - 1))) if code else 0


def encode(samples: Sequence[Sample]) -> bytes:
    """Return the records of samples."""
    parts = []
    for one in samples:
        late = _code(one.late_ns), _code(one.residence_ns)
        fields = (one.sent_ns, one.rtt_ns, one.forward_ns, one.ttl & 255, min(one.duplicates, 255), *late)
        parts.append(_RECORD.pack(*fields, zlib.crc32(_BODY.pack(*fields))))
    return b"".join(parts)


def decode(data: bytes) -> Iterator[Sample]:
    """Yield the samples of whole records; a damaged one costs itself alone."""
    whole = len(data) // RECORD_BYTES * RECORD_BYTES
    for *fields, check in _RECORD.iter_unpack(data[:whole]):
        if zlib.crc32(_BODY.pack(*fields)) == check:
            late = _lateness_ns(fields[5]), _lateness_ns(fields[6])
            yield Sample(fields[0], fields[1], fields[2], fields[3], fields[4], *late)


def whole_bytes(data: bytes) -> int:
    """Return the length to the end of the last whole record: what is behind it is torn."""
    count = len(data) // RECORD_BYTES
    while count and not is_whole(data, count - 1):
        count -= 1
    return count * RECORD_BYTES


def is_whole(data: bytes, number: int) -> bool:
    """Return True if a record's check sum is right."""
    start = number * RECORD_BYTES
    check = int.from_bytes(data[start + _BODY.size : start + RECORD_BYTES], "little")
    return zlib.crc32(data[start : start + _BODY.size]) == check


def read(path: Path, start_s: float = 0.0, offset: int = 0) -> list[Sample]:
    """Return the samples of a journal from a time on; none where there is no file. `offset` is in records."""
    try:
        with path.open("rb") as file:
            file.seek(offset * RECORD_BYTES)
            data = file.read()
    except FileNotFoundError:
        return []
    start_ns = int(start_s * 1e9)
    return [one for one in decode(data) if one.sent_ns >= start_ns]


def last(path: Path) -> Sample | None:
    """Return the newest whole record, None when there is none."""
    try:
        with path.open("rb") as file:
            count = file.seek(0, os.SEEK_END) // RECORD_BYTES
            # A few: the file's end may be torn.
            file.seek(max(0, count - 4) * RECORD_BYTES)
            found = list(decode(file.read()))
    except FileNotFoundError:
        return None
    return found[-1] if found else None
